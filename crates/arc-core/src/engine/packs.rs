//! Live data files move out of packs: into another one where little of their pack is needed, so
//! that it can go; or into files of their own.
//!
//! A moved file has the same bytes at another place, so nothing is decoded, and which row wins
//! stays as it is. It becomes the live one by a commit like those of merges, which come first: what
//! they replace need not move.

use std::{collections::BTreeMap, sync::Arc};

use hashbrown::{HashMap, HashSet};

use super::{
    Engine,
    compaction::{CompactionReport, Round},
    shared::Shared,
    small_merges::SmallMerges,
};
use crate::{Result, compaction::moves, datafile::PackWriter, model::DataFile, registry::Table, sync::Mutex};

/// A pack of which less than one part in so many is live gives that to another: for each byte that
/// moves two go.
const LIVE_SHARE: u64 = 3;

/// Bytes that move in one round, about; what is left moves in the next.
const ROUND_BYTES: u64 = 64 << 20;

/// The sizes of packs, which the manifest does not have. They never change.
#[derive(Debug, Default)]
pub(super) struct PackSizes(Mutex<HashMap<String, u64>>);

impl PackSizes {
    /// Returns those packs, of all that have `live` bytes, of which this is little. The size of a
    /// pack that is not known yet is asked for.
    fn sparse(&self, live: BTreeMap<String, u64>, size_of: impl Fn(&str) -> Option<u64>) -> HashSet<String> {
        let mut sizes = self.0.lock();
        sizes.retain(|pack, _| live.contains_key(pack));
        let is_sparse = |(pack, live): &(String, u64)| {
            let size = sizes.get(pack).copied().or_else(|| size_of(pack));
            sizes.extend(size.map(|size| (pack.clone(), size)));
            // One that cannot be opened is for those to name who need what is in it.
            size.is_some_and(|size| live.saturating_mul(LIVE_SHARE) < size)
        };
        live.into_iter().filter(is_sparse).map(|(pack, _)| pack).collect()
    }
}

impl Engine {
    /// Gives each data file that lies in a pack a file of its own, so that other programs find all
    /// that was flushed by a glob over `data/`.
    ///
    /// Of the report only `moved_files` and `removed_files` say something. Points in memory are not
    /// touched: flush first to have them, too. What is flushed later may be packed again, unless
    /// [`Options::pack_bytes`](crate::Options::pack_bytes) is 0; with that compaction does the same
    /// by itself. Waits for a merge that runs already.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// engine.flush()?;
    /// engine.unpack()?;
    /// assert!(engine.data_files("plant", "pump")?.iter().all(|file| file.packed().is_none()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`compact`](Self::compact).
    pub fn unpack(&self) -> Result<CompactionReport> {
        self.writer()?.unpack(None)
    }

    /// Does for the data files of one table what [`unpack`](Self::unpack) does for all.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// engine.flush()?;
    /// engine.unpack_table("plant", "pump")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such table, and as
    /// [`compact`](Self::compact).
    pub fn unpack_table(&self, database: &str, table: &str) -> Result<CompactionReport> {
        let table = self.table(database, table)?;
        self.writer()?.unpack(Some(table))
    }
}

impl Shared {
    fn unpack(&self, only: Option<Arc<Table>>) -> Result<CompactionReport> {
        let _turn = self.compactor.turn()?;
        let mut round = Round::default();
        let tables = only.map_or_else(|| self.all_tables(), |table| vec![table]);
        let moved = self.move_files(&tables, |_| true, u64::MAX, false, &mut round);
        round.note_failure(moved.map(drop));
        round.report.removed_files += self.remove_retired(self.clock.now_ns());
        // The thread has to know when the packs may go.
        self.compactor.wake();
        round.into_report()
    }

    /// Moves what is live in packs of which that is little, and all packed files where nothing is
    /// to be packed.
    pub(super) fn move_packed(&self, round: &mut Round) {
        if !self.retired.has_lost_packed() {
            return;
        }
        let packs = self.options.pack_bytes > 0;
        let sparse = if packs { self.sparse_packs() } else { HashSet::new() };
        let is_wanted = |file: &DataFile| !packs || sparse.contains(file.stored_path());
        let moved = self.move_files(&self.all_tables(), is_wanted, ROUND_BYTES, packs, round);
        if !matches!(moved, Ok(true)) {
            self.retired.forget_packs();
        }
        match moved {
            Ok(true) => {}
            Ok(false) => round.note_due(Some(self.clock.now_ns())),
            Err(error) => round.note_failure(Err(error)),
        }
    }

    fn all_tables(&self) -> Vec<Arc<Table>> {
        self.schema.registry().databases().iter().flat_map(|database| database.tables()).collect()
    }

