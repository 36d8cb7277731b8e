//! Files that are whole, and yet do not hold what the manifest or the table promises.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, DictionaryArray, Float64Array, RecordBatch, TimestampNanosecondArray},
    datatypes::{Field, Int32Type, Schema},
};

use super::*;
use crate::{
    SequenceNumber,
    catalog::{Manifest, ManifestEdit, TableEdit},
    datafile::{DataFileSpec, ParquetOptions, write_data_file},
    model::{Column, ColumnKind, DataFile, StatisticsValue, TableSchema, tag_type, time_type},
};

const DAY: i64 = 86_400_000_000_000;

fn table(has_primary_key: bool) -> Arc<TableSchema> {
    let column = |name: &str, kind, data_type| Column { name: name.into(), kind, data_type };
    let columns = vec![
        column("host", ColumnKind::Tag, tag_type()),
        column("v", ColumnKind::Field, arrow::datatypes::DataType::Float64),
    ];
    Arc::new(TableSchema { database: "d".into(), table: "t".into(), has_primary_key, columns })
}

/// A data directory that has nothing in it.
fn store() -> CrashFs {
    let fs = CrashFs::new();
    engine(&fs).close().unwrap();
    fs
}

/// A data file with these rows as they stand, under this name in the folder of day 0.
fn file(fs: &CrashFs, name: &str, rows: &[(Option<&str>, i64)], late: bool) -> DataFile {
    let hosts: DictionaryArray<Int32Type> = rows.iter().map(|(host, _)| *host).collect();
    let times = TimestampNanosecondArray::from_iter_values(rows.iter().map(|(_, time)| *time)).with_timezone("UTC");
    let values: ArrayRef = Arc::new(Float64Array::from_iter_values(rows.iter().map(|(_, time)| *time as f64)));
    let schema = Arc::new(Schema::new(vec![
        Field::new("time", time_type(), false),
        Field::new("host", tag_type(), true),
        Field::new("v", arrow::datatypes::DataType::Float64, true),
    ]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(times), Arc::new(hosts), values]).unwrap();
    let spec = DataFileSpec {
        time_unit: crate::FileTimeUnit::default(),
        path: format!("data/d/t/day=1970-01-01/{name}.parquet"),
        schema,
        sorted_by: vec!["host".into(), "time".into()],
        min_seq: SequenceNumber(1),
        max_seq: SequenceNumber(1),
        late,
        hourly: false,
        tags: &["host"],
    };
    write_data_file(fs, Path::new(ROOT), &spec, [Ok(batch)].into_iter(), &ParquetOptions::default()).unwrap()
}

/// A directory whose manifest names these files.
fn directory(fs: &CrashFs, has_primary_key: bool, files: Vec<DataFile>) -> VerifyReport {
    let dir = Path::new(ROOT).join("meta/0");
    let mut manifest = Manifest::open(Arc::new(fs.clone()), &dir).unwrap();
    let table = TableEdit {
        database: "d".into(),
        table: "t".into(),
        schema: Some(table(has_primary_key)),
        files_added: files.into_iter().map(Arc::new).collect(),
        ..TableEdit::default()
    };
    let edit = ManifestEdit {
        flushed: Some(SequenceNumber(1)),
        databases_added: vec![("d".into(), 0)],
        tables: vec![table],
        ..ManifestEdit::default()
    };
    manifest.commit(edit).unwrap();
    verified(&fs.current())
}

type Rows = &'static [(Option<&'static str>, i64)];

#[test]
fn order_and_primary_key_within_a_file_are_checked() {
    let cases: [(Rows, bool, bool, &str); 9] = [
        (&[(None, 1), (Some("a"), 1), (Some("a"), 2), (Some("b"), 1)], true, false, ""),
        (&[(Some("a"), 1)], true, false, ""),
        (&[(Some("b"), 1), (Some("a"), 1)], true, false, "row 1 should stand before"),
        (&[(Some("a"), 2), (Some("a"), 1)], true, false, "row 1 should stand before"),
        (&[(Some("a"), 1), (None, 1)], true, false, "row 1 should stand before"),
        (&[(Some("a"), 1), (Some("a"), 1)], true, false, "row 1 has the identity of the row before it"),
        (&[(Some("a"), 1), (Some("a"), 1)], true, true, ""),
        (&[(Some("a"), 1), (Some("a"), 1)], false, false, ""),
        (&[(Some("a"), 1), (Some("a"), DAY)], true, false, "more than one day"),
    ];
    for (rows, has_primary_key, late, expected) in cases {
        let fs = store();
        let file = file(&fs, "x", rows, late);
        let path = Path::new(ROOT).join(&file.path);
        let report = directory(&fs, has_primary_key, vec![file]);
        if expected.is_empty() {
            assert_eq!(report.findings, [], "{rows:?}");
        } else {
            has_error(&report, &path, expected);
        }
    }
    let fs = store();
    let mut file = file(&fs, "x", &[(Some("a"), 1), (Some("b"), 2)], true);
    let path = Path::new(ROOT).join(&file.path);
    file.late = false;
    has_error(&directory(&fs, true, vec![file]), &path, "for late, the manifest says false");
}

