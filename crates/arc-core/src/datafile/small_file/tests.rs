use std::{ops::Range, path::Path, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchReader as _,
        StringArray, TimestampNanosecondArray, UInt64Array,
    },
    compute::{cast, concat_batches},
    datatypes::{Field, Int32Type, Schema},
};
use bytes::Bytes;
use parquet::{
    arrow::arrow_reader::ParquetRecordBatchReaderBuilder,
    file::metadata::{ParquetMetaData, ParquetMetaDataReader},
};

use super::*;
use crate::{SequenceNumber, datafile::writer::write_data_file, model::DataFile, vfs::RealVfs};

/// Rows of a batch, in pieces of three.
struct Pieces(RecordBatch);

impl Columns for Pieces {
    fn len(&self) -> usize {
        self.0.num_rows()
    }

    fn column(&self, index: usize, rows: Range<usize>, take: &mut dyn FnMut(&ArrayRef) -> Result<()>) -> Result<()> {
        rows.clone().step_by(3).try_for_each(|start| {
            let piece = self.0.column(index).slice(start, 3.min(rows.end - start));
            take(&piece)
        })
    }

    fn sample(&self, index: usize, _: usize) -> Result<ArrayRef> {
        Ok(Arc::clone(self.0.column(index)))
    }
}

fn batch(rows: usize) -> RecordBatch {
    let of = |n: usize| i64::try_from(n).unwrap();
    let times: TimestampNanosecondArray = (0..rows).map(|row| Some(of(row) * 1_000_000_007 - 5)).collect();
    let tags: DictionaryArray<Int32Type> = (0..rows).map(|row| (row % 7 > 1).then_some("host")).collect();
    let every = |n: usize| move |row: &usize| row.is_multiple_of(n);
    let floats = |odd: f64| -> Float64Array {
        (0..rows)
            .map(|row| if row == 4 { Some(odd) } else { (row % 5 > 0).then_some(row as f64 / 8.0 - 1.0) })
            .collect()
    };
    let long = "ü".repeat(40);
    let texts: StringArray = (0..rows).map(|row| (row % 4 > 0).then(|| format!("{}{long}", row / 3))).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time", Arc::new(times.with_timezone("UTC"))),
        ("host", Arc::new(tags)),
        ("float", Arc::new(floats(-0.0))),
        ("nan", Arc::new(floats(f64::NAN))),
        ("integer", Arc::new((0..rows).map(|row| Some(i64::MIN + of(row))).collect::<Int64Array>())),
        ("unsigned", Arc::new((0..rows).map(|row| Some(u64::MAX - row as u64)).collect::<UInt64Array>())),
        ("boolean", Arc::new((0..rows).map(|row| Some(every(3)(&row))).collect::<BooleanArray>())),
        ("sometimes", Arc::new((0..rows).map(|row| (row % 9 > 3).then_some(row > 5)).collect::<BooleanArray>())),
        ("text", Arc::new(texts)),
        ("at", Arc::new((0..rows).map(|row| (row > 2).then_some(of(row))).collect::<TimestampNanosecondArray>())),
        ("nothing", Arc::new((0..rows).map(|_| None).collect::<Float64Array>())),
    ];
    let field = |(index, (name, array)): (usize, &(&str, ArrayRef))| {
        let data_type = match array.data_type() {
            DataType::Dictionary(..) => DataType::Utf8,
            other => other.clone(),
        };
        Field::new(*name, data_type, index > 0)
    };
    let schema = Arc::new(Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().zip(schema.fields()).map(|((_, array), field)| cast(&array, field.data_type()));
    RecordBatch::try_new(schema.clone(), arrays.map(std::result::Result::unwrap).collect()).unwrap()
}

fn spec(batch: &RecordBatch, late: bool) -> DataFileSpec<'static> {
    DataFileSpec {
        path: "data/file.parquet".into(),
        schema: batch.schema(),
        sorted_by: vec!["host".into(), "left out".into(), "time".into()],
        min_seq: SequenceNumber(1),
        max_seq: SequenceNumber(2),
        late,
        tags: &["host", "left out"],
    }
}

fn metadata(file: &[u8]) -> ParquetMetaData {
    ParquetMetaDataReader::new().parse_and_finish(&Bytes::copy_from_slice(file)).unwrap()
}

fn rows(file: &[u8]) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(file)).unwrap().build().unwrap();
    let schema = reader.schema();
    concat_batches(&schema, &reader.map(std::result::Result::unwrap).collect::<Vec<_>>()).unwrap()
}

fn by_the_library(folder: &Path, batch: &RecordBatch, late: bool) -> (DataFile, Vec<u8>) {
    let options = ParquetOptions::default();
    let file = write_data_file(&RealVfs, folder, &spec(batch, late), std::iter::once(Ok(batch.clone())), &options);
    let file = file.unwrap();
    let bytes = std::fs::read(folder.join(&file.path)).unwrap();
    (file, bytes)
}

