//! The live tables as SQL sees them.

use std::sync::Arc;

use crate::{
    model::{TableSchema, table_folder},
    query::QueryTables,
    registry::{Registry, Table},
    view::TableView,
};

fn find(registry: &Registry, database: &str, table: &str) -> Option<Arc<Table>> {
    registry.database(database)?.table(table)
}

impl QueryTables for Registry {
    fn databases(&self) -> Vec<String> {
        Registry::databases(self).iter().map(|database| database.name.to_string()).collect()
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        let tables = self.database(database)?.tables();
        Some(tables.iter().map(|table| table.schema().table.to_string()).collect())
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        Some(find(self, database, table)?.schema())
    }

    fn view(&self, database: &str, table: &str) -> crate::Result<Option<TableView>> {
        find(self, database, table).map(|table| table.view()).transpose()
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        let table = find(self, database, table)?;
        let stored = table.stored();
        Some((stored.files.len(), stored.files.iter().map(|file| file.bytes).sum()))
    }

    fn folder(&self, database: &str, table: &str) -> String {
        table_folder(database, table)
    }
}
