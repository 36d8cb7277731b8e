//! The schema of an open engine: the one place that decides what is registered, and when.
//!
//! Owns the databases and tables that there are, and the lock under which more come and some go.
//! What is changed is queued for the log before anything sees it, or in the same moment, so that
//! replay meets schema changes in the same order. Never decodes a request.

use std::{sync::Arc, time::Duration};

use super::{
    context::EngineContext,
    logged::database_change,
    queue::{Made, Queue, QueuedFrame, over_budget},
};
use crate::{
    Error, Options, Result,
    registry::{Database, Registry, check_database_name, invalid_name},
    sync::{self, Mutex, MutexGuard},
};

/// See the module.
#[derive(Debug)]
pub(super) struct EngineSchema {
    context: Arc<EngineContext>,
    queue: Arc<Queue>,
    registry: Arc<Registry>,
    /// Held while tables and columns are registered, and until what makes them is queued.
    lock: Mutex<()>,
}

/// The schema, which nothing else changes meanwhile but a table's place in the order of writes.
#[derive(Debug)]
pub(super) struct LockedSchema<'a> {
    pub(super) context: &'a EngineContext,
    pub(super) queue: &'a Queue,
    pub(super) registry: &'a Arc<Registry>,
    _lock: MutexGuard<'a, ()>,
}

impl EngineSchema {
    pub(super) fn new(context: Arc<EngineContext>, queue: Arc<Queue>, registry: Registry) -> Self {
        Self { context, queue, registry: Arc::new(registry), lock: Mutex::new(()) }
    }

    /// Returns the databases and tables that there are.
    pub(super) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Locks the schema, however long that takes.
    pub(super) fn lock(&self) -> LockedSchema<'_> {
        self.locked(self.lock.lock())
    }

    /// Locks the schema for a write: a thread that has it may be waiting for memory.
    pub(super) fn lock_within(&self, max_wait: Duration) -> Result<LockedSchema<'_>> {
        Ok(self.locked(self.lock.try_lock_for(max_wait).ok_or_else(over_budget)?))
    }

    /// Makes what is in the log visible, at its place in the order of writes.
    pub(super) fn publish(&self, made: Made) {
        made.publish(&self.registry);
    }

    /// Creates a database; its creation is logged like a write.
    pub(super) fn create_database(&self, name: &str) -> Result<()> {
        check_database_name(name).map_err(|reason| invalid_name("database", name, reason))?;
        let schema = self.lock();
        if self.registry.database(name).is_some() {
            return Err(Error::DatabaseExists { database: name.to_owned() });
        }
        schema.check_limits(1, 0)?;
        let database = Arc::new(Database::new(name, self.context.clock.now_ns(), false));
        schema.make(database_change(&database)?, Made::Database(database))
    }

    fn locked<'a>(&'a self, lock: MutexGuard<'a, ()>) -> LockedSchema<'a> {
        LockedSchema { context: &self.context, queue: &self.queue, registry: &self.registry, _lock: lock }
    }
}

impl LockedSchema<'_> {
    /// Refuses to make more databases and tables than there may be.
    pub(super) fn check_limits(&self, new_databases: usize, new_tables: usize) -> Result<()> {
        let Options { max_databases, max_tables, .. } = self.context.options;
        let is_above = |limit: usize, new: usize, known: &dyn Fn() -> usize| {
            limit > 0 && new > 0 && known().saturating_add(new) > limit
        };
        if is_above(max_databases, new_databases, &|| self.registry.databases().len()) {
            return Err(Error::LimitReached { what: "databases", limit: max_databases, option: "max_databases" });
        }
        let tables = || self.registry.databases().iter().map(|database| database.table_count()).sum();
        if is_above(max_tables, new_tables, &tables) {
            return Err(Error::LimitReached { what: "tables", limit: max_tables, option: "max_tables" });
        }
        Ok(())
    }

    /// Logs that something is made, and waits until it is there.
    pub(super) fn make(&self, change: QueuedFrame, made: Made) -> Result<()> {
        let answer = self.queue.push_change(change, Some(made), || {})?;
        let stopped = |_| Err(Error::unanswered());
        sync::block_on(answer).unwrap_or_else(stopped)
    }
}
