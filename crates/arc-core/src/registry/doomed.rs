//! Tables that were dropped: out of sight at once, and kept until the manifest has forgotten them.
//!
//! Owns which tables a flush is about while drops are on their way. Never decides when a drop is done: that is its place
//! in the log, which the committer notes here.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use hashbrown::HashSet;

use super::{Database, Registry, Table};
use crate::SequenceNumber;

/// What one drop took.
#[derive(Debug)]
pub(crate) struct Doomed {
    pub(crate) database: Arc<Database>,
    /// Whether the database itself is dropped.
    pub(crate) whole: bool,
    pub(crate) tables: Vec<Arc<Table>>,
    /// Place in the log, 0 until it has one.
    seq: AtomicU64,
}

impl Doomed {
    /// Notes the drop's place in the log.
    pub(crate) fn set_seq(&self, seq: SequenceNumber) {
        self.seq.store(seq.0, Ordering::Release);
    }

    /// Returns whether the log up to `seq` has the drop.
    pub(crate) fn is_reached(&self, seq: SequenceNumber) -> bool {
        (1..=seq.0).contains(&self.seq.load(Ordering::Acquire))
    }
}

/// What a flush at some sequence number is about.
#[derive(Debug, Default)]
pub(crate) struct Flushable {
    pub(crate) databases: Vec<Arc<Database>>,
    pub(crate) tables: Vec<Arc<Table>>,
    /// Drops that the manifest can be told of.
    pub(crate) dropped: Vec<Arc<Doomed>>,
}

impl Registry {
    /// Takes a table out of sight. Called with the queue locked, so that every write behind it finds it gone.
    pub(crate) fn drop_table(&self, database: &Arc<Database>, table: &Arc<Table>) -> Arc<Doomed> {
        table.dropped.store(true, Ordering::Release);
        database.tables.write().remove(&table.layout().schema.table);
        // Whoever is about to remember a series of it finds it dropped.
        database.series_cache.write().clear();
        database.drops.fetch_add(1, Ordering::Release);
        self.doom(Doomed {
            database: Arc::clone(database),
            whole: false,
            tables: vec![Arc::clone(table)],
            seq: AtomicU64::new(0),
        })
    }

    /// Takes a database with all of its tables out of sight, as [`Registry::drop_table`] does.
    pub(crate) fn drop_database(&self, database: &Arc<Database>) -> Arc<Doomed> {
        database.dropped.store(true, Ordering::Release);
        let tables = database.tables();
        tables.iter().for_each(|table| table.dropped.store(true, Ordering::Release));
        self.databases.write().remove(&database.name);
        database.drops.fetch_add(1, Ordering::Release);
        self.doom(Doomed { database: Arc::clone(database), whole: true, tables, seq: AtomicU64::new(0) })
    }

    fn doom(&self, doomed: Doomed) -> Arc<Doomed> {
        let doomed = Arc::new(doomed);
        self.doomed.lock().push(Arc::clone(&doomed));
        doomed
    }

    /// Forgets drops that the manifest was told of.
    pub(crate) fn forget(&self, dropped: &[Arc<Doomed>]) {
        self.doomed.lock().retain(|doomed| !dropped.iter().any(|done| Arc::ptr_eq(done, doomed)));
    }

    /// Returns whether the manifest may have tables that were dropped.
    pub(crate) fn has_doomed(&self) -> bool {
        !self.doomed.lock().is_empty()
    }

    /// Returns what a flush of everything up to `seq` is about.
    ///
    /// A drop behind `seq` may never come to be: what it took is flushed as if it had not been. What has taken its name
    /// since waits for the next flush, all of it being behind the drop.
    pub(crate) fn flushable(&self, seq: SequenceNumber) -> Flushable {
        let doomed = self.doomed.lock().clone();
        let mut flushable = Flushable::default();
        let (mut databases, mut tables) = (HashSet::new(), HashSet::new());
        let mut add_tables = |database: &Arc<Database>, of: Vec<Arc<Table>>, to: &mut Vec<Arc<Table>>| {
            for table in of {
                if tables.insert((Arc::clone(&database.name), Arc::clone(&table.layout().schema.table))) {
                    to.push(table);
                }
            }
        };
        for doomed in doomed {
            if doomed.is_reached(seq) {
                flushable.dropped.push(doomed);
                continue;
            }
            add_tables(&doomed.database, doomed.tables.clone(), &mut flushable.tables);
            if doomed.whole && databases.insert(Arc::clone(&doomed.database.name)) {
                flushable.databases.push(Arc::clone(&doomed.database));
            }
        }
        for database in self.databases() {
            // A database that took the name of one whose drop is not reached yet: all of its tables are newer.
            if databases.insert(Arc::clone(&database.name)) {
                add_tables(&database, database.tables(), &mut flushable.tables);
                flushable.databases.push(database);
            }
        }
        flushable.databases.retain(|database| !database.in_manifest.load(Ordering::Acquire));
        flushable
    }
}
