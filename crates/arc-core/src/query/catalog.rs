//! The catalog that SQL sees: one catalog, a schema for each database, a table for each table.
//!
//! Built anew for every query, so that a table which a statement names twice is read from one view.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    catalog::{
        CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider,
        information_schema::InformationSchemaProvider,
    },
    common::DataFusionError,
    datasource::{MemTable, empty::EmptyTable},
};
use futures::future::{self, BoxFuture};
use parking_lot::Mutex;

use super::{QueryTables, ScannedFiles, latest, local::LocalDatabase, past, session::CATALOG, table::QueriedTable};

/// Name of the schema that describes all others.
const INFORMATION_SCHEMA: &str = "information_schema";

/// The one of its tables that is not shown: it holds the server's settings and paths.
const HIDDEN_TABLE: &str = "df_settings";

/// The one that has a row for each view.
const VIEWS: &str = "views";

/// Tables read by one query, by database and name.
type Snapshot = Mutex<HashMap<(String, String), Arc<QueriedTable>>>;

/// The list of catalogs, which has one entry.
#[derive(Debug)]
pub(super) struct Catalogs {
    catalog: Arc<Catalog>,
}

impl Catalogs {
    /// Returns the catalog of one query.
    pub(super) fn new(tables: Arc<dyn QueryTables>, cache: Arc<latest::NewestRowsCache>, local: LocalDatabase) -> Self {
        // The information schema asks for every table, of which it wants columns and no rows.
        let shapes = Catalog {
            tables: Arc::clone(&tables),
            snapshot: None,
            cache: Arc::clone(&cache),
            information: None,
            local: LocalDatabase::default(),
        };
        let information = InformationSchemaProvider::new(Arc::new(Self { catalog: Arc::new(shapes) }));
        let information = Some(Arc::new(Information(information)));
        Self { catalog: Arc::new(Catalog { tables, snapshot: Some(Arc::default()), cache, information, local }) }
    }
}

impl Catalogs {
    /// Returns what became of the data files of each table that was scanned, in order of name.
    pub(super) fn scans(&self) -> Vec<String> {
        let Some(snapshot) = &self.catalog.snapshot else { return Vec::new() };
        let snapshot = snapshot.lock();
        let mut tables: Vec<_> = snapshot.iter().collect();
        tables.sort_by_key(|(name, _)| *name);
        let scans = tables.into_iter().flat_map(|((database, table), scanned)| {
            scanned.scans().into_iter().map(move |scan| format!("{}.{table}: {scan}", past::shown(database)))
        });
        scans.collect()
    }
}

impl Catalogs {
    /// Returns how many data files the scans read.
    pub(super) fn scanned_files(&self) -> ScannedFiles {
        let Some(snapshot) = &self.catalog.snapshot else { return ScannedFiles::default() };
        snapshot.lock().values().flat_map(|scanned| scanned.scans()).collect()
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
    tables: Arc<dyn QueryTables>,
    /// `None` where tables are asked for their columns only.
    snapshot: Option<Arc<Snapshot>>,
    cache: Arc<latest::NewestRowsCache>,
    information: Option<Arc<Information>>,
    local: LocalDatabase,
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.tables.databases();
        names.sort_unstable();
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        // Any other name may be a database; that it is none shows when a table is looked up in it.
        if name.eq_ignore_ascii_case(INFORMATION_SCHEMA)
            && let Some(information) = &self.information
        {
            return Some(Arc::clone(information) as _);
        }
        let (tables, snapshot, cache) = (Arc::clone(&self.tables), self.snapshot.clone(), Arc::clone(&self.cache));
        let local = self.local.clone();
        Some(Arc::new(CatalogDatabase { name: name.to_owned(), tables, snapshot, cache, local }))
    }
}

#[derive(Debug)]
struct CatalogDatabase {
    name: String,
    tables: Arc<dyn QueryTables>,
    snapshot: Option<Arc<Snapshot>>,
    cache: Arc<latest::NewestRowsCache>,
    local: LocalDatabase,
}

impl CatalogDatabase {
    fn find(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some(snapshot) = &self.snapshot else {
            let shape = self.tables.schema(&self.name, name);
            return Ok(shape.map(|shape| Arc::new(EmptyTable::new(shape.arrow())) as _));
        };
        let key = (self.name.clone(), name.to_owned());
        let mut snapshot = snapshot.lock();
        if let Some(table) = snapshot.get(&key) {
            return Ok(Some(Arc::clone(table) as _));
        }
        let view = self.tables.view(&self.name, name).map_err(|e| DataFusionError::External(Box::new(e)))?;
        let Some(view) = view else { return Ok(self.local.table(&self.name, name)) };
        let table = Arc::new(QueriedTable::new(view, Arc::clone(&self.cache)));
        snapshot.insert(key, Arc::clone(&table));
        Ok(Some(table))
    }
}

// Written out instead of by `async_trait`; see "Futures" in `query`.
impl SchemaProvider for CatalogDatabase {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.tables.tables(&self.name).unwrap_or_default();
        names.sort_unstable();
        names
    }

    fn table<'a, 'b, 'f>(
        &'a self,
        name: &'b str,
    ) -> BoxFuture<'f, Result<Option<Arc<dyn TableProvider>>, DataFusionError>>
    where
        'a: 'f,
        'b: 'f,
    {
        Box::pin(future::ready(self.find(name)))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.schema(&self.name, name).is_some()
    }
}

/// The information schema, whose names are accepted in any case, unlike those of our tables.
#[derive(Debug)]
struct Information(InformationSchemaProvider);

#[async_trait]
impl SchemaProvider for Information {
    fn table_names(&self) -> Vec<String> {
        self.0.table_names().into_iter().filter(|name| name != HIDDEN_TABLE).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let name = name.to_ascii_lowercase();
        let table = if name == HIDDEN_TABLE { None } else { self.0.table(&name).await? };
        // All tables are listed there, and none is a view.
        Ok(match table {
            Some(views) if name == VIEWS => Some(Arc::new(MemTable::try_new(views.schema(), vec![Vec::new()])?)),
            table => table,
        })
    }

    fn table_exist(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        name != HIDDEN_TABLE && self.0.table_exist(&name)
    }
}
