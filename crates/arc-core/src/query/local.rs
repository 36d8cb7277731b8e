//! Tables that a statement brings along: rows of its caller, which one statement sees and none after it.
//!
//! They stand in the database that the statement is asked in, and a table that is there comes
//! before one of them. Never stored, never shown by `SHOW` or the information schema.

use std::{collections::HashMap, sync::Arc};

use arrow::array::RecordBatch;
use datafusion::{catalog::TableProvider, datasource::MemTable};

use super::{error, statement::refuse};
use crate::Result;

/// The tables of one statement, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct LocalTables(Arc<HashMap<String, Arc<MemTable>>>);

impl LocalTables {
    /// Adds a table; one of the same name goes.
    pub(super) fn add(&mut self, name: &str, batches: Vec<RecordBatch>) -> Result<()> {
        let Some(first) = batches.first() else {
            return refuse(format!("the local table {name:?} has no batch, and so no columns"));
        };
        let schema = first.schema();
        let mut names = schema.fields().iter().map(|field| field.name()).collect::<Vec<_>>();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| pair.first()) {
            return refuse(format!("the local table {name:?} has two columns called {twice:?}"));
        }
        let table = MemTable::try_new(schema, vec![batches]).map_err(error::from_datafusion)?;
        Arc::make_mut(&mut self.0).insert(name.to_owned(), Arc::new(table));
        Ok(())
    }

    /// Returns the tables as those of a database.
    pub(super) fn of(&self, database: &str) -> LocalDatabase {
        LocalDatabase { name: database.into(), tables: self.clone() }
    }
}

/// The tables of one statement, and the database in which they are.
#[derive(Debug, Clone, Default)]
pub(super) struct LocalDatabase {
    name: Arc<str>,
    tables: LocalTables,
}

impl LocalDatabase {
    /// Returns the table of that name, if there is one.
    pub(super) fn table(&self, database: &str, name: &str) -> Option<Arc<dyn TableProvider>> {
        let table = self.tables.0.get(name).filter(|_| *database == *self.name)?;
        Some(Arc::clone(table) as _)
    }
}
