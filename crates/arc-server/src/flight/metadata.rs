//! What there is, as Flight SQL asks for it: one catalog, a schema for each database, and the tables.

use std::sync::Arc;

use arc_core::{Engine, ErrorKind, TableInfo, catalog::TableSchema};
use arrow::{
    array::{ArrayRef, Int32Array, RecordBatch, StringArray},
    datatypes::{DataType, Field, Schema},
};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTableTypes, CommandGetTables,
};

use super::target::CATALOG;
use crate::{auth::Caller, errors::Failure, query::layout};

/// The one type of tables.
const TABLE: &str = "TABLE";
/// Name of the column that every table has.
const TIME: &str = "time";

pub(super) fn catalogs(asked: CommandGetCatalogs) -> Result<RecordBatch, Failure> {
    let mut builder = asked.into_builder();
    builder.append(CATALOG);
    builder.build().map_err(|error| unreadable(&error))
}

pub(super) fn databases(engine: &Engine, caller: &Caller, asked: CommandGetDbSchemas) -> Result<RecordBatch, Failure> {
    let mut builder = asked.into_builder();
    for database in engine.databases().into_iter().filter(|database| caller.sees(&database.name)) {
        builder.append(CATALOG, database.name);
    }
    builder.build().map_err(|error| unreadable(&error))
}

pub(super) fn tables(engine: &Engine, caller: &Caller, asked: CommandGetTables) -> Result<RecordBatch, Failure> {
    let mut builder = asked.into_builder();
    for database in engine.databases().into_iter().filter(|database| caller.sees(&database.name)) {
        let tables = tables_of(engine, &database.name)?.into_iter();
        for table in tables.filter(|table| caller.reads(&database.name, &table.schema.table)) {
            let columns = layout::readable(&table.schema.arrow(), false);
            let added = builder.append(CATALOG, &database.name, &*table.schema.table, TABLE, &columns);
            added.map_err(|error| unreadable(&error))?;
        }
    }
    builder.build().map_err(|error| unreadable(&error))
}

/// Returns the tables of a database, none if it is gone meanwhile.
fn tables_of(engine: &Engine, database: &str) -> Result<Vec<TableInfo>, Failure> {
    match engine.tables(database) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => Ok(other?),
    }
}

pub(super) fn table_types(asked: CommandGetTableTypes) -> Result<RecordBatch, Failure> {
    let mut builder = asked.into_builder();
    builder.append(TABLE);
    builder.build().map_err(|error| unreadable(&error))
}

/// Returns what identifies a row: all tags and the time, or nothing in a table whose rows append.
pub(super) fn primary_keys(
    engine: &Engine,
    caller: &Caller,
    asked: &CommandGetPrimaryKeys,
) -> Result<RecordBatch, Failure> {
    let mut keys = Vec::new();
    let is_ours = matches!(asked.catalog.as_deref(), None | Some(CATALOG));
    let wanted = |name: &str| {
        is_ours
            && caller.reads(name, &asked.table)
            && asked.db_schema.as_deref().is_none_or(|database| database == name)
    };
    for database in engine.databases().into_iter().filter(|database| wanted(&database.name)) {
        if let Ok(schema) = engine.schema(&database.name, &asked.table) {
            keys.extend(key_columns(&schema).into_iter().map(|column| (database.name.clone(), column)));
        }
    }
    let text = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
    let sequence = keys.iter().map(|(_, (position, _))| *position);
    let columns = vec![
        text(keys.iter().map(|_| CATALOG).collect()),
        text(keys.iter().map(|(database, _)| database.as_str()).collect()),
        text(keys.iter().map(|_| asked.table.as_str()).collect()),
        text(keys.iter().map(|(_, (_, column))| column.as_str()).collect()),
        Arc::new(Int32Array::from_iter_values(sequence)) as ArrayRef,
        Arc::new(StringArray::new_null(keys.len())),
    ];
    let fields = [
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("key_name", DataType::Utf8, true),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).map_err(|error| unreadable(&error))
}

/// Returns the columns that identify a row, with their positions from 1.
fn key_columns(schema: &TableSchema) -> Vec<(i32, String)> {
    if !schema.has_primary_key {
        return Vec::new();
    }
    let tags = schema.tags().map(|tag| tag.name.to_string());
    (1..).zip(tags.chain([TIME.to_owned()])).collect()
}

/// Returns the answer about foreign keys, of which there are none.
pub(super) fn no_foreign_keys() -> RecordBatch {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    let fields = vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ];
    RecordBatch::new_empty(Arc::new(Schema::new(fields)))
}

fn unreadable(error: &dyn std::fmt::Display) -> Failure {
    Failure::bad_request(format!("cannot list what was asked for: {error}"))
}
