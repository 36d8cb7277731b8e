//! One table, as it was at one moment, and nothing beside it.

use std::sync::Arc;

use super::QueryTables;
use crate::{
    Error, PastMoment, Result, SnapshotInfo,
    model::{TableSchema, table_folder},
    view::TableView,
};

/// See the module.
#[derive(Debug)]
pub(super) struct OneView(pub(super) TableView);

impl OneView {
    fn is(&self, database: &str, table: &str) -> bool {
        *self.0.schema.database == *database && *self.0.schema.table == *table
    }
}

impl QueryTables for OneView {
    fn databases(&self) -> Vec<String> {
        vec![self.0.schema.database.to_string()]
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        (*self.0.schema.database == *database).then(|| vec![self.0.schema.table.to_string()])
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        self.is(database, table).then(|| Arc::clone(&self.0.schema))
    }

    fn view(&self, database: &str, table: &str) -> Result<Option<TableView>> {
        Ok(self.is(database, table).then(|| self.0.clone()))
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        let files = &self.0.files;
        self.is(database, table).then(|| (files.len(), files.iter().map(|file| file.bytes).sum()))
    }

    fn folder(&self, database: &str, table: &str) -> String {
        table_folder(database, table)
    }

    fn at(&self, _: &PastMoment) -> Result<Arc<dyn QueryTables>> {
        Err(Error::internal("a view has no older states"))
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        Ok(Vec::new())
    }
}
