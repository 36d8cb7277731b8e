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
    /// What has older states: none where another process writes. An answer that is still read keeps
    /// its tables, and not the engine.
    shared: Option<Weak<Shared>>,
    /// What keeps the files of an older state.
    _past: Option<PastState>,
}

impl EngineTables {
    /// Returns the tables as they are at each moment.
    pub(super) fn live(shared: &Arc<Shared>) -> Self {
        Self { registry: Arc::clone(&shared.registry), shared: Some(Arc::downgrade(shared)), _past: None }
    }

    /// Returns the tables as a reader sees them, in one version.
    fn seen(registry: Arc<Registry>) -> Self {
        Self { registry, shared: None, _past: None }
    }

    fn shared(&self) -> Result<Arc<Shared>> {
        let reason = "older states and snapshots are with the process that writes; this one reads what is there now";
        let elsewhere = || Error::OutsideHistory { reason: reason.to_owned() };
        let closed = || Error::Closed { reason: "the engine is closed".into() };
        self.shared.as_ref().ok_or_else(elsewhere)?.upgrade().ok_or_else(closed)
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
        let past = self.shared()?.past_state(moment)?;
        let (registry, shared) = (Arc::clone(&past.registry), self.shared.clone());
        Ok(Arc::new(Self { registry, shared, _past: Some(past) }))
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        Ok(self.shared()?.snapshots())
    }
}

impl PlanningPin for Pin {}

/// The tables that a reader sees. A statement has them pinned: others come from the last look.
impl QueryTables for Reader {
    fn databases(&self) -> Vec<String> {
        EngineTables::seen(self.seen()).databases()
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        EngineTables::seen(self.seen()).tables(database)
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        EngineTables::seen(self.seen()).schema(database, table)
    }

    fn view(&self, database: &str, table: &str) -> Result<Option<TableView>> {
        EngineTables::seen(self.seen()).view(database, table)
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        EngineTables::seen(self.seen()).file_totals(database, table)
    }

    fn folder(&self, database: &str, table: &str) -> String {
        table_folder(database, table)
    }

    fn at(&self, moment: &PastMoment) -> Result<Arc<dyn QueryTables>> {
        EngineTables::seen(self.seen()).at(moment)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        EngineTables::seen(self.seen()).snapshots()
    }

    fn pinned(&self) -> Result<Option<PinnedTables>> {
        let pin = self.pin()?;
        let tables = Arc::new(EngineTables::seen(Arc::clone(pin.registry())));
        Ok(Some(PinnedTables { tables, pin: Box::new(pin) }))
    }
}