#[test]
fn primary_keys_are_unique_across_files_that_are_not_late() {
    let a: Rows = &[(None, 5), (Some("a"), 1), (Some("a"), 3), (Some("b"), 9)];
    let cases: [(Rows, bool, bool, &str); 6] = [
        (&[(Some("a"), 2), (Some("b"), 3)], true, false, ""),
        (&[(Some("a"), 3)], true, false, "the row {host=a,time=3} is in data/d/t/day=1970-01-01/a.parquet as well"),
        (&[(None, 5)], true, false, "the row {time=5} is in"),
        (&[(Some("b"), 10)], true, false, ""),
        (&[(Some("a"), 3)], true, true, ""),
        (&[(Some("a"), 3)], false, false, ""),
    ];
    for (rows, has_primary_key, late, expected) in cases {
        let fs = store();
        let files = vec![file(&fs, "a", a, false), file(&fs, "b", rows, late)];
        let path = Path::new(ROOT).join(&files[1].path);
        let report = directory(&fs, has_primary_key, files);
        if expected.is_empty() {
            assert_eq!(report.findings, [], "{rows:?}");
        } else {
            has_error(&report, &path, expected);
        }
    }
}

#[test]
fn what_the_manifest_says_of_a_file_is_compared_with_its_rows() {
    type Lie = fn(&mut DataFile);
    let lies: [(Lie, &str); 12] = [
        (|file| file.rows += 1, "it has 2 rows, the manifest says 3"),
        (|file| file.min_time -= 1, "its times are not from 0 to 2"),
        (|file| file.max_time += 1, "its times are not from 1 to 3"),
        (|file| file.columns[0].min = None, "the statistics of column \"time\""),
        (|file| file.columns[1].null_count = 1, "the statistics of column \"host\""),
        (|file| file.columns[2].max = Some(StatisticsValue::Float(7.0)), "the statistics of column \"v\""),
        (|file| drop(file.columns.pop()), "it has other columns"),
        // Rows that came from another directory may be late where they were not there.
        (|file| file.late = true, ""),
        (|file| file.max_seq = 2, "its sequence numbers"),
        (|file| file.sorted_by = vec!["v".into(), "host".into()], ""),
        (|file| file.crc32c ^= 1, "its crc32c is"),
        (|file| file.bytes += 1, "bytes, the manifest says"),
    ];
    for (lie, expected) in lies {
        let fs = store();
        let mut file = file(&fs, "x", &[(Some("a"), 1), (Some("b"), 2)], false);
        let path = Path::new(ROOT).join(&file.path);
        lie(&mut file);
        let report = directory(&fs, true, vec![file]);
        if expected.is_empty() {
            assert_eq!(report.findings, []);
        } else {
            has_error(&report, &path, expected);
        }
    }
}

#[test]
fn a_file_in_the_wrong_folder_or_with_columns_of_another_table_is_found() {
    let fs = store();
    let mut moved = file(&fs, "x", &[(Some("a"), 1)], false);
    let bytes = fs.read(&Path::new(ROOT).join(&moved.path)).unwrap();
    moved.path = moved.path.replace("1970-01-01", "1970-01-02");
    let mut image = fs.current();
    image.set(&Path::new(ROOT).join(&moved.path), bytes);
    let fs = CrashFs::from_image(&image);
    let path = Path::new(ROOT).join(&moved.path);
    // The file that was left behind is no data file by its name, so nothing looks at it.
    has_error(&directory(&fs, true, vec![moved]), &path, "not in the folder of its table and day");
}
