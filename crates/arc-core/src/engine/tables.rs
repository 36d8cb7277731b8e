//! The live tables as SQL sees them, and those of older states.

use std::sync::{Arc, Weak};

use super::{history::PastState, shared::Shared};
use crate::{
    Error, PastMoment, Result, SnapshotInfo,
    model::{TableSchema, table_folder},
    query::QueryTables,
    registry::{Registry, Table},
    view::TableView,
};

/// The tables of an engine: as they are now, or as they were.
#[derive(Debug)]
pub(super) struct EngineTables {
    registry: Arc<Registry>,
    /// An answer that is still read keeps its tables, and not the engine.
    shared: Weak<Shared>,
    /// What keeps the files of an older state.
    _past: Option<PastState>,
}

impl EngineTables {
    /// Returns the tables as they are at each moment.
    pub(super) fn live(shared: &Arc<Shared>) -> Self {
        Self { registry: Arc::clone(&shared.registry), shared: Arc::downgrade(shared), _past: None }
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
        let closed = || Error::Closed { reason: "the engine is closed".into() };
        let past = self.shared.upgrade().ok_or_else(closed)?.past_state(moment)?;
        let (registry, shared) = (Arc::clone(&past.registry), Weak::clone(&self.shared));
        Ok(Arc::new(Self { registry, shared, _past: Some(past) }))
    }

    fn snapshots(&self) -> Vec<SnapshotInfo> {
        self.shared.upgrade().map(|shared| shared.snapshots()).unwrap_or_default()
    }
}
