//! The list of the files that snapshots have: whatever becomes of it, no file goes that a snapshot has,
//! and every one that none has.

use std::path::PathBuf;

use super::*;
use crate::vfs::Vfs;

fn objects(fs: &CrashFs, kind: &str) -> Vec<PathBuf> {
    let is_meant = |path: &&Path| path.starts_with("/data/meta/0") && path.extension().is_some_and(|end| end == kind);
    fs.current().files().filter(is_meant).map(Path::to_owned).collect()
}

fn replace(fs: &CrashFs, path: &Path, bytes: &[u8]) {
    let _ = fs.remove_file(path);
    fs.create_new(path).unwrap().write_all_at(&[bytes], 0).unwrap();
}

fn damage(fs: &CrashFs, path: &Path) {
    let mut bytes = fs.read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    replace(fs, path, &bytes);
}

/// What befalls the list while no engine has the directory open.
#[derive(Debug, Clone, Copy)]
pub(super) enum ListFate {
    Left,
    Removed,
    Damaged,
    /// An earlier one takes its place, as of a build that does not know of it.
    Older,
}

impl Recorded {
    /// Has something befall the list, and keeps what it was for later.
    pub(super) fn strike_list(&mut self, fate: ListFate) {
        let Some(path) = objects(&self.fs, "kept").pop() else { return };
        let was = (path.clone(), self.fs.read(&path).unwrap());
        match fate {
            ListFate::Left => {}
            ListFate::Removed => self.fs.remove_file(&path).unwrap(),
            ListFate::Damaged => damage(&self.fs, &path),
            ListFate::Older => {
                if let Some((older, bytes)) = &self.older_list {
                    self.fs.remove_file(&path).unwrap();
                    replace(&self.fs, older, bytes);
                }
            }
        }
        self.older_list.get_or_insert(was);
    }

    /// Lets go of everything that is not live, and checks that nothing of it stays.
    pub(super) fn check_nothing_stays(&mut self) {
        for (name, _) in std::mem::take(&mut self.snapshots) {
            self.engine.drop_snapshot(&name).unwrap();
        }
        // What the first round merges is free in the second.
        for _ in 0..2 {
            self.clock.advance(1_000);
            // Its lease is for what it sees now.
            self.check_reader();
            let EngineRole::Reader(reader) = &self.reader.inner.role else { panic!("it is no reader") };
            reader.renew().unwrap();
            self.engine.compact().unwrap();
        }
        let stats = self.engine.stats();
        assert_eq!((stats.retired_files, stats.retired_bytes), (0, 0));
        assert_eq!(objects(&self.fs, "kept"), Vec::<PathBuf>::new());
    }
}

/// An engine with `count` snapshots, each of one file that the next has not and of one that all have.
fn sample(history: u64, count: usize) -> Recorded {
    let mut recorded = Recorded::new(options(history));
    for nth in 0..count {
        recorded.line(&format!("all,h=a v={nth} 1"));
        if nth > 0 {
            recorded.engine.drop_table("d", "own").unwrap();
        }
        recorded.line(&format!("own,h=a v={nth} {nth}"));
        recorded.snapshot();
        recorded.clock.advance(1);
    }
    recorded
}

#[test]
fn opening_reads_no_snapshot_that_the_list_knows() {
    let mut recorded = sample(0, 4);
    // The manifest goes on, so that nothing else needs these objects.
    for _ in 0..300 {
        recorded.engine.set_retention("d", None, Some(Duration::from_secs(1 << 30))).unwrap();
    }
    let totals = recorded.engine.snapshots();
    recorded.engine.close().unwrap();
    let named: Vec<PathBuf> = objects(&recorded.fs, "snapshot").into_iter().take(4).collect();
    let whole: Vec<Vec<u8>> = named.iter().map(|path| recorded.fs.read(path).unwrap()).collect();
    named.iter().for_each(|path| damage(&recorded.fs, path));
    recorded.engine = open(&recorded.fs, &recorded.clock, &recorded.options);
    assert_eq!(recorded.engine.snapshots(), totals);
    recorded.engine.compact().unwrap();
    let totals = recorded.engine.snapshots();
    recorded.engine.close().unwrap();
    named.iter().zip(&whole).for_each(|(path, bytes)| replace(&recorded.fs, path, bytes));
    recorded.reopen(true);
    assert_eq!((recorded.engine.snapshots(), recorded.reader.snapshots()), (totals.clone(), totals));
    recorded.check();
}

#[test]
fn of_a_window_of_history_no_snapshot_is_read_but_the_first() {
    let mut recorded = Recorded::new(options(1_000));
    recorded.line("m,h=a v=1 1");
    recorded.engine.flush().unwrap();
    for nth in 0..400 {
        recorded.clock.advance(1);
        recorded.engine.set_retention("d", None, Some(Duration::from_secs((1 << 30) + nth))).unwrap();
        if nth % 50 == 0 {
            recorded.record();
        }
    }
    recorded.engine.close().unwrap();
    let snapshots = objects(&recorded.fs, "snapshot");
    assert!(snapshots.len() >= 3, "{snapshots:?}");
    damage(&recorded.fs, &snapshots[snapshots.len() - 2]);
    recorded.engine = open(&recorded.fs, &recorded.clock, &recorded.options);
    let oldest = recorded.states[0].0;
    assert_eq!(recorded.engine.writer().unwrap().oldest_kept(oldest), 1, "all of it is known");
}

#[test]
fn a_list_is_made_anew_where_it_does_not_say_everything() {
    for fate in [ListFate::Left, ListFate::Removed, ListFate::Damaged, ListFate::Older] {
        let mut recorded = sample(0, 2);
        recorded.strike_list(ListFate::Left);
        recorded.line("all,h=b v=7 7");
        recorded.snapshot();
        recorded.engine.drop_table("d", "own").unwrap();
        let totals = recorded.engine.snapshots();
        recorded.engine.close().unwrap();
        let list = objects(&recorded.fs, "kept");
        assert_eq!(list.len(), 1);
        let bytes = recorded.fs.read(&list[0]).unwrap();
        recorded.strike_list(fate);
        recorded.reopen(false);
        assert_eq!(objects(&recorded.fs, "kept"), list, "{fate:?}");
        let read = |bytes: &[u8]| {
            let payload = bytes.get(48..).unwrap();
            crate::catalog::KeptFiles::decode(payload).unwrap()
        };
        assert_eq!(read(&recorded.fs.read(&list[0]).unwrap()), read(&bytes), "{fate:?}");
        assert_eq!(recorded.engine.snapshots(), totals);
        recorded.engine.compact().unwrap();
        recorded.check();
        recorded.check_nothing_stays();
    }
}
