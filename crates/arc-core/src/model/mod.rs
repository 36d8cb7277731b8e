//! Plain values that the engine is about: schemas, data files as the manifest records them,
//! partitions, names and paths, deletes, settings of types. Never does input or output, and knows
//! no other folder.

mod column_types;
mod cut;
mod data_file;
mod fixed_bytes;
mod layout;
mod names;
mod partition;
mod past_moment;
pub(crate) mod predicate;
mod schema;
mod scope;
mod sequence;
pub(crate) mod texts;
mod time_text;
mod time_unit;
mod tombstone;

pub use column_types::{ColumnTypes, OnConflict};
pub use cut::CutName;
pub use data_file::{ColumnStatistics, DataFile, FileTail, HourlyBlock, StatisticsValue};
pub use names::encode_name;
pub use partition::PartitionDay;
pub use past_moment::{PastMoment, SnapshotInfo};
pub use predicate::{Comparison, Literal, Predicate};
pub use schema::{Column, ColumnKind, TIME_COLUMN, TableSchema, tag_type, time_type};
pub use scope::{Access, AccessScope};
pub use sequence::SequenceNumber;
pub use time_text::time_of_text;
pub use time_unit::{FileTimeUnit, FinerTimes};
pub use tombstone::Tombstone;

pub(crate) use cut::Cut;
pub(crate) use data_file::EXACT_FLOATS;
#[cfg(feature = "query")]
pub(crate) use fixed_bytes::MAX_FIXED_BYTES;
pub(crate) use fixed_bytes::{check_row_bytes, check_type, fixed_bytes, row_bytes, rows_within};
pub(crate) use layout::{
    BACKUP_MARKER, BRANCH_MARKER, DATA_DIR, INBOX_DIR, LOCK_FILE, LOST_DIR, MARKER, META_DIR, PACK_SUFFIX, PAST_DIR,
    TEMPORARY_SUFFIX, WAL_DIR, WRITER, is_own_file, is_pack, pack_path, packed, past_path, stored_path,
};
#[cfg(feature = "query")]
pub(crate) use names::table_folder;
pub(crate) use names::{data_file_path, day_folders};
pub(crate) use schema::may_become;
#[cfg(feature = "query")]
pub(crate) use time_text::{has_finer_digits, with_seconds};
pub(crate) use tombstone::live;