    /// Returns the packs of which little is live.
    fn sparse_packs(&self) -> HashSet<String> {
        let mut live: BTreeMap<String, u64> = BTreeMap::new();
        for table in self.all_tables() {
            let schema = table.schema();
            let said = PackWriter::most_bytes_about(&schema.database, &schema.table);
            for file in &table.stored().files {
                if let Some((pack, _)) = file.packed() {
                    *live.entry(pack.to_owned()).or_default() += file.bytes + said;
                }
            }
        }
        let size_of = |pack: &str| self.vfs.open_read(&self.root.join(pack)).and_then(|file| file.len()).ok();
        self.compactor.packs().sparse(live, size_of)
    }

    /// Moves the wanted ones of all packed files, up to about `most_bytes` of them; returns whether
    /// that was all.
    fn move_files(
        &self,
        tables: &[Arc<Table>],
        is_wanted: impl Fn(&DataFile) -> bool,
        most_bytes: u64,
        to_pack: bool,
        round: &mut Round,
    ) -> Result<bool> {
        let is_wanted =
            |file: &DataFile| file.packed().is_some() && is_wanted(file) && !self.compactor.is_left_alone(file);
        let mut moving = SmallMerges::new(self);
        let mut left = most_bytes;
        let mut move_all = || {
            for table in tables {
                let files = table.stored().files.clone();
                for task in moves(&files, is_wanted) {
                    if left == 0 {
                        return Ok(false);
                    }
                    self.compactor.check_running()?;
                    left = left.saturating_sub(task.files.iter().map(|file| file.bytes).sum());
                    moving.move_out(table, task, to_pack, round)?;
                }
            }
            Ok(true)
        };
        let moved = move_all();
        // What has moved counts, whatever failed then.
        moving.commit(round)?;
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Durability, Options,
        compaction::MergeTask,
        engine::compaction::{Merged, is_still_right},
    };

    const DAY_NS: i64 = 86_400_000_000_000;

    /// An engine whose log has nothing between its files, with points of one day after those of a
    /// later one.
    fn late_files(path: &std::path::Path, values: &[i64]) -> (Engine, Arc<Table>) {
        let options = Options {
            durability: Durability::Memory,
            compaction: false,
            pack_tables: 1,
            flush_after: std::time::Duration::from_secs(1 << 30),
            ..Options::default()
        };
        let engine = Engine::builder(path).options(options).open().unwrap();
        let write = |value: i64, time: i64| {
            let line = format!("m,h=a v={value}i {time}");
            assert_eq!(engine.write_lp("d", line.as_bytes()).unwrap().points, 1);
            engine.flush().unwrap();
        };
        write(0, DAY_NS);
        values.iter().for_each(|value| write(*value, 0));
        let table = engine.table("d", "m").unwrap();
        (engine, table)
    }

    fn of_first_day(table: &Table) -> Vec<Arc<DataFile>> {
        table.stored().files.iter().filter(|file| file.min_time == 0).cloned().collect()
    }

    #[test]
    fn the_last_of_several_late_points_wins_after_their_files_have_moved() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, table) = late_files(&dir.path().join("data"), &[1, 2, 3]);
        let before = of_first_day(&table);
        assert!(before.len() == 3 && before.iter().all(|file| file.late && file.version() == before[0].version()));
        engine.unpack().unwrap();
        let after = of_first_day(&table);
        let [file] = after.as_slice() else { panic!("{after:?}") };
        let values = file.columns.iter().find(|column| &*column.name == "v").unwrap();
        assert_eq!((file.rows, format!("{:?}", values.min)), (1, format!("{:?}", values.max)));
        let newest = before[2].columns.iter().find(|column| &*column.name == "v").unwrap();
        assert_eq!(format!("{:?}", values.max), format!("{:?}", newest.max), "which is 3");
        assert!(table.stored().files.iter().all(|file| file.packed().is_none()));
    }

    #[test]
    fn a_file_that_was_copied_does_not_pass_by_one_that_was_flushed_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let (_engine, table) = late_files(&dir.path().join("data"), &[1, 2]);
        let files = of_first_day(&table);
        let mut tasks: Vec<MergeTask> = moves(&files[..1], |_| true);
        let task = tasks.remove(0);
        assert!(tasks.is_empty() && task.files.len() == 1);
        let mut moved = Merged { table, task, made: Vec::new(), is_moved: true };
        assert!(is_still_right(&files[..1], &moved) && !is_still_right(&files, &moved));
        // Its rows on time are right below whatever came meanwhile.
        moved.is_moved = false;
        assert!(is_still_right(&files, &moved));
    }
}
