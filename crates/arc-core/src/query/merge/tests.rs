use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array},
    datatypes::{DataType, Field, Schema},
    util::pretty::pretty_format_batches,
};
use datafusion::{
    datasource::memory::MemorySourceConfig,
    execution::TaskContext,
    physical_plan::{ExecutionPlan, collect},
};

use super::{
    super::part::Part,
    exec::MergeExec,
    fold::{continues, fold},
    split,
};
use crate::{
    buffer::{ChunkReader, Rows},
    model::{DataFile, TableSchema},
    view::BufferPart,
};

/// Sorted rows: (tag, time), a field, and the two hidden columns. Runs of 1, 3, 1, 2 and 2 rows.
fn sorted() -> RecordBatch {
    let tags = [None, Some("a"), Some("a"), Some("a"), Some("a"), Some("b"), Some("b"), Some("b"), Some("b")];
    let times = [1, 1, 1, 1, 2, 1, 1, 2, 2];
    let fields = [Some(1), Some(2), Some(3), None, Some(4), None, None, Some(5), Some(6)];
    let schema = Schema::new(vec![
        Field::new("tag", DataType::Utf8, true),
        Field::new("time", DataType::Int64, false),
        Field::new("x", DataType::Int64, true),
        Field::new("rank", DataType::UInt64, false),
        Field::new("row", DataType::Int64, false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter(tags)),
        Arc::new(Int64Array::from_iter_values(times)),
        Arc::new(Int64Array::from_iter(fields)),
        Arc::new(UInt64Array::from_iter_values(0..9)),
        Arc::new(Int64Array::from_iter_values(0..9)),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

const EXPECTED: &str = "\
+-----+------+---+
| tag | time | x |
+-----+------+---+
|     | 1    | 1 |
| a   | 1    | 3 |
| a   | 2    | 4 |
| b   | 1    |   |
| b   | 2    | 6 |
+-----+------+---+";

#[test]
fn each_run_becomes_its_last_values_that_are_not_null() {
    let batch = sorted().project(&[0, 1, 2]).unwrap();
    let folded = fold(&batch, &[0, 1]).unwrap();
    assert_eq!(pretty_format_batches(std::slice::from_ref(&folded)).unwrap().to_string(), EXPECTED);
    assert_eq!(fold(&folded, &[0, 1]).unwrap(), folded);
    let empty = batch.slice(0, 0);
    assert_eq!(fold(&empty, &[0, 1]).unwrap(), empty);
}

#[test]
fn a_run_goes_on_where_all_keys_are_equal() {
    let batch = sorted();
    let goes_on: Vec<bool> =
        (1..9).map(|row| continues(&batch.slice(0, row), &batch.slice(row, 9 - row), &[0, 1]).unwrap()).collect();
    assert_eq!(goes_on, [false, true, true, false, false, true, false, true]);
}

#[tokio::test]
async fn however_the_rows_are_cut_into_batches_they_fold_alike() {
    let batch = sorted();
    for cuts in 0_u32..256 {
        let mut batches = vec![batch.slice(0, 0)];
        let mut start = 0;
        for end in 1..=9 {
            if end == 9 || cuts & (1 << (end - 1)) != 0 {
                batches.push(batch.slice(start, end - start));
                start = end;
            }
        }
        let input = MemorySourceConfig::try_new_exec(&[batches], batch.schema(), None).unwrap();
        let merge: Arc<dyn ExecutionPlan> = Arc::new(MergeExec::try_new(input, vec![0, 1]).unwrap());
        let folded = collect(merge, Arc::new(TaskContext::default())).await.unwrap();
        assert_eq!(pretty_format_batches(&folded).unwrap().to_string(), EXPECTED, "cuts {cuts:b}");
        assert!(folded.iter().all(|batch| batch.num_rows() > 0), "cuts {cuts:b}");
    }
}

fn file(name: &str, times: (i64, i64), seq: u64, late: bool) -> Arc<DataFile> {
    Arc::new(DataFile {
        path: name.to_owned(),
        bytes: 1,
        crc32c: 0,
        tail: None,
        rows: 1,
        min_time: times.0,
        max_time: times.1,
        min_seq: seq,
        max_seq: seq,
        deleted_seq: 0,
        time_unit: crate::FileTimeUnit::default(),
        hourly: None,
        late,
        sorted_by: Vec::new(),
        columns: Vec::new(),
    })
}

#[test]
fn parts_that_a_late_part_overlaps_are_merged_in_order_of_version() {
    let files = [
        file("before", (0, 4), 1, false),
        file("touches", (0, 5), 2, false),
        file("newest late", (5, 6), 9, true),
        file("inside", (6, 6), 3, false),
        file("after", (8, 9), 4, false),
        file("older late", (7, 7), 5, true),
    ];
    let columns = Vec::new();
    let schema = TableSchema { database: "db".into(), table: "m".into(), has_primary_key: true, columns };
    let rows =
        ChunkReader::new(Arc::new(schema), Arc::default()).rows(&Arc::new(Rows::default().into_chunk().unwrap()));
    let buffer = |time, late| BufferPart { rows: rows.clone(), min_time: time, max_time: time, late };
    let buffers = [buffer(6, false), buffer(20, false), buffer(30, true)];
    let name = |part: &Part<'_>| match part {
        Part::File(file) => file.path.clone(),
        Part::Buffer(buffer) => format!("buffer {}", buffer.min_time),
    };
    let parts = files.iter().map(Part::File).chain(buffers.iter().map(Part::Buffer)).collect();
    let (plain, merged) = split(parts);
    assert_eq!(plain.iter().map(name).collect::<Vec<_>>(), ["before", "after", "buffer 20"]);
    let expected = ["touches", "inside", "buffer 6", "older late", "newest late", "buffer 30"];
    assert_eq!(merged.iter().map(name).collect::<Vec<_>>(), expected);
}
