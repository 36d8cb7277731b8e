//! Columns of all kinds through whole data files, read back by the Parquet library, which shares no
//! code with them.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
        StringArray, TimestampNanosecondArray, UInt64Array,
    },
    compute::concat_batches,
    datatypes::{DataType, Field, Float64Type, Int32Type, Int64Type, Schema, UInt64Type},
};
use bytes::Bytes;
use parquet::{
    arrow::{
        ArrowWriter,
        arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector},
    },
    basic::Encoding,
    file::{
        metadata::{PageIndexPolicy, ParquetMetaData},
        page_index::column_index::ColumnIndexMetaData,
        properties::{EnabledStatistics, WriterProperties},
        statistics::Statistics,
    },
};
use proptest::prelude::*;

use crate::{
    SequenceNumber,
    datafile::{DataFileSpec, ParquetOptions, write_data_file},
    vfs::RealVfs,
};

/// What the values of a column are like.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Constant,
    Few,
    Walk,
    Runs,
    Distinct,
    Extremes,
}

fn any_shape() -> impl Strategy<Value = Shape> {
    use Shape::{Constant, Distinct, Extremes, Few, Runs, Walk};
    prop::sample::select(vec![Constant, Few, Walk, Runs, Distinct, Extremes])
}

/// Every how many rows there is none.
fn any_nulls() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![0, 1, 2, 7, 300])
}

fn numbers(shape: Shape, rows: usize, seed: u64) -> Vec<u64> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    let mut last = random() % 1_000;
    let mut next = |row: usize| match shape {
        Shape::Constant => seed,
        Shape::Few => random() % 5,
        Shape::Walk => {
            last = last.wrapping_add(random() % 7).wrapping_sub(3);
            last
        }
        Shape::Runs => (row / 40) as u64 % 3,
        Shape::Distinct => random(),
        Shape::Extremes => {
            [0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, f64::NAN.to_bits(), (-0.0_f64).to_bits(), 0x7ff << 52]
                [usize::try_from(random() % 8).unwrap()]
        }
    };
    (0..rows).map(&mut next).collect()
}

fn column(kind: usize, numbers: &[u64], nulls: usize) -> ArrayRef {
    let values = || numbers.iter().enumerate().map(|(i, n)| (nulls == 0 || (i + 1) % nulls > 0).then_some(*n));
    let text = |n: u64| match n % 5 {
        0 => String::new(),
        1 => format!("host_{n}"),
        2 => "ü".repeat(usize::try_from(n % 50).unwrap()),
        _ => n.to_string(),
    };
    match kind {
        0 => Arc::new(values().map(|v| v.map(u64::cast_signed)).collect::<Int64Array>()),
        1 => Arc::new(values().collect::<UInt64Array>()),
        2 => Arc::new(values().map(|v| v.map(f64::from_bits)).collect::<Float64Array>()),
        3 => Arc::new(values().map(|v| v.map(|v| v.cast_signed() as f64 / 100.0)).collect::<Float64Array>()),
        4 => Arc::new(values().map(|v| v.map(|v| v % 2 == 1)).collect::<BooleanArray>()),
        5 => Arc::new(values().map(|v| v.map(text)).collect::<StringArray>()),
        6 => {
            let times = values().map(|v| v.map(u64::cast_signed)).collect::<TimestampNanosecondArray>();
            Arc::new(times.with_timezone("UTC"))
        }
        _ => {
            let texts: StringArray = (0..7_u64).map(|n| (n != 3).then(|| text(n))).collect();
            let keys: Int32Array = values().map(|v| v.map(|v| i32::try_from(v % 7).unwrap())).collect();
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(texts)).unwrap())
        }
    }
}

const KINDS: usize = 8;

fn batch(arrays: Vec<ArrayRef>) -> RecordBatch {
    let times = TimestampNanosecondArray::from_iter_values(0..arrays[0].len() as i64).with_timezone("UTC");
    let mut fields = vec![Field::new("time", times.data_type().clone(), false)];
    fields.extend(arrays.iter().enumerate().map(|(i, a)| Field::new(format!("c{i}"), a.data_type().clone(), true)));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(times)];
    columns.extend(arrays);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// Writes `rows` in batches of `batch_rows`.
