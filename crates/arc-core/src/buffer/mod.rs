//! Points in memory: columns that take writes, and columns that wait for their flush.
//!
//! Owns the representation of unflushed rows, the series of each table, and the order in which rows
//! reach their files. Never touches the disk, never reads the clock. Filled by `engine` from what
//! `ingest` decodes; read by queries through snapshots and by flush.

mod bits;
mod by_time;
mod chunk_rows;
mod column;
mod day_parts;
mod dictionary_texts;
mod gather;
mod live;
mod order;
mod rows;
mod scalar;
mod series;
mod sorted;
mod staged_rows;
mod table;
mod tag_values;
mod text_array;
mod text_keys;
mod texts;

pub(crate) use chunk_rows::{ChunkReader, ChunkRows};
pub(crate) use column::{ColumnValues, Plain, are_floats, converted};
pub(crate) use dictionary_texts::encoded;
pub(crate) use live::live_rows;
pub(crate) use rows::{Chunk, Rows, owned};
pub(crate) use scalar::Scalar;
pub(crate) use series::{SeriesId, SeriesIndex, Tag};
pub(crate) use sorted::split;
pub(crate) use staged_rows::{StagedRow, StagedRows};
#[cfg(test)]
pub(crate) use table::rows_that_cannot_be_sealed;
pub(crate) use table::{FrozenBuffer, TableBuffer, WHOLE_ROWS, ZeroCopyRows};
pub(crate) use texts::TextColumn;

/// Bytes in a buffer of a value in most columns, beside its text.
const CELL_BYTES: usize = size_of::<u64>();