#[test]
fn a_small_file_says_of_its_rows_what_the_library_would_and_gives_them_back() {
    let mut small = SmallFiles::default();
    // One after the other, so that nothing of one is left in the next.
    for (rows_wanted, late) in [(1, false), (300, false), (2, true), (MAX_ROWS, false), (5, false), (300, true)] {
        let folder = tempfile::tempdir().unwrap();
        let all = batch(rows_wanted);
        let (expected, library) = by_the_library(folder.path(), &all, late);
        let written = small.write(&spec(&all, late), &Pieces(all.clone()), &ParquetOptions::default()).unwrap();
        let (totals, file) = written.unwrap();
        assert_eq!(rows(file), rows(&library), "{rows_wanted}");
        assert_eq!((totals.rows, &totals.columns), (expected.rows, &expected.columns));
        assert_eq!(totals.time_bounds, Some((expected.min_time, expected.max_time)));
        let (ours, theirs) = (metadata(file), metadata(&library));
        assert_eq!(ours.file_metadata().schema_descr(), theirs.file_metadata().schema_descr());
        assert_eq!(ours.file_metadata().key_value_metadata(), theirs.file_metadata().key_value_metadata());
        assert_eq!(ours.file_metadata().created_by(), theirs.file_metadata().created_by());
        assert_eq!(ours.file_metadata().version(), theirs.file_metadata().version());
        assert_eq!(ours.file_metadata().column_orders(), theirs.file_metadata().column_orders());
        let (ours, theirs) = (ours.row_group(0), theirs.row_group(0));
        assert_eq!((ours.num_rows(), ours.sorting_columns()), (theirs.num_rows(), theirs.sorting_columns()));
        for (ours, theirs) in ours.columns().iter().zip(theirs.columns()) {
            let (one, other) = (ours.statistics().unwrap(), theirs.statistics().unwrap());
            let bounds = |of: &parquet::file::statistics::Statistics| {
                let bytes = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
                let exact = (of.min_is_exact(), of.max_is_exact());
                (bytes(of.min_bytes_opt()), bytes(of.max_bytes_opt()), exact, of.null_count_opt())
            };
            assert_eq!(bounds(one), bounds(other), "{}", ours.column_path());
        }
    }
    assert_eq!(small.templates.len(), 2, "late or not");
}

#[test]
fn large_files_and_other_types_are_left_to_the_library() {
    let mut small = SmallFiles::default();
    let mut is_taken = |batch: RecordBatch, options: &ParquetOptions| {
        small.write(&spec(&batch, false), &Pieces(batch.clone()), options).unwrap().is_some()
    };
    let options = ParquetOptions::default();
    assert!(is_taken(batch(MAX_ROWS), &options));
    assert!(!is_taken(batch(MAX_ROWS + 1), &options));
    assert!(!is_taken(batch(20), &ParquetOptions { page_rows: 19, ..options.clone() }));
    assert!(!is_taken(batch(20), &ParquetOptions { row_group_rows: 19, ..options.clone() }));
    let with = |array: ArrayRef| {
        let schema = Schema::new(vec![
            Arc::clone(batch(1).schema().fields().first().unwrap()),
            Arc::new(Field::new("value", array.data_type().clone(), true)),
        ]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::clone(batch(1).column(0)), array]).unwrap()
    };
    assert!(!is_taken(with(Arc::new(arrow::array::Float32Array::from(vec![1.0]))), &options));
    let text = |bytes: usize| -> ArrayRef { Arc::new(StringArray::from(vec!["x".repeat(bytes)])) };
    assert!(is_taken(with(text(MAX_PAGE_BYTES - 4)), &options));
    assert!(!is_taken(with(text(MAX_PAGE_BYTES)), &options));
}

#[test]
fn templates_are_kept_for_a_few_kinds_of_files() {
    let mut small = SmallFiles::default();
    let (options, all) = (ParquetOptions::default(), batch(3));
    for width in (1..all.num_columns()).cycle().take(40).chain([3; 5]) {
        for late in [false, true] {
            let some = all.project(&(0..=width).collect::<Vec<_>>()).unwrap();
            let (_, file) = small.write(&spec(&some, late), &Pieces(some.clone()), &options).unwrap().unwrap();
            assert_eq!(rows(file).num_columns(), width + 1);
            let pairs = metadata(file).file_metadata().key_value_metadata().unwrap().clone();
            assert!(pairs.iter().any(|pair| pair.key == "arc:late" && pair.value == Some(late.to_string())));
        }
    }
    assert_eq!(small.templates.len(), MAX_TEMPLATES);
}
