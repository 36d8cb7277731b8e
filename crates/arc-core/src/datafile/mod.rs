//! Data files: record batches to immutable Parquet files, and back.
//!
//! Owns the files under `data/`, their names and their encodings (docs/format.md, "Data directory", "Names", "Data
//! files"). Never decides which rows go into which file, never sorts, never decides that a file that was published
//! goes, never touches the manifest. Called by `engine` on flush, and by `compaction`, which rewrites files.

mod blocks;
mod column_chunks;
mod encode;
mod encodings;
mod file;
#[cfg(any(test, feature = "query"))]
mod file_checks;
mod folders;
mod names;
mod options;
mod pack;
mod pages;
mod parquet_file;
mod parquet_writer;
mod partition;
#[cfg(test)]
mod reader;
mod row_groups;
mod sink;
mod small_file;
mod statistics;
mod storable;
mod stream;
pub(crate) mod texts;
mod thrift;
mod whole;
mod writer;

pub use blocks::FileTail;
pub use file::{ColumnStatistics, DataFile, StatisticsValue};
pub use names::encode_name;
pub use options::ParquetOptions;
pub use parquet_writer::{
    Accumulator, DistinctValues, FileStatistics, ParquetWriter, ParquetWriterBuilder, Value, WrittenFile,
};
pub use partition::PartitionDay;

pub(crate) use encode::TextDictionary;
#[cfg(test)]
pub(crate) use encodings::FORMAT;
pub(crate) use file::EXACT_FLOATS;
#[cfg(feature = "query")]
pub(crate) use file_checks::{Blocks, Checked, FileChecks, Rotten};
pub(crate) use folders::{FolderSyncs, KnownFolders, remove_data_file, remove_empty_folders};
pub(crate) use names::{DATA_DIR, data_file_path, table_folder};
pub(crate) use pack::{Owner, PackWriter, is_pack, open_data_file, packed, stored_path};
#[cfg(test)]
pub(crate) use reader::read_data_file;
pub(crate) use row_groups::Columns;
pub(crate) use statistics::StatisticsBuilder;
pub(crate) use storable::is_storable;
pub(crate) use stream::{CheckedDataFile, DataFileStream, OpenFile, compare_bytes, read_pieces, text_dictionary};
pub(crate) use whole::{read_whole, write_whole};
pub(crate) use writer::{DataFileSpec, DataFileWriter, TEMPORARY_SUFFIX, pack_data_file, write_data_file};

#[cfg(test)]
mod tests;
