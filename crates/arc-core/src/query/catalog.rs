//! The catalog that SQL sees: one catalog, a schema for each database, a table for each table.
//!
//! Built anew for every query, so that a table which a statement names twice is read from one view.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider},
    common::DataFusionError,
    datasource::TableType,
};
use parking_lot::Mutex;

use super::{Tables, session::CATALOG, table::Table};

/// Views taken by one query, by database and table.
type Snapshot = Mutex<HashMap<(String, String), Arc<Table>>>;

/// The list of catalogs, which has one entry.
#[derive(Debug)]
pub(super) struct Catalogs {
    catalog: Arc<Catalog>,
}

impl Catalogs {
    pub(super) fn new(tables: Arc<dyn Tables>) -> Self {
        Self { catalog: Arc::new(Catalog { tables, snapshot: Arc::default() }) }
    }
}

impl CatalogProviderList for Catalogs {
    fn register_catalog(&self, _name: String, _catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::clone(&self.catalog) as _)
    }
}

#[derive(Debug)]
struct Catalog {
    tables: Arc<dyn Tables>,
    snapshot: Arc<Snapshot>,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        self.tables.databases()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.tables.tables(name)?;
        Some(Arc::new(Database {
            name: name.to_owned(),
            tables: Arc::clone(&self.tables),
            snapshot: Arc::clone(&self.snapshot),
        }))
    }
}

#[derive(Debug)]
struct Database {
    name: String,
    tables: Arc<dyn Tables>,
    snapshot: Arc<Snapshot>,
}

#[async_trait]
impl SchemaProvider for Database {
    fn table_names(&self) -> Vec<String> {
        self.tables.tables(&self.name).unwrap_or_default()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let key = (self.name.clone(), name.to_owned());
        let mut snapshot = self.snapshot.lock();
        if let Some(table) = snapshot.get(&key) {
            return Ok(Some(Arc::clone(table) as _));
        }
        let view = self.tables.view(&self.name, name).map_err(|e| DataFusionError::External(Box::new(e)))?;
        let Some(view) = view else { return Ok(None) };
        let table = Arc::new(Table::new(view));
        snapshot.insert(key, Arc::clone(&table));
        Ok(Some(table))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>, DataFusionError> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.schema(&self.name, name).is_some()
    }
}
