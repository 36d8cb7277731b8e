//! The live tables as SQL sees them, and those of older states.

use std::sync::{Arc, Weak};

use super::{
    history::PastState,
    reader::{Pin, Reader},
    shared::Shared,
};
use crate::{
    Error, PastMoment, Result, SnapshotInfo,
    model::{TableSchema, table_folder},
    query::{PinnedTables, PlanningPin, QueryTables},
    registry::{Registry, Table},
    view::TableView,
};

/// The tables of an engine: as they are now, or as they were.
#[derive(Debug)]
pub(super) struct EngineTables {
    registry: Arc<Registry>,
    states: PastStates,
    /// What keeps the files of an older state.
    _past: Option<Arc<PastState>>,
}

/// What has the older states. An answer that is still read keeps its tables, and not the engine.
#[derive(Debug, Clone)]
enum PastStates {
    Writer(Weak<Shared>),
    Reader(Weak<Reader>),
}

impl PastStates {
    fn at(&self, moment: &PastMoment) -> Result<Arc<PastState>> {
        match self {
            Self::Writer(shared) => open(shared)?.past_state(moment),
            Self::Reader(reader) => open(reader)?.past_state(moment),
        }
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        match self {
            Self::Writer(shared) => Ok(open(shared)?.snapshots()),
            Self::Reader(reader) => Ok(open(reader)?.snapshots()),
        }
    }
}

fn open<T>(of: &Weak<T>) -> Result<Arc<T>> {
    of.upgrade().ok_or_else(|| Error::Closed { reason: "the engine is closed".into() })
}

impl EngineTables {
    /// Returns the tables as they are at each moment.
    pub(super) fn live(shared: &Arc<Shared>) -> Self {
        let states = PastStates::Writer(Arc::downgrade(shared));
        Self { registry: Arc::clone(shared.schema.registry()), states, _past: None }
    }

    /// Returns the tables as a reader sees them, in one version.
    fn seen(registry: Arc<Registry>, reader: &Arc<Reader>) -> Self {
        Self { registry, states: PastStates::Reader(Arc::downgrade(reader)), _past: None }
    }

    fn table(&self, database: &str, table: &str) -> Option<Arc<Table>> {
        self.registry.database(database)?.table(table)
    }
}

impl QueryTables for EngineTables {
    fn databases(&self) -> Vec<String> {
        self.registry.databases().iter().map(|database| database.name.to_string()).collect()
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        let tables = self.registry.database(database)?.tables();
        Some(tables.iter().map(|table| table.schema().table.to_string()).collect())
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        Some(self.table(database, table)?.schema())
    }

    fn view(&self, database: &str, table: &str) -> Result<Option<TableView>> {
        self.table(database, table).map(|table| table.view()).transpose()
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        let table = self.table(database, table)?;
        let stored = table.stored();
        Some((stored.files.len(), stored.files.iter().map(|file| file.bytes).sum()))
    }

    fn folder(&self, database: &str, table: &str) -> String {
        table_folder(database, table)
    }

    fn at(&self, moment: &PastMoment) -> Result<Arc<dyn QueryTables>> {
        let past = self.states.at(moment)?;
        let (registry, states) = (Arc::clone(&past.registry), self.states.clone());
        Ok(Arc::new(Self { registry, states, _past: Some(past) }))
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        self.states.snapshots()
    }
}

impl PlanningPin for Pin {}

/// The tables that a reader sees. A statement has them pinned: others come from the last look.
#[derive(Debug)]
pub(super) struct ReaderTables(pub(super) Arc<Reader>);

impl ReaderTables {
    fn seen(&self) -> EngineTables {
        EngineTables::seen(self.0.seen(), &self.0)
    }
}

impl QueryTables for ReaderTables {
    fn databases(&self) -> Vec<String> {
        self.seen().databases()
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        self.seen().tables(database)
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        self.seen().schema(database, table)
    }

    fn view(&self, database: &str, table: &str) -> Result<Option<TableView>> {
        self.seen().view(database, table)
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        self.seen().file_totals(database, table)
    }

    fn folder(&self, database: &str, table: &str) -> String {
        table_folder(database, table)
    }

    fn at(&self, moment: &PastMoment) -> Result<Arc<dyn QueryTables>> {
        self.seen().at(moment)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        self.seen().snapshots()
    }

    fn pinned(&self) -> Result<Option<PinnedTables>> {
        let pin = self.0.pin()?;
        let tables = Arc::new(EngineTables::seen(Arc::clone(pin.registry()), &self.0));
        Ok(Some(PinnedTables { tables, pin: Box::new(pin) }))
    }
}