fn written(rows: &RecordBatch, batch_rows: usize, tags: &[&str], options: &ParquetOptions) -> Bytes {
    let folder = tempfile::tempdir().unwrap();
    let spec = DataFileSpec {
        time_unit: crate::FileTimeUnit::default(),
        path: "data/db/t/day=2026-01-31/file.parquet".into(),
        schema: rows.schema(),
        sorted_by: tags.iter().map(ToString::to_string).collect(),
        min_seq: SequenceNumber(1),
        max_seq: SequenceNumber(1),
        late: false,
        hourly: false,
        tags,
    };
    let starts = (0..rows.num_rows()).step_by(batch_rows);
    let batches = starts.map(|start| Ok(rows.slice(start, batch_rows.min(rows.num_rows() - start))));
    write_data_file(&RealVfs, folder.path(), &spec, batches, options).unwrap();
    std::fs::read(folder.path().join(&spec.path)).unwrap().into()
}

fn open(file: &Bytes) -> ParquetRecordBatchReaderBuilder<Bytes> {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap()
}

fn read(builder: ParquetRecordBatchReaderBuilder<Bytes>) -> RecordBatch {
    let schema = Arc::clone(builder.schema());
    let batches: Vec<_> = builder.build().unwrap().collect::<Result<_, _>>().unwrap();
    concat_batches(&schema, &batches).unwrap()
}

/// Equality of what the values are: bits of floats, texts of dictionaries.
fn assert_same(found: &RecordBatch, expected: &RecordBatch) {
    assert_eq!(found.schema().fields(), expected.schema().fields());
    for (found, expected) in found.columns().iter().zip(expected.columns()) {
        if let Some(floats) = expected.as_primitive_opt::<Float64Type>() {
            let bits = |array: &Float64Array| -> Vec<_> { array.iter().map(|v| v.map(f64::to_bits)).collect() };
            assert_eq!(bits(found.as_primitive()), bits(floats));
        } else if matches!(expected.data_type(), DataType::Dictionary(..)) {
            let texts = |array: &ArrayRef| arrow::compute::cast(array, &DataType::Utf8).unwrap();
            assert_eq!(&texts(found), &texts(expected));
        } else {
            assert_eq!(found, expected);
        }
    }
}

/// The same rows through the library's own writer.
fn of_library(rows: &RecordBatch, row_group_rows: usize) -> Bytes {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(row_group_rows))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.into_inner().unwrap().into()
}

/// Compares what the footer says with what the library would have said, but for floats: their
/// bounds are left out where there is any NaN.
fn assert_same_statistics(ours: &ParquetMetaData, library: &ParquetMetaData) {
    for (ours, library) in ours.row_groups().iter().zip(library.row_groups()) {
        assert_eq!(ours.num_rows(), library.num_rows());
        for (ours, library) in ours.columns().iter().zip(library.columns()) {
            let (ours, library) = (ours.statistics().unwrap(), library.statistics().unwrap());
            assert_eq!(ours.null_count_opt(), library.null_count_opt());
            if matches!(ours, Statistics::Double(_)) && ours.min_bytes_opt().is_none() {
                continue;
            }
            assert_eq!(ours, library);
        }
    }
}

/// Compares the bounds of each page with those of its rows.
fn assert_page_bounds(metadata: &ParquetMetaData, rows: &RecordBatch) {
    let mut first = 0;
    for (group, row_group) in metadata.row_groups().iter().enumerate() {
        let group_rows = usize::try_from(row_group.num_rows()).unwrap();
        for column in 0..rows.num_columns() {
            let index = &metadata.column_index().unwrap()[group][column];
            // Of floats with any NaN.
            if matches!(index, ColumnIndexMetaData::NONE) {
                continue;
            }
            let locations = &metadata.offset_index().unwrap()[group][column].page_locations;
            let starts: Vec<usize> = locations.iter().map(|l| usize::try_from(l.first_row_index).unwrap()).collect();
            for (page, start) in starts.iter().enumerate() {
                let end = starts.get(page + 1).copied().unwrap_or(group_rows);
                let array = rows.column(column).slice(first + start, end - start);
                assert_eq!(index.null_count(page), Some(array.logical_null_count() as i64));
                match index {
                    ColumnIndexMetaData::INT64(index) if *array.data_type() == DataType::UInt64 => {
                        let values = array.as_primitive::<UInt64Type>();
                        let bound = |v: Option<&i64>| v.map(|v| v.cast_unsigned());
                        assert_eq!(bound(index.min_value(page)), arrow::compute::min(values));
                        assert_eq!(bound(index.max_value(page)), arrow::compute::max(values));
                    }
                    ColumnIndexMetaData::INT64(index) if *array.data_type() == DataType::Int64 => {
                        let values = array.as_primitive::<Int64Type>();
                        assert_eq!(index.min_value(page).copied(), arrow::compute::min(values));
                        assert_eq!(index.max_value(page).copied(), arrow::compute::max(values));
                    }
                    ColumnIndexMetaData::DOUBLE(index) => {
                        let values = array.as_primitive::<Float64Type>();
                        assert_eq!(index.min_value(page).copied(), arrow::compute::min(values));
                        assert_eq!(index.max_value(page).copied(), arrow::compute::max(values));
                    }
                    ColumnIndexMetaData::BYTE_ARRAY(index) => {
                        let texts = arrow::compute::cast(&array, &DataType::Utf8).unwrap();
                        let (min, max) = (index.min_value(page), index.max_value(page));
                        for text in texts.as_string::<i32>().iter().flatten().map(str::as_bytes) {
                            assert!(min.unwrap() <= text && text <= max.unwrap());
                        }
                    }
                    _ => {}
                }
            }
        }
        first += group_rows;
    }
}

