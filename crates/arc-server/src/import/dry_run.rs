//! `--check`: an import into an empty store that has the tables of the real one without their rows, and is gone afterwards.
//!
//! So a file meets the types that it would meet, and what is said of it is what an import would say. The real store is only
//! read.

use std::path::Path;

use arc_core::{
    ColumnTypes, Durability, Engine, Error, Options, Result,
    catalog::{Column, ColumnKind, TableSchema},
    import::{ImportOptions, ImportTarget},
};
use tempfile::TempDir;

use super::remote::Remote;

/// Most tables that a dry run makes.
pub(super) const MAX_TABLES: usize = 1_000;

/// A store without rows, and the folder in which it lies.
#[derive(Debug)]
pub(super) struct DryRun {
    pub(super) engine: Engine,
    _folder: TempDir,
}

impl DryRun {
    /// Makes a store without tables below a folder.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub(super) fn new(below: &Path, mut options: Options) -> Result<Self> {
        let failed = |source| Error::Io { action: "create a folder in", path: below.to_owned(), source };
        let folder = tempfile::tempdir_in(below).map_err(failed)?;
        options.durability = Durability::Memory;
        let engine = Engine::builder(folder.path().join("data")).options(options).open()?;
        Ok(Self { engine, _folder: folder })
    }

    /// Makes the table that a server has, if it has it.
    ///
    /// # Errors
    ///
    /// If the server does not say.
    pub(super) fn copy_table(&self, of: &Remote, options: &ImportOptions) -> Result<()> {
        let Some(table) = &options.table else { return Ok(()) };
        let columns = of.columns(&options.database, table)?;
        if columns.is_empty() {
            return Ok(());
        }
        self.engine.create_table(&schema(&options.database, table, columns))
    }

    /// Makes the tables of a store that the import may meet.
    ///
    /// # Errors
    ///
    /// If the store cannot say what it has.
    pub(super) fn copy_tables(&self, of: &Engine, options: &ImportOptions) -> Result<()> {
        let database = options.database.as_str();
        let tables = match of.tables(database) {
            Err(Error::DatabaseNotFound { .. }) => return Ok(()),
            tables => tables?,
        };
        self.engine.create_database(database)?;
        self.engine.set_column_types(database, None, &of.effective_column_types(database, None))?;
        let wanted = |schema: &TableSchema| options.table.as_deref().is_none_or(|table| table == &*schema.table);
        let tables: Vec<_> = tables.iter().filter(|table| wanted(&table.schema)).collect();
        if tables.len() > MAX_TABLES {
            let reason = format!("database {database:?} has more than {MAX_TABLES} tables: name the one that is meant");
            return Err(Error::InvalidOption { option: "check", reason });
        }
        for table in tables {
            self.engine.create_table(&table.schema)?;
            let types = of.column_types(database, Some(&table.schema.table))?;
            if types != ColumnTypes::default() {
                self.engine.set_column_types(database, Some(&table.schema.table), &types)?;
            }
        }
        Ok(())
    }
}

/// Returns the schema of a table of which no more than the columns is known.
fn schema(database: &str, table: &str, columns: Vec<Column>) -> TableSchema {
    let has_primary_key = columns.iter().any(|column| column.kind == ColumnKind::Tag);
    TableSchema { database: database.into(), table: table.into(), has_primary_key, columns }
}
