//! Dropping tables and databases.
//!
//! A drop is a frame of the log. Its table is out of sight from the moment the drop is queued, so
//! that whatever is queued after it is about a table of its own, be it of the same name. The flush
//! that reaches the drop takes the table out of the manifest; its files then go like those that
//! compaction has replaced, once nothing reads them.

use std::sync::Arc;

use bytes::Bytes;
use futures::channel::oneshot;

use super::{
    Engine,
    frame::{self, DropMeta, FrameKind},
    idempotency::IdempotencyKeys,
    queue::QueuedFrame,
    shared::Shared,
    stats::Counters,
};
use crate::{
    Error, Result, SequenceNumber,
    catalog::{DropEdit, ManifestState},
    crash::crash_point,
    registry::{PendingDrop, Registry},
    wal::{ReplayedFrame, body_checksum},
};

impl Engine {
    /// Drops a table with all of its points and columns. Queries that read it go on; a write after
    /// it makes a new table.
    ///
    /// Durable once this returns, whatever the engine's durability. Flushes; the files leave the
    /// disk some time later, as those do that compaction has replaced.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// engine.drop_table("plant", "pump")?;
    /// assert!(engine.tables("plant")?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) if there is no such database or table;
    /// [`Closed`](crate::ErrorKind::Closed); [`Io`](crate::ErrorKind::Io),
    /// [`StorageFull`](crate::ErrorKind::StorageFull) and [`Unknown`](crate::ErrorKind::Unknown) if
    /// the log cannot be written: the table is out of sight then, and whether it comes back is
    /// known when the engine is opened again.
    pub fn drop_table(&self, database: &str, table: &str) -> Result<()> {
        self.writer()?.drop_named(database, Some(table))
    }

    /// Drops a database with all of its tables and settings, as [`drop_table`](Self::drop_table)
    /// does a table.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// engine.drop_database("plant")?;
    /// assert!(engine.databases().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`drop_table`](Self::drop_table).
    pub fn drop_database(&self, database: &str) -> Result<()> {
        self.writer()?.drop_named(database, None)
    }
}

impl Shared {
    /// Ends what a drop took, at its place in the order of writes.
    pub(super) fn apply_drop(&self, pending: &PendingDrop, seq: SequenceNumber) {
        pending.set_seq(seq);
        Counters::add(&self.counters.drops, 1);
        if pending.whole {
            self.keys.forget(&pending.database.name);
        }
    }

    fn drop_named(&self, name: &str, table: Option<&str>) -> Result<()> {
        let time_ns = Some(self.clock.now_ns());
        let meta = DropMeta { database: name.to_owned(), table: table.map(str::to_owned), time_ns };
        let (meta, body_crc) = (frame::encode(&meta)?, body_checksum(&[]));
        let frame = QueuedFrame { kind: FrameKind::Drop, meta, body: Bytes::new(), body_crc };
        let (answer, receiver) = oneshot::channel();
        let database = {
            let schema = self.schema.lock();
            let missing = || Error::DatabaseNotFound { database: name.to_owned() };
            let database = schema.registry.database(name).ok_or_else(missing)?;
            let found = match table {
                None => None,
                Some(table) => {
                    let missing = || Error::TableNotFound { database: name.to_owned(), table: table.to_owned() };
                    Some(database.table(table).ok_or_else(missing)?)
                }
            };
            self.queue.push_drop(frame, answer, || match &found {
                None => schema.registry.drop_database(&database),
                Some(found) => schema.registry.drop_table(&database, found),
            })?;
            database
        };
        // Its series leave memory without waiting for the next write. A thread that decodes holds
        // them, so no lock is held here.
        drop(database.fresh_series());
        let stopped = |_| Err(Error::unanswered());
        crate::sync::block_on(receiver).unwrap_or_else(stopped)?;
        crash_point("drop::applied");
        if let Err(error) = self.flush() {
            // It is dropped; the next flush tells the manifest.
            tracing::warn!(%error, "cannot flush after a drop");
        }
        self.retired.move_out();
        self.settle_change()
    }

    /// Lets go of tables that the manifest has no more: their rows in memory, and their files once
    /// nothing reads them.
    pub(super) fn finish_drops(&self, dropped: &[Arc<PendingDrop>]) {
        let now_ns = self.clock.now_ns();
        for table in dropped.iter().flat_map(|pending| &pending.tables) {
            let mut rows = table.undrained_rows();
            let bytes = rows.buffer.forget(usize::MAX);
            self.counters.buffered_bytes.fetch_sub(bytes, std::sync::atomic::Ordering::Relaxed);
            self.memory.give(bytes);
            let files = std::mem::take(&mut rows.stored.files);
            Counters::add(&self.counters.dropped_files, files.len() as u64);
            self.retired.add(files, now_ns);
        }
        self.schema.registry().forget(dropped);
        crash_point("drop::finished");
        self.compactor.wake();
    }
}

