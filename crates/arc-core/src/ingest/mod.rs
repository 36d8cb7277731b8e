//! Points into columns: decoding and checking requests against the schema.
//!
//! Owns the decoders and the rules of types, names and conflicts. Never registers a table or
//! column, never writes the log or the buffers: `engine` does, with what is staged here. Live
//! writes and replay call the same functions.

mod arrow;
mod decode_pool;
mod logged_rows;
mod lp;
mod msgpack;
mod row_rules;
mod staged;
mod times;
mod type_rules;

/// What some programs put before a text in UTF-8, which is no part of it.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub use arrow::expanded_bytes;
#[cfg(feature = "import")]
pub(crate) use arrow::{ArrowReader, FileStream, INTEGER_WIDTH, KEEP, needs_footer, odd_columns};
pub(crate) use arrow::{Terms, decode as decode_arrow, of_file as arrow_stream_of_file, with_whole_times};
pub(crate) use decode_pool::DecodePool;
pub(crate) use logged_rows::{Encoders, decode as decode_rows};
pub(crate) use lp::{decode as decode_lp, decode_parallel as decode_lp_parallel, decode_rows as decode_lp_rows};
pub(crate) use msgpack::decode as decode_msgpack;
pub(crate) use staged::{Context, MAX_CELLS, MAX_COLUMNS, Staged, StagedTable, check_column_name, type_name};
#[cfg(feature = "import")]
pub(crate) use times::TimeRules;
pub(crate) use times::{TimeChecks, UntimedPoints};
pub(crate) use type_rules::TypePolicy;
