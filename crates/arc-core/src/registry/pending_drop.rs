//! Tables that were dropped: out of sight at once, and kept until the manifest has forgotten them.
//!
//! Owns which tables a flush is about while drops are on their way. Never decides when a drop is
//! done: that is its place in the log, which the committer notes here.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};

use hashbrown::HashSet;

use super::{Database, Registry, Table};
use crate::{
    SequenceNumber,
    defects::{Defect, is_on},
    sync::AtomicU64,
};

/// What one drop took.
#[derive(Debug)]
pub(crate) struct PendingDrop {
    pub(crate) database: Arc<Database>,
    /// Whether the database itself is dropped.
    pub(crate) whole: bool,
    pub(crate) tables: Vec<Arc<Table>>,
    /// Place in the log, 0 until it has one.
    seq: AtomicU64,
}

impl PendingDrop {
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
    pub(crate) dropped: Vec<Arc<PendingDrop>>,
}

impl Registry {
    /// Takes a table out of sight. Called with the queue locked, so that every write after it finds
    /// it gone. Waits for no thread that decodes: no write of any database is logged or answered
    /// meanwhile.
    pub(crate) fn drop_table(&self, database: &Arc<Database>, table: &Arc<Table>) -> Arc<PendingDrop> {
        // Before the count goes up: the thread that is about to remember a series of it finds it
        // dropped, or what is remembered outdated.
        table.dropped.store(true, Ordering::Release);
        let name = Arc::clone(&table.layout().schema.table);
        if is_on(Defect::DropLeavesBothLists) {
            database.tables.write().remove(&name);
            drop(database.series_cache.write());
        }
        if is_on(Defect::DropWaitsForDecodes) {
            drop(database.series_cache.write());
        }
        database.drops.fetch_add(1, Ordering::Release);
        // Among the dropped ones before it leaves the live ones: a flush that found it in neither
        // list would leave its rows out, and release them from the log.
        let pending = self.add_pending(PendingDrop {
            database: Arc::clone(database),
            whole: false,
            tables: vec![Arc::clone(table)],
            seq: AtomicU64::new(0),
        });
        database.tables.write().remove(&name);
        pending
    }

    /// Takes a database with all of its tables out of sight, as [`Registry::drop_table`] does.
    pub(crate) fn drop_database(&self, database: &Arc<Database>) -> Arc<PendingDrop> {
        database.dropped.store(true, Ordering::Release);
        let tables = database.tables();
        tables.iter().for_each(|table| table.dropped.store(true, Ordering::Release));
        if is_on(Defect::DropLeavesBothLists) {
            self.databases.write().remove(&database.name);
        }
        database.drops.fetch_add(1, Ordering::Release);
        let pending = self.add_pending(PendingDrop {
            database: Arc::clone(database),
            whole: true,
            tables,
            seq: AtomicU64::new(0),
        });
        self.databases.write().remove(&database.name);
        pending
    }

    fn add_pending(&self, pending: PendingDrop) -> Arc<PendingDrop> {
        let pending = Arc::new(pending);
        self.pending_drops.lock().push(Arc::clone(&pending));
        pending
    }

    /// Forgets drops that the manifest was told of.
    pub(crate) fn forget(&self, dropped: &[Arc<PendingDrop>]) {
        self.pending_drops.lock().retain(|pending| !dropped.iter().any(|done| Arc::ptr_eq(done, pending)));
    }

    /// Returns whether the manifest may have tables that were dropped.
    pub(crate) fn has_pending_drops(&self) -> bool {
        !self.pending_drops.lock().is_empty()
    }

