//! One data file: whether its bytes, its footer and its rows are what the manifest says.

use std::{io::ErrorKind, path::Path};

use arrow::datatypes::{DataType, Schema};

use super::{REPAIR, VerifyReport, describe};
use crate::{
    Error, Result, SequenceNumber,
    datafile::{Examined, OpenDataFile, compare_bytes, examine, read_pieces},
    model::{ColumnStatistics, DataFile, PartitionDay, TIME_COLUMN, TableSchema, day_folders, may_become},
    vfs::Vfs,
};

const BUG: &str = "the file is as it was written, so this is a bug; please report it";

/// Checks the live data files of one table.
pub(crate) struct FileChecker<'a> {
    pub(crate) vfs: &'a dyn Vfs,
    /// The data directory.
    pub(crate) root: &'a Path,
    pub(crate) table: &'a TableSchema,
    /// What the manifest says is flushed: no file has anything later.
    pub(crate) flushed: SequenceNumber,
}

impl FileChecker<'_> {
    /// Checks one data file and adds what is wrong to the report.
    pub(super) fn check(&self, data_file: &DataFile, report: &mut VerifyReport) {
        let path = self.root.join(&data_file.path);
        if let Err((offset, what)) = check_bytes(self.vfs, &path, data_file) {
            return report.error(path, offset, what, REPAIR);
        }
        let (rows, contradictions) = self.check_contents(data_file);
        report.totals.rows += rows;
        for what in contradictions {
            report.error(&path, None, what, BUG);
        }
    }

    /// Compares what a file holds with what manifest and table say of it, given that its bytes are
    /// those that were written. Returns its rows, and what does not agree.
    pub(crate) fn check_contents(&self, data_file: &DataFile) -> (u64, Vec<String>) {
        let mut contradictions = contradictions(self.table, self.flushed, data_file);
        match check_rows(self.vfs, &self.root.join(&data_file.path), self.table, data_file) {
            Ok((rows, more)) => {
                contradictions.extend(more);
                (rows, contradictions)
            }
            Err(error) => {
                contradictions.push(describe(&error));
                (0, contradictions)
            }
        }
    }
}

/// Checks size and checksum. The error is where and what is wrong.
pub(crate) fn check_bytes(vfs: &dyn Vfs, path: &Path, data_file: &DataFile) -> Result<(), (Option<u64>, String)> {
    let read = read_pieces(vfs, path, u64::MAX, |_, _| Ok(()));
    let compared = read.and_then(|(bytes, crc32c)| compare_bytes(path, data_file, bytes, crc32c));
    compared.map_err(|error| match error {
        Error::Corrupt { offset, reason, .. } => (Some(offset), reason),
        Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => (None, "it is missing".to_owned()),
        error => (None, describe(&error)),
    })
}

/// What the manifest says of a file that cannot be, whatever the file holds.
fn contradictions(table: &TableSchema, flushed: SequenceNumber, data_file: &DataFile) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            found.push(what.to_owned());
        }
    };
    let day = PartitionDay::from_time_ns(data_file.min_time);
    let folders = day_folders(table, day);
    expect(data_file.rows > 0, "it has no rows");
    expect(data_file.min_time <= data_file.max_time, "its oldest time is newer than its newest");
    expect(day == PartitionDay::from_time_ns(data_file.max_time), "it has rows of more than one day");
    expect(
        data_file.packed().is_some()
            || data_file.path.rsplit_once('/').is_some_and(|(parent, _)| folders.iter().any(|folder| folder == parent)),
        "it is not in the folder of its table and day",
    );
    expect(
        data_file.min_seq <= data_file.max_seq && data_file.max_seq <= flushed.0,
        "its sequence numbers are not among those that were flushed",
    );
    found
}

