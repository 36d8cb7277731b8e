//! How strict a database or table is about the types of its columns: the setting.
//!
//! Stored by a commit of the manifest of its own. It decides about values that come later; what is
//! in the log was decided before, and needs no setting to be read again.

use std::sync::Arc;

use super::Engine;
use crate::{
    ColumnTypes, Error, Result,
    catalog::{ColumnTypesEdit, ManifestEdit},
    ingest::type_name,
    model::Column,
    registry::Table,
};

impl Engine {
    /// Sets how strict a table is about the types of its columns, or all tables of a database that
    /// do not say it themselves. What `types` leaves out goes by the database, and then by
    /// [`Options::column_types`](crate::Options::column_types); leaving out everything takes the
    /// setting away.
    ///
    /// Durable once this returns, and for all writes that begin later. Flushes, if the database or
    /// table is not in the manifest yet. Columns that are there keep their types, and files their
    /// [unit of times](crate::FileTimeUnit) until a merge rewrites them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::{ColumnTypes, OnConflict};
    ///
    /// assert_eq!(engine.write_lp("plant", b"pump,id=7 rpm=1450.5")?.rejected_points, 1);
    /// engine.set_column_types("plant", Some("pump"), &ColumnTypes::new().on_conflict(OnConflict::Widen))?;
    /// assert_eq!(engine.write_lp("plant", b"pump,id=7 rpm=1450.5")?.points, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown database or table;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad pattern, and for one that matches
    /// a field which is there and not text; [`Busy`](crate::ErrorKind::Busy) if something is being
    /// dropped meanwhile; [`Io`](crate::ErrorKind::Io) if the setting cannot be stored;
    /// [`Closed`](crate::ErrorKind::Closed) once closed.
    pub fn set_column_types(&self, database: &str, table: Option<&str>, types: &ColumnTypes) -> Result<()> {
        let shared = self.writer()?;
        types.check()?;
        let found = self.database(database)?;
        let found_table = table.map(|table| self.table(database, table)).transpose()?;
        let mut manifest = shared.manifest_with(&found, found_table.as_ref())?;
        match &found_table {
            Some(table) => check_columns(types, table)?,
            None => {
                let goes_by_it = |table: &&Arc<Table>| table.column_types.load().string_columns.is_none();
                found.tables().iter().filter(goes_by_it).try_for_each(|table| check_columns(types, table))?;
            }
        }
        let edit = ColumnTypesEdit { database: database.into(), table: table.map(Into::into), types: types.clone() };
        manifest.commit(ManifestEdit { column_types: vec![edit], ..ManifestEdit::default() })?;
        found.set_column_types(found_table.as_deref(), types.clone());
        Ok(())
    }

    /// Returns what a table says itself about the types of its columns, or what a database says.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::ColumnTypes;
    ///
    /// let types = ColumnTypes::new().string_columns(["attr_*"]);
    /// engine.set_column_types("plant", None, &types)?;
    /// assert_eq!(engine.column_types("plant", None)?, types);
    /// // The table has no setting of its own.
    /// assert!(engine.column_types("plant", Some("pump"))?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for an unknown database or table.
    pub fn column_types(&self, database: &str, table: Option<&str>) -> Result<ColumnTypes> {
        let types = match table {
            None => self.database(database)?.column_types.load_full(),
            Some(table) => self.table(database, table)?.column_types.load_full(),
        };
        Ok(ColumnTypes::clone(&types))
    }

    /// Returns what holds for a table, or for new tables of a database: what it says itself, and
    /// where it says nothing what its database and
    /// [`Options::column_types`](crate::Options::column_types) say. The database and the table need
    /// not be there.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// use arc_core::ColumnTypes;
    ///
    /// let types = ColumnTypes::new().string_columns(["attr_*"]);
    /// engine.set_column_types("plant", None, &types)?;
    /// assert_eq!(engine.effective_column_types("plant", Some("pump")), types);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn effective_column_types(&self, database: &str, table: Option<&str>) -> ColumnTypes {
        let own = table.and_then(|table| self.column_types(database, Some(table)).ok()).unwrap_or_default();
        let of_database = self.column_types(database, None).unwrap_or_default();
        own.or(&of_database).or(&self.options().column_types)
    }
}

/// Refuses patterns for fields that are there and not text.
fn check_columns(types: &ColumnTypes, table: &Table) -> Result<()> {
    let schema = table.schema();
    match schema.columns.iter().find(|column| types.is_string_of_other_type(column)) {
        None => Ok(()),
        Some(Column { name, data_type, .. }) => Err(Error::InvalidOption {
            option: "string_columns",
            reason: format!(
                "column {name:?} of table {:?} matches and is {} already",
                schema.table,
                type_name(data_type)
            ),
        }),
    }
}
