//! Data files that exist in name only.

use std::{ops::RangeInclusive, sync::Arc};

use crate::model::{ColumnStatistics, DataFile, TIME_COLUMN, TableSchema};

pub(in super::super) const DAY_NS: i64 = 86_400_000_000_000;

/// A file on time of one row and byte, with its first and last time and sequence number.
pub(in super::super) fn file(path: &str, times: RangeInclusive<i64>, seqs: RangeInclusive<u64>) -> Arc<DataFile> {
    Arc::new(DataFile {
        path: path.to_owned(),
        bytes: 1,
        crc32c: 0,
        tail: None,
        rows: 1,
        min_time: *times.start(),
        max_time: *times.end(),
        min_seq: *seqs.start(),
        max_seq: *seqs.end(),
        deleted_seq: 0,
        time_unit: crate::FileTimeUnit::default(),
        hourly: None,
        late: false,
        sorted_by: vec![TIME_COLUMN.into()],
        columns: vec![ColumnStatistics { name: TIME_COLUMN.into(), null_count: 0, min: None, max: None }],
    })
}

/// The same, late.
pub(in super::super) fn late(path: &str, times: RangeInclusive<i64>, seqs: RangeInclusive<u64>) -> Arc<DataFile> {
    let mut file = DataFile::clone(&file(path, times, seqs));
    file.late = true;
    Arc::new(file)
}

/// The same file with another size.
pub(in super::super) fn sized(file: &Arc<DataFile>, rows: u64, bytes: u64) -> Arc<DataFile> {
    Arc::new(DataFile { rows, bytes, ..DataFile::clone(file) })
}

/// A table without tags.
pub(in super::super) fn table() -> TableSchema {
    TableSchema { database: "d".into(), table: "t".into(), has_primary_key: true, columns: Vec::new() }
}
