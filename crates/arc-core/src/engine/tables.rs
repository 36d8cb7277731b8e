//! The live tables as SQL sees them.

use std::sync::Arc;

use super::reader::{Pin, Reader};
use crate::{
    model::{TableSchema, table_folder},
    query::{PinnedTables, PlanningPin, QueryTables},
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

impl PlanningPin for Pin {}

/// The tables that a reader sees. A statement has them pinned: others come from the last look.
impl QueryTables for Reader {
    fn databases(&self) -> Vec<String> {
        QueryTables::databases(&*self.seen())
    }

    fn tables(&self, database: &str) -> Option<Vec<String>> {
        QueryTables::tables(&*self.seen(), database)
    }

    fn schema(&self, database: &str, table: &str) -> Option<Arc<TableSchema>> {
        QueryTables::schema(&*self.seen(), database, table)
    }

    fn view(&self, database: &str, table: &str) -> crate::Result<Option<TableView>> {
        QueryTables::view(&*self.seen(), database, table)
    }

    fn file_totals(&self, database: &str, table: &str) -> Option<(usize, u64)> {
        QueryTables::file_totals(&*self.seen(), database, table)
    }

    fn folder(&self, database: &str, table: &str) -> String {
        table_folder(database, table)
    }

    fn pinned(&self) -> crate::Result<Option<PinnedTables>> {
        let pin = self.pin()?;
        let tables = Arc::<Registry>::clone(pin.registry());
        Ok(Some(PinnedTables { tables, pin: Box::new(pin) }))
    }
}