/// Returns what the manifest is to be told of drops: it may not have had the tables at all.
pub(super) fn edits(state: &ManifestState, dropped: &[Arc<PendingDrop>]) -> Vec<DropEdit> {
    let mut edits: Vec<DropEdit> = Vec::new();
    for pending in dropped {
        let Some(database) = state.databases.get(&*pending.database.name) else { continue };
        let edit = |table| DropEdit { database: pending.database.name.to_string(), table };
        let tables = pending.tables.iter().map(|table| table.schema().table.to_string());
        let tables = tables.filter(|table| database.tables.contains_key(table)).map(Some);
        // A name can be dropped twice within one round.
        for edit in tables.chain(pending.whole.then_some(None)).map(edit) {
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
    }
    edits
}

/// Forgets what a drop of the log ends besides tables. The error is the reason why it is damaged.
pub(super) fn replay_forget(keys: &IdempotencyKeys, frame: &ReplayedFrame<'_>) -> Result<(), String> {
    let DropMeta { database, table, .. } = frame::decode(frame.meta)?;
    if table.is_none() {
        keys.forget(&database);
    }
    Ok(())
}

/// Does a drop of the log again. The error is the reason why it is damaged.
pub(super) fn replay_drop(registry: &Registry, frame: &ReplayedFrame<'_>) -> Result<(), String> {
    let DropMeta { database, table, .. } = frame::decode(frame.meta)?;
    let found = registry.database(&database).ok_or_else(|| format!("its database {database:?} was never created"))?;
    let pending = match table {
        None => registry.drop_database(&found),
        Some(table) => {
            let table = found.table(&table).ok_or_else(|| format!("its table {table:?} was never created"))?;
            registry.drop_table(&found, &table)
        }
    };
    pending.set_seq(SequenceNumber(frame.seq.0));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::{Options, WriteOptions};

    /// Everything that memory has of a table.
    fn pieces(engine: &Engine, table: &str) -> (Weak<crate::registry::Table>, Weak<crate::model::DataFile>) {
        let table = engine.table("d", table).unwrap();
        let file = table.stored().files[0].clone();
        (Arc::downgrade(&table), Arc::downgrade(&file))
    }

    #[test]
    fn nothing_of_what_was_dropped_stays_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        (options.compaction, options.history) = (false, std::time::Duration::ZERO);
        options.compaction_grace = std::time::Duration::ZERO;
        let engine = Engine::builder(dir.path().join("data")).options(options).open().unwrap();
        let send = |line: &str, key: &str| {
            let options = WriteOptions::new().idempotency_key(key);
            engine.submit_lp("d", line.to_owned().into(), &options).unwrap().wait().unwrap()
        };
        for whole in [false, true] {
            assert!(!send("m,h=a v=1 1\nn,h=a v=1 1", "first").replayed);
            engine.flush().unwrap();
            assert!(!send("m,h=a v=2 2", "second").replayed);
            let gone = [pieces(&engine, "m"), pieces(&engine, "n")];
            if whole {
                engine.drop_database("d").unwrap();
            } else {
                engine.drop_table("d", "m").unwrap();
                engine.drop_table("d", "n").unwrap();
                assert!(send("m,h=a v=2 2", "second").replayed, "the database has its receipts");
            }
            engine.compact().unwrap();
            for (table, file) in gone {
                assert!(table.upgrade().is_none() && file.upgrade().is_none(), "{whole}");
            }
            let stats = engine.stats();
            assert_eq!((stats.buffered_bytes, stats.memory_bytes, stats.retired_files), (0, 0, 0), "{stats:?}");
            if !whole {
                engine.drop_database("d").unwrap();
            }
        }
        assert!(!send("m,h=a v=2 2", "second").replayed, "it has gone with the database");
    }

    #[test]
    fn a_drop_holds_up_no_writes_while_a_request_is_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(dir.path().join("data")).unwrap();
        let write = {
            let engine = engine.clone();
            move |database: &str, lines: &[u8]| assert!(engine.write_lp(database, lines).unwrap().points > 0)
        };
        for _ in 0..2 {
            // The second time all series are known.
            write("d", b"m,h=a v=1 1\nn,h=a v=1 1");
        }
        write("other", b"o v=1 1");
        let database = engine.writer().unwrap().schema.registry().database("d").unwrap();
        let decoding = database.fresh_series();
        let (done, is_done) = std::sync::mpsc::channel();
        let dropping = std::thread::spawn({
            let engine = engine.clone();
            move || engine.drop_table("d", "m")
        });
        while database.table("m").is_some() {
            std::thread::yield_now();
        }
        let writing = std::thread::spawn({
            let write = write.clone();
            move || {
                write("other", b"o v=2 2");
                done.send(()).unwrap();
            }
        });
        let answered = is_done.recv_timeout(std::time::Duration::from_secs(150));
        drop(decoding);
        answered.unwrap();
        writing.join().unwrap();
        dropping.join().unwrap().unwrap();
        // A series that was known is one of the new table.
        write("d", b"m,h=a v=3 3");
        assert_eq!(engine.table("d", "m").unwrap().rows().unwrap().buffer.rows(), 1);
    }
}