/// Reads all rows; returns their number and what of them is not as the manifest says.
fn check_rows(vfs: &dyn Vfs, path: &Path, table: &TableSchema, data_file: &DataFile) -> Result<(u64, Vec<String>)> {
    let file = OpenDataFile::open(vfs, path)?;
    let mut found = check_footer(&file, table, data_file);
    let unique = |schema: &Schema| is_unique(table, schema, data_file);
    let Examined { schema, time_unit, rows, time_bounds, columns, violation } =
        examine(&file, &data_file.sorted_by, data_file.hourly, unique)?;
    if rows != data_file.rows {
        found.push(format!("it has {rows} rows, the manifest says {}", data_file.rows));
    }
    if time_unit != data_file.time_unit {
        found.push(format!("its times are in {time_unit}, the manifest says {}", data_file.time_unit));
    }
    if time_bounds != Some((data_file.min_time, data_file.max_time)) {
        let (min, max) = (data_file.min_time, data_file.max_time);
        found.push(format!("its times are not from {min} to {max}, as the manifest says"));
    }
    found.extend(compare_columns(&schema, &columns, &data_file.columns));
    found.extend(violation);
    Ok((rows, found))
}

/// Compares the file's own description of itself with the table and the manifest.
fn check_footer(file: &OpenDataFile, table: &TableSchema, data_file: &DataFile) -> Vec<String> {
    let mut found = Vec::new();
    let of_table = table.arrow();
    for (index, field) in file.schema().fields().iter().enumerate() {
        match of_table.field_with_name(field.name()) {
            Ok(known)
                if known.data_type() != field.data_type() && !may_become(field.data_type(), known.data_type()) =>
            {
                let (known, is) = (known.data_type(), field.data_type());
                found.push(format!("column {:?} has type {is}, the table's has {known}", field.name()));
            }
            Ok(_) => {}
            Err(_) => found.push(format!("the table has no column {:?}", field.name())),
        }
        if (index == 0) != (field.name() == TIME_COLUMN) {
            found.push(format!("column {index} is {:?}, and the first should be the time", field.name()));
        }
    }
    let metadata = file.footer().metadata().file_metadata();
    let pairs = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let late = pairs.iter().find(|pair| pair.key == "arc:late").and_then(|pair| pair.value.as_deref());
    // Rows that came from another directory may be late here that were not there.
    let is_right = match late {
        Some("false") => true,
        late => late == Some("true") && data_file.late,
    };
    if !is_right {
        found.push(format!("it says of itself {late:?} for late, the manifest says {}", data_file.late));
    }
    found
}

/// Whether no two rows of the file may be equal in the columns that they are sorted by.
fn is_unique(table: &TableSchema, schema: &Schema, data_file: &DataFile) -> bool {
    let is_sorted_by = |name: &str| data_file.sorted_by.iter().any(|column| column == name);
    let mut primary_key = table.tags().map(|tag| &*tag.name).filter(|name| schema.index_of(name).is_ok());
    table.has_primary_key && !data_file.late && is_sorted_by(TIME_COLUMN) && primary_key.all(is_sorted_by)
}

fn is_narrow(data_type: &DataType) -> bool {
    use DataType::{Date32, Int8, Int16, Int32, UInt8, UInt16, UInt32};
    matches!(data_type, Date32 | Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32)
}

fn compare_columns(schema: &Schema, found: &[ColumnStatistics], expected: &[ColumnStatistics]) -> Vec<String> {
    if !found.iter().map(|column| &column.name).eq(expected.iter().map(|column| &column.name)) {
        return vec!["it has other columns than the manifest says".to_owned()];
    }
    let mut differing = Vec::new();
    for ((found, expected), field) in found.iter().zip(expected).zip(schema.fields()) {
        // Earlier builds kept no bounds of some types.
        let has_none = expected.min.is_none() && expected.max.is_none() && is_narrow(field.data_type());
        if if has_none { found.null_count != expected.null_count } else { found != expected } {
            differing
                .push(format!("the statistics of column {:?} in the manifest are not those of its rows", found.name));
        }
    }
    differing
}