proptest! {
    #[test]
    fn columns_come_back_and_are_described_as_the_library_would(
        rows in 1_usize..3_000,
        columns in prop::collection::vec((0..KINDS, any_shape(), any_nulls(), any::<u64>()), 1..6),
        (page_rows, row_group_rows, batch_rows) in (1_usize..1_200, 500_usize..4_000, 1_usize..4_000),
        is_sorted in any::<bool>(),
        (skip, take) in (0_usize..3_000, 1_usize..100),
    ) {
        let arrays = columns.iter().map(|(kind, shape, nulls, seed)| column(*kind, &numbers(*shape, rows, *seed), *nulls));
        let expected = batch(arrays.collect());
        let options = ParquetOptions { page_rows, row_group_rows, ..ParquetOptions::default() };
        let tags: &[&str] = if is_sorted { &["c0"] } else { &[] };
        let file = written(&expected, batch_rows, tags, &options);
        assert_same(&read(open(&file)), &expected);
        // Pages are found through the index.
        let (skip, take) = (skip.min(rows - 1), take.min(rows - skip.min(rows - 1)));
        let selection = vec![RowSelector::skip(skip), RowSelector::select(take), RowSelector::skip(rows - skip - take)];
        assert_same(&read(open(&file).with_row_selection(RowSelection::from(selection))), &expected.slice(skip, take));
        let metadata = Arc::clone(open(&file).metadata());
        let library = ParquetRecordBatchReaderBuilder::try_new(of_library(&expected, row_group_rows)).unwrap();
        assert_same_statistics(&metadata, library.metadata());
        assert_page_bounds(&metadata, &expected);
    }
}

#[test]
fn a_dictionary_that_does_not_pay_is_given_up_within_a_row_group() {
    let numbers: Vec<u64> = (0..150_000_u64).map(|i| if i < 20_000 { i % 10 } else { i * i }).collect();
    let arrays: Vec<ArrayRef> = [0, 3, 5].into_iter().map(|kind| column(kind, &numbers, 0)).collect();
    let expected = batch(arrays);
    let file = written(&expected, 40_000, &[], &ParquetOptions::default());
    assert_same(&read(open(&file)), &expected);
    let metadata = Arc::clone(open(&file).metadata());
    let fallbacks = [Encoding::DELTA_BINARY_PACKED, Encoding::BYTE_STREAM_SPLIT, Encoding::DELTA_LENGTH_BYTE_ARRAY];
    for (column, fallback) in (1..).zip(fallbacks) {
        let encodings: Vec<Encoding> = metadata.row_group(0).column(column).encodings().collect();
        assert!(encodings.contains(&Encoding::RLE_DICTIONARY) && encodings.contains(&fallback), "{encodings:?}");
    }
}

#[test]
fn tags_of_batches_with_other_dictionaries_share_one() {
    let part = |texts: &[&str], keys: Vec<i32>| {
        let tags = DictionaryArray::<Int32Type>::new(keys.into(), Arc::new(StringArray::from(texts.to_vec())));
        batch(vec![Arc::new(tags)])
    };
    let parts = [part(&["a", "b"], vec![0, 0, 1]), part(&["b", "c"], vec![0, 1, 1]), part(&["c"], vec![0, 0])];
    let expected = concat_batches(&parts[0].schema(), &parts).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spec = DataFileSpec {
        time_unit: crate::FileTimeUnit::default(),
        path: "data/db/t/day=2026-01-31/file.parquet".into(),
        schema: expected.schema(),
        sorted_by: vec!["c0".into()],
        min_seq: SequenceNumber(1),
        max_seq: SequenceNumber(1),
        late: false,
        hourly: false,
        tags: &["c0"],
    };
    write_data_file(&RealVfs, folder.path(), &spec, parts.into_iter().map(Ok), &ParquetOptions::default()).unwrap();
    let file: Bytes = std::fs::read(folder.path().join(&spec.path)).unwrap().into();
    let found = read(open(&file));
    assert_same(&found, &expected);
    assert_eq!(found.column(1).as_dictionary::<Int32Type>().values().len(), 3);
}
