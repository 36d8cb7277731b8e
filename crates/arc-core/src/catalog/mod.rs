//! Schemas and the manifest.

mod schema;

pub use schema::{Column, ColumnKind, TIME_COLUMN, TableSchema, tag_type, time_type};
