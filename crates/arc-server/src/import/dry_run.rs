//! `--check`: an import into an empty store that has the tables of the real one without their rows, and is gone afterwards.
//!
//! So a file meets the types that it would meet, and what is said of it is what an import would say. The real store is only
//! read.

use arc_core::{
    ColumnTypes, Durability, Engine, Error, Result,
    catalog::{Column, ColumnKind, TableSchema},
    import::{ImportOptions, ImportTarget},
};
use tempfile::TempDir;

use super::command::ImportDestination;
use crate::config::Config;

/// Makes a store that has the tables of `real` that an import may meet; it lies in the folder that comes with it.
///
/// # Errors
///
/// If it cannot be made, or `real` does not say what tables it has.
pub(super) fn store(
    config: &Config,
    real: Option<&ImportDestination>,
    options: &ImportOptions,
) -> Result<(Engine, TempDir)> {
    let failed = |source| Error::Io { action: "create a folder in", path: std::env::temp_dir(), source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let mut engine_options = config.engine_options();
    engine_options.durability = Durability::Memory;
    let engine = Engine::builder(folder.path().join("data")).options(engine_options).open()?;
    match real {
        Some(ImportDestination::Directory(real)) => copy_tables(real, &engine, options)?,
        Some(ImportDestination::Server(real)) => {
            if let Some(table) = &options.table {
                let columns = real.columns(&options.database, table)?;
                if !columns.is_empty() {
                    engine.create_table(&schema(&options.database, table, columns))?;
                }
            }
        }
        None => {}
    }
    Ok((engine, folder))
}

/// Returns the schema of a table of which no more than the columns is known.
fn schema(database: &str, table: &str, columns: Vec<Column>) -> TableSchema {
    let has_primary_key = columns.iter().any(|column| column.kind == ColumnKind::Tag);
    TableSchema { database: database.into(), table: table.into(), has_primary_key, columns }
}

fn copy_tables(real: &Engine, to: &Engine, options: &ImportOptions) -> Result<()> {
    let database = options.database.as_str();
    let tables = match real.tables(database) {
        Err(Error::DatabaseNotFound { .. }) => return Ok(()),
        tables => tables?,
    };
    to.create_database(database)?;
    to.set_column_types(database, None, &real.effective_column_types(database, None))?;
    let wanted = |schema: &TableSchema| options.table.as_deref().is_none_or(|table| table == &*schema.table);
    for table in tables.iter().filter(|table| wanted(&table.schema)) {
        to.create_table(&table.schema)?;
        let types = real.column_types(database, Some(&table.schema.table))?;
        if types != ColumnTypes::default() {
            to.set_column_types(database, Some(&table.schema.table), &types)?;
        }
    }
    Ok(())
}