    /// Returns what a flush of everything up to `seq` is about.
    ///
    /// A drop after `seq` may never come to be: what it took is flushed as if it had not been. What
    /// has taken its name since waits for the next flush, all of it being after the drop.
    pub(crate) fn flushable(&self, seq: SequenceNumber) -> Flushable {
        // The live ones are listed first: what is dropped in between is in both lists then, not in
        // neither.
        let live: Vec<_> = self.databases().into_iter().map(|database| (database.tables(), database)).collect();
        let (dropped, pending): (Vec<_>, Vec<_>) =
            self.pending_drops.lock().iter().cloned().partition(|pending| pending.is_reached(seq));
        // Of each name the first database whose end is not reached: all that has taken its name
        // since is newer than `seq`, and so is a database that is in neither list.
        let mut databases: BTreeMap<&str, &Arc<Database>> = BTreeMap::new();
        let whole = pending.iter().filter(|pending| pending.whole).map(|pending| &pending.database);
        for database in whole.chain(live.iter().map(|(_, database)| database)) {
            databases.entry(&database.name).or_insert(database);
        }
        let pending_tables = pending.iter().map(|pending| (&pending.tables, &pending.database));
        let (mut tables, mut names) = (Vec::new(), HashSet::new());
        for (of, database) in pending_tables.chain(live.iter().map(|(tables, database)| (tables, database))) {
            if !databases.get(&*database.name).is_some_and(|first| Arc::ptr_eq(first, database)) {
                continue;
            }
            for table in of {
                if names.insert((Arc::clone(&database.name), Arc::clone(&table.layout().schema.table))) {
                    tables.push(Arc::clone(table));
                }
            }
        }
        let databases = databases.into_values().filter(|database| !database.in_manifest.load(Ordering::Acquire));
        Flushable { databases: databases.cloned().collect(), tables, dropped }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use super::*;
    use crate::model::TableSchema;

    /// A long time for a thread that has nothing to wait for.
    const SOON: Duration = Duration::from_secs(20);

    fn registry() -> (Arc<Registry>, Arc<Database>, Arc<Table>) {
        let (registry, database) = (Arc::new(Registry::default()), Arc::new(Database::new("d", 0, true)));
        registry.add(Arc::clone(&database));
        let schema =
            TableSchema { database: "d".into(), table: "t".into(), has_primary_key: true, columns: Vec::new() };
        let table = Arc::new(Table::new(schema));
        database.add(Arc::clone(&table));
        (registry, database, table)
    }

    fn knows(registry: &Registry, table: &Arc<Table>) -> [usize; 2] {
        let count = |tables: Vec<Arc<Table>>| tables.iter().filter(|known| Arc::ptr_eq(known, table)).count();
        [count(registry.all_tables()), count(registry.flushable(SequenceNumber(5)).tables)]
    }

    #[test]
    fn a_flush_finds_a_table_that_is_being_dropped_at_every_moment() {
        for round in 0..200 {
            let (registry, database, table) = registry();
            let is_dropped = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    if round % 2 == 0 {
                        registry.drop_table(&database, &table);
                    } else {
                        registry.drop_database(&database);
                    }
                    is_dropped.store(true, Ordering::Release);
                });
                loop {
                    let is_last = is_dropped.load(Ordering::Acquire);
                    assert_eq!(knows(&registry, &table), [1, 1], "round {round}");
                    if is_last {
                        break;
                    }
                }
            });
            assert!(database.table("t").is_none() || round % 2 == 1);
        }
    }

    /// A database of that name, with a table of each of these names.
    fn database(name: &str, tables: &[&str]) -> Arc<Database> {
        let database = Arc::new(Database::new(name, 0, false));
        for table in tables {
            let schema = TableSchema {
                database: name.into(),
                table: (*table).into(),
                has_primary_key: true,
                columns: Vec::new(),
            };
            database.add(Arc::new(Table::new(schema)));
        }
        database
    }

    #[test]
    fn what_has_taken_the_name_of_a_database_waits_for_the_end_of_that() {
        let registry = Registry::default();
        let (first, second) = (database("d", &["a"]), database("d", &["b", "c"]));
        registry.add(Arc::clone(&first));
        registry.drop_database(&first);
        registry.add(Arc::clone(&second));
        registry.drop_table(&second, &second.table("c").unwrap());
        registry.drop_database(&second);
        let Flushable { databases, tables, dropped } = registry.flushable(SequenceNumber(5));
        let tables: Vec<_> = tables.iter().map(|table| table.schema().table.to_string()).collect();
        assert_eq!((tables.as_slice(), dropped.len()), (&["a".to_owned()][..], 0), "the second is newer");
        assert!(Arc::ptr_eq(&databases[0], &first) && databases.len() == 1);
    }

    #[test]
    fn a_table_of_a_database_that_came_after_the_others_were_listed_waits() {
        // As if the database had come and lost its table between the two lists.
        let (registry, database) = (Registry::default(), database("d", &["a"]));
        registry.drop_table(&database, &database.table("a").unwrap());
        let Flushable { databases, tables, .. } = registry.flushable(SequenceNumber(5));
        assert!(databases.is_empty() && tables.is_empty(), "there is no database for the table");
    }

    #[test]
    fn a_drop_waits_for_no_request_that_is_being_decoded() {
        let (registry, database, table) = registry();
        database.series_cache.write().insert(b"t,h=a", &table, 0);
        let (done, is_done) = mpsc::channel();
        let decoding = database.fresh_series();
        let dropping = std::thread::spawn({
            let (registry, database, table) = (Arc::clone(&registry), Arc::clone(&database), Arc::clone(&table));
            move || {
                registry.drop_table(&database, &table);
                done.send(()).unwrap();
            }
        });
        let dropped = is_done.recv_timeout(SOON);
        assert_eq!(knows(&registry, &table), [1, 1], "out of sight, and known to the flush");
        assert!(decoding.get(b"t,h=a", 0).is_some(), "the request is told when it is to be queued");
        drop(decoding);
        dropping.join().unwrap();
        dropped.unwrap();
        assert!(database.table("t").is_none());
        assert!(database.fresh_series().get(b"t,h=a", 0).is_none(), "the next request does not find it");
    }
}
