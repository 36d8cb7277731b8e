//! Where files end.

use arrow::array::AsArray;

use super::*;
use crate::datafile::{ParquetWriter, ParquetWriterBuilder};

fn write(builder: ParquetWriterBuilder, rows: &RecordBatch, batch_rows: usize) -> Vec<RecordBatch> {
    let mut writer = builder.open().unwrap();
    for start in (0..rows.num_rows()).step_by(batch_rows) {
        writer.push(&rows.slice(start, batch_rows.min(rows.num_rows() - start))).unwrap();
    }
    let files = writer.close().unwrap();
    let back: Vec<RecordBatch> = files.iter().map(|file| read(&file.path)).collect();
    let counts: Vec<u64> = files.iter().map(|file| file.rows).collect();
    assert_eq!(counts, back.iter().map(|rows| rows.num_rows() as u64).collect::<Vec<_>>());
    assert_eq!(concat_batches(&rows.schema(), &back).unwrap(), *rows);
    back
}

fn counts(files: &[RecordBatch]) -> Vec<usize> {
    files.iter().map(RecordBatch::num_rows).collect()
}

#[test]
fn a_file_ends_at_its_rows_or_with_the_group_that_they_end_in() {
    struct Case {
        groups: &'static [usize],
        limit: u64,
        by_group: &'static [usize],
        by_rows: &'static [usize],
    }
    let case = |groups, limit, by_group, by_rows| Case { groups, limit, by_group, by_rows };
    let cases = [
        case(&[10], 4, &[10], &[4, 4, 2]),
        case(&[4, 4, 2], 4, &[4, 4, 2], &[4, 4, 2]),
        case(&[3, 3, 3, 1], 4, &[6, 4], &[4, 4, 2]),
        case(&[1; 10], 4, &[4, 4, 2], &[4, 4, 2]),
        case(&[5, 1, 1, 1, 1, 1], 4, &[5, 4, 1], &[4, 4, 2]),
        case(&[2, 2], 4, &[4], &[4]),
        case(&[1, 900, 1], 1, &[1, 900, 1], &[1; 902]),
    ];
    for Case { groups: sizes, limit, by_group, by_rows } in cases {
        let rows = groups(sizes);
        for batch_rows in [1, 3, 4, 1000] {
            let folder = tempfile::tempdir().unwrap();
            let builder = ParquetWriter::builder(folder.path(), rows.schema()).max_rows(limit);
            let grouped = builder.clone().name("grouped").group_by(["key"]);
            assert_eq!(counts(&write(grouped, &rows, batch_rows)), by_group, "{sizes:?} by {batch_rows}");
            assert_eq!(counts(&write(builder, &rows, batch_rows)), by_rows, "{sizes:?} by {batch_rows}");
        }
    }
}

#[test]
fn no_group_is_ever_in_two_files() {
    let mut random = Random(3);
    for round in 0..8 {
        let sizes: Vec<usize> = (0..200).map(|_| 1 + random.count(1 + round * 3)).collect();
        let rows = groups(&sizes);
        let folder = tempfile::tempdir().unwrap();
        let limit = 1 + random.below(300);
        let batch_rows = 1 + random.count(500);
        let builder = ParquetWriter::builder(folder.path(), rows.schema()).layout(small_layout()).group_by(["key"]);
        let by_bytes = builder.clone().name("bytes").max_bytes(3_000);
        for files in [write(builder.max_rows(limit), &rows, batch_rows), write(by_bytes, &rows, batch_rows)] {
            let key = |rows: &RecordBatch, row| rows.column(0).as_string::<i32>().value(row).to_owned();
            for (before, after) in files.iter().zip(files.iter().skip(1)) {
                assert_ne!(key(before, before.num_rows() - 1), key(after, 0), "round {round}");
            }
        }
    }
}

#[test]
fn rows_that_are_not_grouped_are_all_written_and_only_neighbours_stay_together() {
    let rows = groups(&[1; 6]);
    let rows = concat_batches(&rows.schema(), [&rows, &rows]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let builder = ParquetWriter::builder(folder.path(), rows.schema()).max_rows(5).group_by(["key"]);
    assert_eq!(counts(&write(builder, &rows, 100)), [5, 5, 2]);
}

#[test]
fn files_are_about_as_large_as_they_may_be() {
    const ROWS: usize = 90_000;
    let mut random = Random(5);
    let ids: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| format!("{:09x}", random.below(1 << 31)))));
    let few: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| format!("level {}", random.below(5)))));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| random.below(1 << 31) as i64)));
    let rows = RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("few", few, true), ("n", numbers, true)])
        .unwrap();
    for (limit, at_least, at_most, batch_rows) in
        [(50_000, 0.3, 1.2, 1_000), (150_000, 0.4, 1.1, 10_000), (400_000, 0.4, 1.05, ROWS)]
    {
        let folder = tempfile::tempdir().unwrap();
        let layout = ParquetOptions { page_rows: 2_000, ..ParquetOptions::default() };
        let mut writer =
            ParquetWriter::builder(folder.path(), rows.schema()).layout(layout).max_bytes(limit).open().unwrap();
        for start in (0..ROWS).step_by(batch_rows) {
            writer.push(&rows.slice(start, batch_rows.min(ROWS - start))).unwrap();
        }
        let sizes: Vec<u64> = writer.close().unwrap().iter().map(|file| file.bytes).collect();
        let (_last, full) = sizes.split_last().unwrap();
        let share = |size: &u64| *size as f64 / limit as f64;
        let (first, others) = full.split_first().unwrap();
        assert!((at_least..=1.0).contains(&share(first)), "{limit} by {batch_rows}: {sizes:?}");
        // They know how well the first one was compressed.
        assert!(others.iter().all(|size| (0.9..at_most).contains(&share(size))), "{limit} by {batch_rows}: {sizes:?}");
    }
}
