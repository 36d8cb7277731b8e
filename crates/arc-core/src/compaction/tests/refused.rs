//! Inputs that are not what the manifest says: they are named, and nothing is made of them.

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampNanosecondArray};

use super::super::{Keep, MAX_BATCH_BYTES, MergeJob, MergeOutput, MergeSource, MergeTask, run};
use crate::{
    Error, SequenceNumber,
    datafile::{DataFileSpec, ParquetOptions, write_data_file},
    model::{Column, ColumnKind, DataFile, PartitionDay, TIME_COLUMN, TableSchema, tag_type},
    vfs::CrashFs,
};

const ROOT: &str = "/store";

fn schema(has_primary_key: bool) -> TableSchema {
    let tag = Column { name: "h".into(), kind: ColumnKind::Tag, data_type: tag_type() };
    TableSchema { database: "d".into(), table: "t".into(), has_primary_key, columns: vec![tag] }
}

fn written(vfs: &CrashFs, name: &str, rows: &[(&str, i64)]) -> Arc<DataFile> {
    let times = TimestampNanosecondArray::from_iter_values(rows.iter().map(|(_, time)| *time)).with_timezone("UTC");
    let tags: StringArray = rows.iter().map(|(tag, _)| Some(*tag)).collect();
    let tags = arrow::compute::cast(&tags, &tag_type()).unwrap();
    let schema = schema(true).arrow();
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(times) as ArrayRef, tags]).unwrap();
    let spec = DataFileSpec {
        path: format!("data/{name}.parquet"),
        schema,
        time_unit: crate::FileTimeUnit::default(),
        sorted_by: vec!["h".into(), TIME_COLUMN.into()],
        min_seq: SequenceNumber(1),
        max_seq: SequenceNumber(1),
        late: false,
        hourly: false,
        tags: &["h"],
    };
    let options = ParquetOptions::default();
    Arc::new(write_data_file(vfs, Path::new(ROOT), &spec, [Ok(batch)].into_iter(), &options).unwrap())
}

fn merged(vfs: &CrashFs, files: Vec<Arc<DataFile>>, has_primary_key: bool) -> Result<Vec<DataFile>, Error> {
    let task = MergeTask {
        day: PartitionDay::from_time_ns(0),
        files,
        output: MergeOutput::OnTime,
        cuts: Vec::new(),
        may_drop_old: true,
        is_last: false,
    };
    let job = MergeJob {
        source: MergeSource { vfs, root: Path::new(ROOT) },
        schema: &schema(has_primary_key),
        task: &task,
        keep: Keep::default(),
        tombstones: &[],
        batch_bytes: MAX_BATCH_BYTES,
        target_bytes: 1 << 30,
        options: &ParquetOptions::default(),
        time_unit: crate::FileTimeUnit::default(),
        pack: None,
        cancelled: &AtomicBool::new(false),
    };
    run(&job, || "data/merged.parquet".to_owned())
}

#[test]
fn rows_out_of_order_or_twice_in_one_file_are_refused() {
    let cases = [
        (&[("a", 1), ("a", 2), ("b", 1)][..], true, true),
        (&[("a", 2), ("a", 1)], true, false),
        (&[("b", 1), ("a", 2)], true, false),
        (&[("a", 1), ("a", 1)], true, false),
        (&[("a", 1), ("a", 1)], false, true),
        (&[("b", 1), ("a", 2)], false, false),
    ];
    for (rows, has_primary_key, good) in cases {
        let vfs = CrashFs::new();
        let files = vec![written(&vfs, "good", &[("a", 5), ("c", 1)]), written(&vfs, "other", rows)];
        match merged(&vfs, files, has_primary_key) {
            Ok(made) => assert!(good && made[0].rows == rows.len() as u64 + 2, "{rows:?}"),
            Err(error) => {
                assert!(!good && matches!(error, Error::Corrupt { .. }), "{rows:?}: {error}");
                assert!(error.to_string().contains("other.parquet"), "{error}");
                assert_eq!(vfs.current().files().count(), 2, "nothing half-made stays");
            }
        }
    }
}

#[test]
fn a_column_that_the_table_has_not_is_refused_not_dropped() {
    let vfs = CrashFs::new();
    let mut file = DataFile::clone(&written(&vfs, "other", &[("a", 1)]));
    file.columns[1].name = "unknown".into();
    let error = merged(&vfs, vec![Arc::new(file)], true).unwrap_err();
    assert!(error.to_string().contains("\"unknown\""), "{error}");
}
