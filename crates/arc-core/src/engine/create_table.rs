//! Tables that are made before their first write.

use std::sync::Arc;

use super::{Engine, logged::schema_change, queue::Made, shared::Shared};
use crate::{
    ColumnTypes, Error, Result,
    catalog::comes_back,
    datafile::is_storable,
    ingest::{MAX_COLUMNS, check_column_name},
    model::{ColumnKind, TableSchema, check_row_bytes, check_type, tag_type},
    registry::{Table, check_database_name, check_name, invalid_name},
};

impl Engine {
    /// Makes a table without rows: its columns, which of them are tags, and whether rows of the
    /// same tags and time merge. Writes make theirs by themselves; this is for who wants to say it
    /// before. The database is made if there is none.
    ///
    /// Returns once it is as durable as `disk` says.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::catalog::{Column, ColumnKind, TableSchema, tag_type};
    /// use arrow::datatypes::DataType;
    ///
    /// engine.create_table(&TableSchema {
    ///     database: "plant".into(),
    ///     table: "pump".into(),
    ///     has_primary_key: true,
    ///     columns: vec![
    ///         Column { name: "id".into(), kind: ColumnKind::Tag, data_type: tag_type() },
    ///         Column { name: "rpm".into(), kind: ColumnKind::Field, data_type: DataType::Float64 },
    ///     ],
    /// })?;
    /// assert_eq!(engine.schema("plant", "pump")?.columns.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for bad names, for columns that
    /// no table can have, and for a table that is there ([`Error::TableExists`]).
    pub fn create_table(&self, schema: &TableSchema) -> Result<()> {
        check(schema)?;
        match self.create_database(&schema.database) {
            Ok(()) | Err(Error::DatabaseExists { .. }) => {}
            Err(error) => return Err(error),
        }
        let shared = self.writer()?;
        shared.create_table(schema)?;
        shared.settle_change()
    }

    /// Makes a table as [`create_table`](Self::create_table) does, and says how strict it is about
    /// types as [`set_column_types`](Self::set_column_types) does.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// use arc_core::{ColumnTypes, catalog::TableSchema};
    ///
    /// let (database, table) = ("plant".into(), "log".into());
    /// let schema = TableSchema { database, table, has_primary_key: false, columns: Vec::new() };
    /// engine.create_table_with(&schema, &ColumnTypes::new().string_columns(["attr_*"]))?;
    /// let written = engine.write_lp("plant", b"log attr_code=17i\nlog attr_code=\"none\"")?;
    /// assert_eq!(written.points, 2); // both are texts
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As of both. If the second one fails, there is no such table.
    pub fn create_table_with(&self, schema: &TableSchema, types: &ColumnTypes) -> Result<()> {
        types.check()?;
        if let Some(column) = schema.columns.iter().find(|column| types.is_string_of_other_type(column)) {
            return invalid(format!("column {:?} matches string_columns and is {}", column.name, column.data_type));
        }
        self.create_table(schema)?;
        if types.is_empty() {
            return Ok(());
        }
        let set = self.set_column_types(&schema.database, Some(&schema.table), types);
        if set.is_err() {
            self.drop_table(&schema.database, &schema.table)?;
        }
        set
    }
}

impl Shared {
    fn create_table(&self, schema: &TableSchema) -> Result<()> {
        let locked = self.schema.lock();
        let database = locked.registry.database(&schema.database);
        // Dropped meanwhile.
        let missing = || Error::DatabaseNotFound { database: schema.database.to_string() };
        let database = database.ok_or_else(missing)?;
        if database.table(&schema.table).is_some() {
            return Err(Error::TableExists { database: schema.database.to_string(), table: schema.table.to_string() });
        }
        locked.check_limits(0, 1)?;
        let change = schema_change(schema, false, self.clock.now_ns())?;
        let table = Arc::new(Table::new(schema.clone()));
        locked.make(change, Made::Table(database, table))
    }
}

/// Refuses what no write could make.
pub(super) fn check(schema: &TableSchema) -> Result<()> {
    let TableSchema { database, table, has_primary_key, columns } = schema;
    check_database_name(database).map_err(|reason| invalid_name("database", database, reason))?;
    check_name(table).map_err(|reason| invalid_name("table", table, reason))?;
    if columns.len() > MAX_COLUMNS {
        return invalid(format!("a table has up to {MAX_COLUMNS} columns"));
    }
    for (at, column) in columns.iter().enumerate() {
        let name = column.name.as_ref();
        check_column_name("column", name).or_else(invalid)?;
        if schema.position(name) != Some(at) {
            return invalid(format!("column {name:?} comes twice"));
        }
        let is_tag = column.kind == ColumnKind::Tag;
        if is_tag != (column.data_type == tag_type()) || (is_tag && !has_primary_key) || !is_storable(&column.data_type)
        {
            return invalid(format!("column {name:?} cannot be a {:?} of type {}", column.kind, column.data_type));
        }
        if !comes_back(&column.data_type) {
            return invalid(format!("column {name:?} has a type that cannot be kept; it may be nested too deep"));
        }
        check_type(name, &column.data_type).or_else(invalid)?;
    }
    check_row_bytes(table, columns.iter().map(|column| &column.data_type)).or_else(invalid)
}

fn invalid<T>(reason: String) -> Result<T> {
    Err(Error::InvalidOption { option: "schema", reason })
}
