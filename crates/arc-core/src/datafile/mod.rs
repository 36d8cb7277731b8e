//! Data files: record batches to immutable Parquet files, and back.
//!
//! Owns the files under `data/`, their names and their encodings (docs/format.md, "Data directory",
//! "Names", "Data files"). Never decides which rows go into which file, never sorts, never decides
//! that a file that was published goes, never touches the manifest. Called by `engine` on flush,
//! and by `compaction`, which rewrites files.

mod blocks;
mod column_chunks;
mod copied;
mod encode;
mod encodings;
mod examine;
#[cfg(any(test, feature = "query"))]
mod file_checks;
mod folders;
pub(crate) mod hourly;
mod inbox;
mod options;
mod order_check;
mod orphans;
mod pack;
mod pages;
mod parquet_file;
mod parquet_writer;
mod past;
#[cfg(test)]
mod reader;
mod row_groups;
mod set_aside;
mod sink;
mod statistics;
mod storable;
mod stream;
mod whole;
mod writer;

pub use crate::model::{ColumnStatistics, DataFile, FileTail, HourlyBlock, PartitionDay, StatisticsValue, encode_name};
pub use options::ParquetOptions;
pub use parquet_writer::{
    Accumulator, DistinctValues, FileStatistics, ParquetWriter, ParquetWriterBuilder, Value, WrittenFile,
};

pub(crate) use copied::{copy_file, copy_to_temporary, temporary_of};
#[cfg(test)]
pub(crate) use encodings::FORMAT;
pub(crate) use examine::{Examined, examine, prove_bytes};
#[cfg(feature = "query")]
pub(crate) use file_checks::{BlockChecksums, FileChecks, FileComparison, Rotten};
pub(crate) use folders::{FolderSyncs, KnownFolders, remove_data_file, remove_empty_folders};
pub use inbox::Upload;
pub(crate) use inbox::{Inbox, check_id};
pub(crate) use orphans::{ClearedOrphans, find_orphans, find_readable, remove_orphans};
pub(crate) use pack::{Owner, PackWriter, open_data_file};
pub(crate) use past::{PastFolder, give_back, where_it_lies};
#[cfg(test)]
pub(crate) use reader::read_data_file;
pub(crate) use set_aside::SetAside;
pub(crate) use statistics::StatisticsBuilder;
pub(crate) use storable::is_storable;
pub(crate) use stream::{CheckedDataFile, DataFileStream, OpenDataFile, compare_bytes, read_pieces, text_dictionary};
pub(crate) use whole::{read_whole, write_whole};
pub(crate) use writer::{DataFileSpec, DataFileWriter, pack_data_file, write_data_file};

#[cfg(test)]
mod tests;
