//! Deletes as the engine does them: checked, queued like a write, and applied to the table at their
//! place in the log.
//!
//! A delete is about every point that was acknowledged before it, and none that is written after
//! it. Nothing is rewritten while its caller waits: the table's buffer is frozen, so that no buffer
//! and no file has rows from both sides of the delete, and a tombstone takes the rows out of what
//! queries read. Compaction takes them out of the files (see `crate::model`).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::channel::oneshot;

use super::{
    Engine,
    frame::{self, DeleteMeta, FrameKind},
    queue::{QueuedDelete, QueuedFrame},
    shared::Shared,
};
use crate::{
    Durability, Error, Predicate, Result, SequenceNumber, Tombstone,
    catalog::{ManifestEdit, TableEdit},
    crash::crash_point,
    model::predicate::bind,
    registry::{Registry, Table},
    wal::{ReplayedFrame, body_checksum},
};

/// Deletes of one table that may wait for compaction: each is a filter of every query that reads
/// files it touches.
const MAX_TOMBSTONES: usize = 1_000;

/// What a delete found. How many points it took is what a query counts before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// Data files that may have had such points, by what is known of them without reading.
    pub affected_files: u64,
}

impl Engine {
    /// Deletes the points of a table that meet `predicate`, of those that were acknowledged before
    /// this call. Points that are written later are not deleted.
    ///
    /// Points of which the predicate says nothing, because a value is null, stay. In a table whose
    /// points are identified by tags and time, the predicate may name only these. Once this returns
    /// no query sees the points any more, and the delete is as durable as
    /// [`Options::durability`](crate::Options::durability) says, at least `process`. Their bytes
    /// leave the disk after the next flush, when compaction rewrites the files that they are in;
    /// programs that read the data files themselves see them until then.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::{Comparison, Predicate};
    ///
    /// engine.delete("plant", "pump", &Predicate::compare("id", Comparison::Equal, "7"))?;
    /// assert!(engine.view("plant", "pump")?.buffers.iter().all(|part| part.row_count() == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown database or table;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a predicate that the table cannot have;
    /// [`Busy`](crate::ErrorKind::Busy) while 1,000 earlier deletes of the table wait to be carried
    /// out in its files; [`Closed`](crate::ErrorKind::Closed); [`Io`](crate::ErrorKind::Io) and
    /// [`StorageFull`](crate::ErrorKind::StorageFull) if it cannot be logged;
    /// [`Unknown`](crate::ErrorKind::Unknown) if the log failed meanwhile: whether the points are
    /// deleted is known when the engine is opened again.
    pub fn delete(&self, database: &str, table: &str, predicate: &Predicate) -> Result<Deleted> {
        let shared = self.writer()?;
        let receiver = {
            // No table is registered, nor dropped, between the look at its schema and the queue.
            let _schema = shared.schema.lock();
            let found = self.table(database, table)?;
            let predicate = bind(predicate, &found.schema())?;
            if found.stored().tombstones.len() >= MAX_TOMBSTONES {
                return Err(Error::Busy {
                    reason: "1000 deletes of the table wait for a flush and compaction to carry them out",
                    retry_after: Duration::from_secs(10),
                });
            }
            let meta = DeleteMeta {
                database: database.to_owned(),
                table: table.to_owned(),
                predicate: predicate.clone(),
                time_ns: Some(shared.clock.now_ns()),
            };
            let frame = QueuedFrame {
                kind: FrameKind::Delete,
                meta: frame::encode(&meta)?,
                body: Bytes::new(),
                body_crc: body_checksum(&[]),
            };
            let (answer, receiver) = oneshot::channel();
            let durability = shared.options.durability.max(Durability::Process);
            shared.queue.push_delete(frame, QueuedDelete { table: found, predicate, durability, answer })?;
            receiver
        };
        let stopped = |_| Err(Error::unanswered());
        let deleted = crate::sync::block_on(receiver).unwrap_or_else(stopped)?;
        shared.settle_change()?;
        Ok(deleted)
    }

    /// Returns `predicate` as a delete of this table would apply it: with values of the types that
    /// the columns have, so that it counts in a query, as SQL text, what a delete would take.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::{Comparison, Literal, Predicate};
    ///
    /// let of_day = Predicate::compare("time", Comparison::GreaterOrEqual, "2023-11-14");
    /// let checked = engine.check_delete("plant", "pump", &of_day)?;
    /// let midnight = Literal::Time(1_699_920_000_000_000_000);
    /// assert_eq!(checked, Predicate::compare("time", Comparison::GreaterOrEqual, midnight));
    /// let of_field = Predicate::compare("rpm", Comparison::Less, "0");
    /// assert!(engine.check_delete("plant", "pump", &of_field).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`delete`](Self::delete).
    pub fn check_delete(&self, database: &str, table: &str, predicate: &Predicate) -> Result<Predicate> {
        bind(predicate, &self.table(database, table)?.schema())
    }
}

/// Takes rows away from a table, at the delete's place in the order of writes.
pub(super) fn apply_delete(table: &Table, tombstone: Tombstone) -> Result<Deleted> {
    let mut rows = table.rows()?;
    let affected = rows.stored.files.iter().filter(|file| tombstone.applies_to(file)).count();
    rows.delete(Arc::new(tombstone))?;
    Ok(Deleted { affected_files: affected as u64 })
}

/// Does a delete of the log again. The error is the reason why it is damaged.
pub(super) fn replay_delete(registry: &Registry, frame: &ReplayedFrame<'_>) -> Result<(), String> {
    let DeleteMeta { database, table, predicate, .. } = frame::decode(frame.meta)?;
    let found = registry.database(&database).and_then(|database| database.table(&table));
    let found = found.ok_or_else(|| format!("its table {table:?} was never created"))?;
    apply_delete(&found, Tombstone { seq: frame.seq, predicate }).map(drop).map_err(|e| e.to_string())
}

impl Shared {
    /// Lets go of the deletes that are carried out in all files. Called by compaction, which alone
    /// carries them out.
    pub(super) fn forget_tombstones(&self, table: &Table) -> Result<()> {
        if table.stored().flushed_tombstones().is_empty() {
            return Ok(());
        }
        let mut manifest = self.manifest.lock();
        if table.is_dropped() {
            return Ok(());
        }
        // What the manifest has was in the log before all files of a later flush, so no buffer is
        // older than it.
        let done: Vec<SequenceNumber> = {
            let stored = table.stored();
            let flushed = stored.flushed_tombstones();
            let is_done = |t: &&Arc<Tombstone>| !stored.files.iter().any(|file| t.applies_to(file));
            flushed.iter().filter(is_done).map(|tombstone| tombstone.seq).collect()
        };
        if done.is_empty() {
            return Ok(());
        }
        let schema = table.schema();
        let edit = TableEdit {
            database: schema.database.to_string(),
            table: schema.table.to_string(),
            tombstones_removed: done.clone(),
            ..TableEdit::default()
        };
        manifest.commit(ManifestEdit { tables: vec![edit], ..ManifestEdit::default() })?;
        crash_point("compaction::tombstones_forgotten");
        table.stored().tombstones.retain(|tombstone| !done.contains(&tombstone.seq));
        Ok(())
    }
}
