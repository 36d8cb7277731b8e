//! What a table looks like: its columns, their roles and types, and the Arrow schema that SQL and
//! Parquet see.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// Name of the time column of every table.
pub const TIME_COLUMN: &str = "time";

/// The role of a column beside `time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// Part of a point's primary key: `Dictionary(Int32, Utf8)`, null when absent.
    Tag,
    /// A value: `Float64`, `Int64`, `UInt64`, `Boolean`, `Utf8`, or any type that came in as Arrow.
    Field,
}

/// One column beside `time`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name as sent.
    pub name: Arc<str>,
    /// Tag or field.
    pub kind: ColumnKind,
    /// Arrow type; for a tag always [`tag_type`].
    pub data_type: DataType,
}

/// The columns of one table at one moment.
///
/// `columns` only ever grows at the end: an index into it stays valid for the table's life. A field
/// keeps its type, unless its table [widens](crate::OnConflict::Widen).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// Database the table is in.
    pub database: Arc<str>,
    /// Table name (the measurement).
    pub table: Arc<str>,
    /// Whether (all tags, time) identifies a row, so that a second one merges; otherwise rows
    /// append.
    pub has_primary_key: bool,
    /// Tags and fields in order of creation, without `time`.
    pub columns: Vec<Column>,
}

impl TableSchema {
    /// Returns the schema that SQL and Parquet see: `time`, then tags, then fields, each in order
    /// of creation.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let schema = engine.schema("plant", "pump")?.arrow();
    /// assert_eq!(schema.field(0).name(), "time");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn arrow(&self) -> SchemaRef {
        let mut fields = vec![Field::new(TIME_COLUMN, time_type(), false)];
        for kind in [ColumnKind::Tag, ColumnKind::Field] {
            let of_kind = self.columns.iter().filter(|c| c.kind == kind);
            fields.extend(of_kind.map(|c| Field::new(c.name.as_ref(), c.data_type.clone(), true)));
        }
        Arc::new(Schema::new(fields))
    }

    /// Returns the tags in order of creation.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let schema = engine.schema("plant", "pump")?;
    /// let tags: Vec<&str> = schema.tags().map(|tag| tag.name.as_ref()).collect();
    /// assert_eq!(tags, ["id"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tags(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|c| c.kind == ColumnKind::Tag)
    }

    /// Returns whether this is what `other` may have become: with more columns at its end, and some
    /// of a wider type.
    pub(crate) fn continues(&self, other: &Self) -> bool {
        let may_be = |(new, old): (&Column, &Column)| {
            new.name == old.name
                && new.kind == old.kind
                && (new.data_type == old.data_type || may_become(&old.data_type, &new.data_type))
        };
        self.columns.len() >= other.columns.len() && self.columns.iter().zip(&other.columns).all(may_be)
    }

    /// Returns whether a column has another type than in `other`, which this
    /// [continues](Self::continues).
    pub(crate) fn has_widened(&self, other: &Self) -> bool {
        self.columns.iter().zip(&other.columns).any(|(new, old)| new.data_type != old.data_type)
    }

    /// Returns the index of the column called `name`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let schema = engine.schema("plant", "pump")?;
    /// assert_eq!((schema.position("rpm"), schema.position("load")), (Some(0), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name.as_ref() == name)
    }
}

/// Returns whether a field of type `from` may become one of type `to`. Its values stay what they
/// are, which is looked at where it is decided (decision 023).
pub(crate) fn may_become(from: &DataType, to: &DataType) -> bool {
    use DataType::{Boolean, Float64, Int64, UInt64, Utf8};
    matches!((from, to), (Int64 | UInt64, Float64) | (Int64 | UInt64 | Float64 | Boolean, Utf8))
}

/// Type of the time column: nanoseconds since the Unix epoch, UTC.
#[must_use]
pub fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

/// Type of every tag column.
#[must_use]
pub fn tag_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}
