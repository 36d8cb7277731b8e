//! The Parquet writer on its own: rows or record batches in, finished Parquet files out, without an
//! engine.
//!
//! Owns which rows go into which file, what a file is told about itself, and when files appear
//! under their names: [`ParquetWriter`] has the promises. Never sorts, never drops a row or a value
//! in silence, knows neither the log nor the manifest; its files are no data files of an engine.
//! Called by users of the crate, and by nothing else in it.
//!
//! The way of a row: `rows` makes record batches of rows (`names` finds their columns, `row_column`
//! has the values), `schema` checks batches and makes texts of columns, `split` finds where a file
//! ends, `open_file` gathers and encodes columns (`column`, on several threads through `parallel`),
//! `assembly` writes row groups and the footer, `publish` gives files their names.

mod accumulator;
mod assembly;
mod builder;
mod column;
mod distinct;
mod integers;
mod names;
mod open_file;
mod parallel;
mod publish;
mod row_column;
mod rows;
mod schema;
mod split;
mod value;
mod writer;

pub use accumulator::{Accumulator, DistinctValues, FileStatistics, WrittenFile};
pub use builder::ParquetWriterBuilder;
pub use value::Value;
pub use writer::ParquetWriter;

#[cfg(test)]
mod tests;
