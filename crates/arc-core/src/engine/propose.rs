//! What a write adds to the schema: checked against what is there now, logged in front of the
//! write, and published in the moment in which both are queued.
//!
//! A write that needs nothing new takes no lock of the schema. One whose tables another write or a
//! drop has changed since it was decoded is stale, and is decoded again.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    logged::{database_change, schema_change},
    queue::{QueuedFrame, QueuedWrite},
    schema::{EngineSchema, LockedSchema},
    widen::Settled,
};
use crate::{
    Result,
    ingest::{Staged, StagedTable},
    model::TableSchema,
    registry::{Database, Table},
};

/// What becomes of the schema with a write.
pub(super) enum Proposal<'a> {
    /// Nothing: all that it names is there.
    Nothing,
    Growth(SchemaGrowth<'a>),
    /// A table or column of it has been registered by another write since it was decoded, or is
    /// gone.
    Stale,
}

/// Databases, tables and columns that come with a write. The schema is locked until this is dropped.
pub(super) struct SchemaGrowth<'a> {
    changes: Vec<QueuedFrame>,
    database: Arc<Database>,
    is_new_database: bool,
    tables: Vec<(Arc<Table>, Arc<TableSchema>)>,
    /// Dropped before the lock is.
    _settled: Settled,
    schema: LockedSchema<'a>,
}

impl EngineSchema {
    /// Returns what `staged` adds to the schema. Waits for the lock only if that is something.
    pub(super) fn propose(&self, staged: &Staged, max_wait: Duration) -> Result<Proposal<'_>> {
        let database = &staged.database;
        let is_registered =
            || self.registry().database(&database.name).is_some_and(|current| Arc::ptr_eq(&current, database));
        if is_registered()
            && staged.tables.iter().all(|table| !table.changes_schema() && table.table.is_registered())
            && !staged.has_dropped()
        {
            return Ok(Proposal::Nothing);
        }
        self.lock_within(max_wait)?.propose(staged, max_wait)
    }
}

impl<'a> LockedSchema<'a> {
    fn propose(self, staged: &Staged, max_wait: Duration) -> Result<Proposal<'a>> {
        let database = Arc::clone(&staged.database);
        let current = self.registry.database(&database.name);
        if current.as_ref().is_some_and(|current| !Arc::ptr_eq(current, &database))
            || database.dropped.load(Ordering::Acquire)
            || staged.has_dropped_rows()
            || staged.is_outdated()
            || staged.tables.iter().any(|table| is_stale(&database, table))
        {
            return Ok(Proposal::Stale);
        }
        let is_new_database = current.is_none();
        let new_tables = staged.tables.iter().filter(|table| !has_table(&database, table)).count();
        self.check_limits(usize::from(is_new_database), new_tables)?;
        let Some(settled) = self.settle_types(staged, max_wait)? else { return Ok(Proposal::Stale) };
        let mut changes = Vec::new();
        if is_new_database {
            changes.push(database_change(&database)?);
        }
        let mut tables = Vec::new();
        for table in &staged.tables {
            if table.changes_schema() || !has_table(&database, table) {
                let schema = table.grown_schema();
                changes.push(schema_change(&schema, !table.widened.is_empty(), self.context.clock.now_ns())?);
                tables.push((Arc::clone(&table.table), schema));
            }
        }
        let growth = SchemaGrowth { changes, database, is_new_database, tables, _settled: settled, schema: self };
        Ok(Proposal::Growth(growth))
    }
}

impl Proposal<'_> {
    /// Takes the changes that stand in front of the write in the log.
    pub(super) fn take_changes(&mut self) -> Vec<QueuedFrame> {
        match self {
            Self::Growth(growth) => std::mem::take(&mut growth.changes),
            Self::Nothing | Self::Stale => Vec::new(),
        }
    }

    /// Makes what is new visible, with the queue locked; returns whether the write is still right.
    pub(super) fn publish(&self, write: &QueuedWrite) -> bool {
        match self {
            // A drop may have come in between; after it in the queue there must be nothing that
            // belongs to what it took. The same holds for a column that gets another type.
            Self::Nothing => !write.staged.has_dropped() && !write.staged.is_outdated(),
            Self::Growth(growth) => {
                growth.publish();
                true
            }
            Self::Stale => false,
        }
    }
}

impl SchemaGrowth<'_> {
    fn publish(&self) {
        for (table, schema) in &self.tables {
            table.set_schema(Arc::clone(schema));
            self.database.add(Arc::clone(table));
        }
        if self.is_new_database {
            self.schema.registry.add(Arc::clone(&self.database));
        }
    }
}

fn has_table(database: &Database, staged: &StagedTable) -> bool {
    database.table(staged.name()).is_some_and(|known: Arc<Table>| Arc::ptr_eq(&known, &staged.table))
}

fn is_stale(database: &Database, staged: &StagedTable) -> bool {
    match database.table(staged.name()) {
        None => staged.table.is_dropped(),
        Some(known) if !Arc::ptr_eq(&known, &staged.table) => true,
        Some(known) => staged.changes_schema() && !Arc::ptr_eq(&known.layout(), &staged.base),
    }
}
