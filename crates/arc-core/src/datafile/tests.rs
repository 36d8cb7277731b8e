//! Data files through the whole writer and reader.

mod rot;

use std::{path::Path, sync::Arc};

use arrow::{
    array::{
        Array, ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int32Array,
        Int64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt16Array, UInt64Array, new_null_array,
    },
    datatypes::{DataType, Field, Fields, Int32Type, IntervalUnit, Schema, SchemaRef, TimeUnit},
};
use parquet::{
    basic::Encoding,
    file::{
        metadata::ParquetMetaData,
        reader::{FileReader, SerializedFileReader},
    },
};

use super::*;
use crate::{
    ErrorKind, Result, SequenceNumber,
    model::TEMPORARY_SUFFIX,
    vfs::{CrashFs, Fault, FaultFs, Operation, RealVfs, Vfs},
};

const PATH: &str = "data/db/cpu/day=2026-01-31/00000000000000000000000000.parquet";

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let rows = columns.first().map_or(0, |(_, array)| array.len());
    let times = Arc::new(TimestampNanosecondArray::from_iter_values(0..rows as i64).with_timezone("UTC"));
    let mut fields = vec![Field::new("time", times.data_type().clone(), false)];
    let mut arrays: Vec<ArrayRef> = vec![times];
    for (name, array) in columns {
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn spec<'a>(schema: SchemaRef, tags: &'a [&'a str]) -> DataFileSpec<'a> {
    let sorted_by = tags.iter().copied().chain(["time"]).map(String::from).collect();
    let (min_seq, max_seq) = (SequenceNumber(3), SequenceNumber(9));
    DataFileSpec {
        path: PATH.into(),
        schema,
        time_unit: crate::FileTimeUnit::default(),
        sorted_by,
        min_seq,
        max_seq,
        late: false,
        hourly: false,
        tags,
    }
}

fn write(root: &Path, tags: &[&str], batches: &[RecordBatch], options: &ParquetOptions) -> Result<DataFile> {
    let spec = spec(batches[0].schema(), tags);
    write_data_file(&RealVfs, root, &spec, batches.iter().cloned().map(Ok), options)
}

fn metadata(root: &Path) -> ParquetMetaData {
    let file = std::fs::File::open(root.join(PATH)).unwrap();
    SerializedFileReader::new(file).unwrap().metadata().clone()
}

type Bounds = (Option<StatisticsValue>, Option<StatisticsValue>);

fn text(value: &str, exact: bool) -> Option<StatisticsValue> {
    Some(StatisticsValue::Text { value: value.into(), exact })
}

#[test]
fn rows_come_back_and_the_manifest_entry_describes_them() {
    let folder = tempfile::tempdir().unwrap();
    let tags: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("b")].into_iter().collect();
    let rows = batch(vec![("host", Arc::new(tags)), ("usage", Arc::new(Float64Array::from(vec![1.5, -0.0, 2.5])))]);
    let file = write(folder.path(), &["host"], std::slice::from_ref(&rows), &ParquetOptions::default()).unwrap();
    let contents = std::fs::read(folder.path().join(PATH)).unwrap();
    assert_eq!((file.bytes, file.crc32c), (contents.len() as u64, crc32c::crc32c(&contents)));
    assert_eq!((file.path.as_str(), file.rows, file.min_time, file.max_time), (PATH, 3, 0, 2));
    assert_eq!((file.min_seq, file.max_seq, file.late), (3, 9, false));
    assert_eq!(file.sorted_by, ["host", "time"]);
    let (schema, batches) = read_data_file(&RealVfs, folder.path(), &file).unwrap();
    assert_eq!((schema, batches), (rows.schema(), vec![rows]));
    let names: Vec<_> = std::fs::read_dir(folder.path().join(PATH).parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn statistics_are_those_of_the_values() {
    use StatisticsValue::{Boolean, Float, Integer, Unsigned};
    let long_a = "a".repeat(70);
    let no = (None, None);
    let floats = |values: Vec<Option<f64>>| Arc::new(Float64Array::from(values)) as ArrayRef;
    let texts = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
    let unused_value = StringArray::from(vec!["a", "m", "z"]);
    let tags = DictionaryArray::<Int32Type>::new(vec![Some(1), None, Some(1)].into(), Arc::new(unused_value));
    let null_value = StringArray::from(vec![Some("k"), None]);
    let null_in_values =
        DictionaryArray::<Int32Type>::new(vec![Some(1), Some(0), Some(1)].into(), Arc::new(null_value));
    let zones = TimestampNanosecondArray::from(vec![Some(-7), Some(i64::MAX), None]).with_timezone("Asia/Tokyo");
    let list = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
    let cases: Vec<(ArrayRef, u64, Bounds)> = vec![
        (
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
            1,
            (Some(Integer(i64::MIN)), Some(Integer(i64::MAX))),
        ),
        (Arc::new(UInt64Array::from(vec![u64::MAX, 0, 1])), 0, (Some(Unsigned(0)), Some(Unsigned(u64::MAX)))),
        (
            Arc::new(BooleanArray::from(vec![None, Some(true), Some(true)])),
            1,
            (Some(Boolean(true)), Some(Boolean(true))),
        ),
        (Arc::new(zones), 1, (Some(Integer(-7)), Some(Integer(i64::MAX)))),
        (floats(vec![Some(2.0), Some(-1.5), None]), 1, (Some(Float(-1.5)), Some(Float(2.0)))),
        (
            floats(vec![Some(f64::INFINITY), Some(f64::NEG_INFINITY), None]),
            1,
            (Some(Float(f64::NEG_INFINITY)), Some(Float(f64::INFINITY))),
        ),
        (floats(vec![Some(f64::NAN), Some(1.0), None]), 1, no.clone()),
        (floats(vec![Some(1.0), Some(-f64::NAN), Some(2.0)]), 0, no.clone()),
        (floats(vec![Some(f64::NAN); 3]), 0, no.clone()),
        (floats(vec![None; 3]), 3, no.clone()),
        (Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0])), 0, no.clone()),
        (Arc::new(Int32Array::from(vec![2, i32::MIN, 3])), 0, (Some(Integer(i64::from(i32::MIN))), Some(Integer(3)))),
        (
            Arc::new(UInt16Array::from(vec![Some(u16::MAX), None, Some(3)])),
            1,
            (Some(Unsigned(3)), Some(Unsigned(65_535))),
        ),
        (Arc::new(Date32Array::from(vec![Some(-1), None, None])), 2, (Some(Integer(-1)), Some(Integer(-1)))),
        (new_null_array(&DataType::Int8, 3), 3, no.clone()),
        (texts(vec![Some("b"), Some(""), None]), 1, (text("", true), text("b", true))),
        (texts(vec![None, Some(&long_a), None]), 2, (text(&long_a[..64], false), text(&("a".repeat(63) + "b"), false))),
        (texts(vec![None; 3]), 3, no.clone()),
        (Arc::new(tags), 1, (text("m", true), text("m", true))),
        (Arc::new(null_in_values), 2, (text("k", true), text("k", true))),
        (new_null_array(&DataType::Null, 3), 3, no.clone()),
        (new_null_array(&list, 3), 3, no.clone()),
    ];
    for (array, null_count, (min, max)) in cases {
        let expected = ColumnStatistics { name: "x".into(), null_count, min, max };
        // In one batch, and row by row in row groups of two.
        let rows = batch(vec![("x", Arc::clone(&array))]);
        let single: Vec<_> = (0..3).map(|row| rows.slice(row, 1)).collect();
        let small = ParquetOptions { row_group_rows: 2, ..ParquetOptions::default() };
        for (batches, options) in [(vec![rows], ParquetOptions::default()), (single, small)] {
            let folder = tempfile::tempdir().unwrap();
            let file = write(folder.path(), &[], &batches, &options).unwrap();
            assert_eq!(file.columns[1], expected, "{array:?}");
        }
    }
}

#[test]
fn negative_zero_is_below_zero() {
    let folder = tempfile::tempdir().unwrap();
    let rows = batch(vec![("x", Arc::new(Float64Array::from(vec![0.0, -0.0])))]);
    let file = write(folder.path(), &[], &[rows], &ParquetOptions::default()).unwrap();
    let bits = |value: &Option<StatisticsValue>| match value {
        Some(StatisticsValue::Float(value)) => value.to_bits(),
        other => panic!("{other:?}"),
    };
    let column = &file.columns[1];
    assert_eq!((bits(&column.min), bits(&column.max)), ((-0.0_f64).to_bits(), 0.0_f64.to_bits()));
}

#[test]
fn bounds_of_columns_with_nan_are_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let values = Float64Array::from(vec![Some(1.0), Some(f64::NAN), Some(3.0), None, Some(5.0), Some(6.0)]);
    let short = Float32Array::from(vec![1.0, 2.0, 3.0, f32::NAN, 5.0, 6.0]);
    let item = Arc::new(Field::new("item", DataType::Float64, true));
    let mut lists = arrow::array::ListBuilder::new(arrow::array::Float64Builder::new()).with_field(item);
    for _ in 0..6 {
        lists.append_value([Some(1.0)]);
    }
    let rows = batch(vec![("x", Arc::new(values)), ("y", Arc::new(short)), ("z", Arc::new(lists.finish()))]);
    let options = ParquetOptions { row_group_rows: 2, ..ParquetOptions::default() };
    let file = write(folder.path(), &[], &[rows], &options).unwrap();
    assert_eq!(file.columns[1].min, None);
    let has_bounds = |column: usize| -> Vec<(bool, bool, Option<u64>)> {
        let of_group = |group: &parquet::file::metadata::RowGroupMetaData| {
            let statistics = group.column(column).statistics().unwrap();
            let index = group.column(column).column_index_offset().is_some();
            (statistics.min_bytes_opt().is_some(), index, statistics.null_count_opt())
        };
        metadata(folder.path()).row_groups().iter().map(of_group).collect()
    };
    assert_eq!(has_bounds(1), [(false, false, Some(0)), (true, true, Some(1)), (true, true, Some(0))]);
    assert_eq!(has_bounds(2), [(true, true, Some(0)), (false, false, Some(0)), (true, true, Some(0))]);
    assert_eq!(has_bounds(3), [(false, false, Some(0)); 3]);
}

#[test]
fn each_column_has_the_encoding_measured_best() {
    let rows = 20_000;
    let repeating: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|i| f64::from(i % 100) / 10.0)));
    let distinct: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|i| f64::from(i).sin())));
    let integers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i64::from(i % 50))));
    let tags: DictionaryArray<Int32Type> = (0..rows).map(|i| if i < 10_000 { "a" } else { "b" }).collect();
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|i| (i % 7).to_string())));
    let columns =
        vec![("tag", Arc::new(tags) as ArrayRef), ("r", repeating), ("d", distinct), ("i", integers), ("s", texts)];
    let rows = batch(columns);
    let dictionary = Encoding::RLE_DICTIONARY;
    let cases = [(vec!["tag"], Encoding::DELTA_BINARY_PACKED), (vec![], dictionary)];
    for (tags, integer) in cases {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &tags, std::slice::from_ref(&rows), &ParquetOptions::default()).unwrap();
        let metadata = metadata(folder.path());
        let has = |column: usize, encoding| metadata.row_group(0).column(column).encodings().any(|e| e == encoding);
        let expected =
            [Encoding::DELTA_BINARY_PACKED, dictionary, dictionary, Encoding::BYTE_STREAM_SPLIT, integer, dictionary];
        for (column, encoding) in expected.into_iter().enumerate() {
            assert!(has(column, encoding), "column {column} is not {encoding}");
            assert_eq!(has(column, dictionary), encoding == dictionary, "column {column}");
        }
    }
}

#[test]
fn the_footer_tells_order_tags_and_lateness() {
    let folder = tempfile::tempdir().unwrap();
    let tags: DictionaryArray<Int32Type> = vec!["a", "b"].into_iter().collect();
    let rows = batch(vec![("host", Arc::new(tags)), ("x", Arc::new(Int64Array::from(vec![1, 2])))]);
    let mut spec = spec(rows.schema(), &["region \"r\"", "host"]);
    spec.late = true;
    write_data_file(&RealVfs, folder.path(), &spec, [Ok(rows)].into_iter(), &ParquetOptions::default()).unwrap();
    let metadata = metadata(folder.path());
    let sorting = metadata.row_group(0).sorting_columns().unwrap();
    let sorting: Vec<_> = sorting.iter().map(|s| (s.column_idx, s.descending, s.nulls_first)).collect();
    assert_eq!(sorting, [(1, false, true), (0, false, true)]);
    let key_values = metadata.file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| key_values.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
    assert_eq!(value("arc:tags"), Some(r#"["region \"r\"","host"]"#));
    assert_eq!((value("arc:late"), value("arc:format")), (Some("true"), Some("1")));
    assert!(value("ARROW:schema").is_some());
}

#[test]
fn row_groups_and_pages_end_where_the_options_say() {
    let folder = tempfile::tempdir().unwrap();
    let rows = batch(vec![("x", Arc::new(Int64Array::from_iter_values(0..10_000)))]);
    let options = ParquetOptions { row_group_rows: 4_000, page_rows: 1_024, ..ParquetOptions::default() };
    let batches: Vec<_> = (0..10).map(|i| rows.slice(i * 1_000, 1_000)).collect();
    let file = write(folder.path(), &[], &batches, &options).unwrap();
    let groups: Vec<_> = metadata(folder.path()).row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [4_000, 4_000, 2_000]);
    let (_, read) = read_data_file(&RealVfs, folder.path(), &file).unwrap();
    let read = arrow::compute::concat_batches(&rows.schema(), &read).unwrap();
    assert_eq!(read, rows);

    let narrow = ParquetOptions { row_group_bytes: 1, ..ParquetOptions::default() };
    let other = tempfile::tempdir().unwrap();
    let rows = batch(vec![("x", Arc::new(Int64Array::from_iter_values(0..300_000)))]);
    write(other.path(), &[], &[rows], &narrow).unwrap();
    assert_eq!(metadata(other.path()).num_row_groups(), 2);
}

#[test]
fn every_storable_type_comes_back_as_it_was() {
    let field = |data_type: DataType| Arc::new(Field::new("item", data_type, true));
    let dictionary = |key, value| DataType::Dictionary(Box::new(key), Box::new(value));
    let structs = DataType::Struct(Fields::from(vec![
        Field::new("a", DataType::Float64, true),
        Field::new("b", DataType::List(field(DataType::Utf8)), true),
    ]));
    let entries = DataType::Struct(Fields::from(vec![
        Field::new("keys", DataType::Utf8, false),
        Field::new("values", DataType::Int64, true),
    ]));
    let types = [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Timestamp(TimeUnit::Second, None),
        DataType::Timestamp(TimeUnit::Millisecond, Some("+02:00".into())),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Date32,
        DataType::Date64,
        DataType::Time32(TimeUnit::Second),
        DataType::Time32(TimeUnit::Millisecond),
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Duration(TimeUnit::Second),
        DataType::Interval(IntervalUnit::YearMonth),
        DataType::Interval(IntervalUnit::DayTime),
        DataType::Binary,
        DataType::LargeBinary,
        DataType::BinaryView,
        DataType::FixedSizeBinary(3),
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Decimal32(5, 2),
        DataType::Decimal64(12, 2),
        DataType::Decimal128(30, 4),
        DataType::Decimal256(60, 4),
        DataType::Null,
        dictionary(DataType::Int8, DataType::Utf8),
        dictionary(DataType::UInt64, DataType::LargeUtf8),
        dictionary(DataType::Int32, DataType::Binary),
        DataType::List(field(DataType::Float64)),
        DataType::LargeList(field(structs.clone())),
        DataType::FixedSizeList(field(DataType::Int64), 2),
        DataType::Map(Arc::new(Field::new("entries", entries, false)), false),
        structs,
    ];
    for data_type in types {
        assert!(is_storable(&data_type), "{data_type}");
        let value = arrow::array::make_array(one_zero(&data_type));
        let null = new_null_array(&data_type, 2);
        let values = arrow::compute::concat(&[&value, &null, &value]).unwrap();
        let rows = batch(vec![("x", values)]);
        let folder = tempfile::tempdir().unwrap();
        let file = write(folder.path(), &[], std::slice::from_ref(&rows), &ParquetOptions::default()).unwrap();
        let (schema, batches) = read_data_file(&RealVfs, folder.path(), &file).unwrap();
        assert_eq!(schema, rows.schema());
        assert_eq!(batches, [rows], "{data_type}");
    }
}

/// One value of a type: zero, empty, or made of such.
fn one_zero(data_type: &DataType) -> arrow::array::ArrayData {
    let null = new_null_array(data_type, 1).to_data();
    match data_type {
        DataType::Null => null,
        DataType::Dictionary(key, value) => {
            let keys = one_zero(key);
            let builder = keys.into_builder().data_type(data_type.clone()).child_data(vec![one_zero(value)]);
            builder.build().unwrap()
        }
        DataType::Struct(fields) => {
            let children = fields.iter().map(|field| one_zero(field.data_type())).collect();
            null.into_builder().nulls(None).child_data(children).build().unwrap()
        }
        DataType::FixedSizeList(field, 2) => {
            let item = arrow::array::make_array(one_zero(field.data_type()));
            let items = arrow::compute::concat(&[&item, &item]).unwrap().to_data();
            null.into_builder().nulls(None).child_data(vec![items]).build().unwrap()
        }
        _ => null.into_builder().nulls(None).build().unwrap(),
    }
}

#[test]
fn types_that_would_not_come_back_are_not_storable() {
    let field = |data_type: DataType| Arc::new(Field::new("item", data_type, true));
    let types = [
        DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Struct(Fields::empty()),
        DataType::List(field(DataType::Struct(Fields::empty()))),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Float64)),
        DataType::RunEndEncoded(field(DataType::Int32), field(DataType::Utf8)),
    ];
    for data_type in types {
        assert!(!is_storable(&data_type), "{data_type}");
    }
}

#[test]
fn rows_that_break_the_contract_leave_no_file() {
    let rows = batch(vec![("x", Arc::new(Int64Array::from(vec![1, 2])))]);
    let other = batch(vec![("y", Arc::new(Int64Array::from(vec![1, 2])))]);
    let null_times = TimestampNanosecondArray::from(vec![None, Some(1)]).with_timezone("UTC");
    let null_time = Field::new("time", null_times.data_type().clone(), true);
    let null_time = RecordBatch::try_new(Arc::new(Schema::new(vec![null_time])), vec![Arc::new(null_times)]).unwrap();
    let busy = crate::Error::internal("the source failed");
    let cases: Vec<(&str, SchemaRef, Vec<Result<RecordBatch>>)> = vec![
        ("no rows", rows.schema(), vec![]),
        ("empty batch", rows.schema(), vec![Ok(rows.slice(0, 0))]),
        ("another schema", rows.schema(), vec![Ok(rows.clone()), Ok(other.clone())]),
        (
            "no time",
            Arc::new(rows.project(&[1]).unwrap().schema().as_ref().clone()),
            vec![Ok(rows.project(&[1]).unwrap())],
        ),
        ("null time", null_time.schema(), vec![Ok(null_time)]),
        ("failing source", rows.schema(), vec![Ok(rows.clone()), Err(busy)]),
    ];
    for (case, schema, batches) in cases {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec(schema, &[]);
        let options = ParquetOptions { row_group_rows: 1, ..ParquetOptions::default() };
        let error = write_data_file(&RealVfs, folder.path(), &spec, batches.into_iter(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{case}: {error}");
        let day = folder.path().join(PATH).parent().unwrap().to_owned();
        assert!(!day.exists() || std::fs::read_dir(day).unwrap().next().is_none(), "{case}");
    }
}

#[test]
fn a_damaged_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let rows = batch(vec![("x", Arc::new(Int64Array::from(vec![1, 2])))]);
    let file = write(folder.path(), &[], &[rows], &ParquetOptions::default()).unwrap();
    let path = folder.path().join(PATH);
    let contents = std::fs::read(&path).unwrap();
    let read = |contents: &[u8]| {
        std::fs::write(&path, contents).unwrap();
        read_data_file(&RealVfs, folder.path(), &file)
    };
    assert!(read(&contents).is_ok());
    for index in 0..contents.len() {
        let mut damaged = contents.clone();
        damaged[index] ^= 0x10;
        assert_eq!(read(&damaged).unwrap_err().kind(), ErrorKind::Corrupt, "byte {index}");
    }
    assert_eq!(read(&contents[1..]).unwrap_err().kind(), ErrorKind::Corrupt);
    std::fs::remove_file(&path).unwrap();
    let error = read_data_file(&RealVfs, folder.path(), &file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

fn small_file() -> RecordBatch {
    batch(vec![("x", Arc::new(Int64Array::from_iter_values(0..100)))])
}

/// Larger than what is read at once.
fn large_file() -> RecordBatch {
    let noise = |n: i64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
    batch(vec![("x", Arc::new(Int64Array::from_iter_values((0..10_000).map(noise))))])
}

fn write_to(vfs: &dyn Vfs, root: &Path) -> Result<DataFile> {
    write_rows_to(vfs, root, small_file())
}

fn write_rows_to(vfs: &dyn Vfs, root: &Path, rows: RecordBatch) -> Result<DataFile> {
    let options = ParquetOptions { row_group_rows: rows.num_rows() * 2 / 5, ..ParquetOptions::default() };
    write_data_file(vfs, root, &spec(rows.schema(), &[]), [Ok(rows)].into_iter(), &options)
}

#[test]
fn a_write_in_which_any_call_fails_names_the_path_and_leaves_no_file() {
    let root = Path::new("/store");
    let mut calls = 0;
    for nth in 1.. {
        let memory = CrashFs::new();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        faults.set(Fault::nth(nth, std::io::ErrorKind::StorageFull).short_write());
        let result = write_to(&faults, root);
        if faults.total_calls() < nth {
            assert_eq!(read_data_file(&memory, root, &result.unwrap()).unwrap().1.len(), 1);
            break;
        }
        let error = result.unwrap_err();
        assert!(error.to_string().contains("data"), "call {nth}: {error}");
        match &error {
            crate::Error::Io { source, .. } => assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{error}"),
            other => panic!("call {nth}: {other}"),
        }
        assert_eq!(memory.current().files().count(), 0, "call {nth}: {error}");
        write_to(&memory, root).unwrap();
        calls += 1;
    }
    // Folders, create, write, sync, rename, and the sync of four folders.
    assert!(calls >= 9, "{calls}");
}

#[test]
fn a_write_that_cannot_clean_up_leaves_what_is_removed_as_an_orphan() {
    let root = Path::new("/store");
    for operation in [Operation::WriteAllAt, Operation::SyncAll, Operation::Rename, Operation::SyncDir] {
        let memory = CrashFs::new();
        let faults = FaultFs::new(Arc::new(memory.clone()));
        faults.set(Fault::nth(1, std::io::ErrorKind::Other).of(operation));
        let unremovable = FaultFs::new(Arc::new(faults));
        unremovable.set(Fault::nth(1, std::io::ErrorKind::Other).of(Operation::RemoveFile).from_then_on());
        write_to(&unremovable, root).unwrap_err();
        let image = memory.current();
        let left: Vec<_> = image.files().map(|path| path.display().to_string()).collect();
        let suffix = if operation == Operation::SyncDir { "" } else { TEMPORARY_SUFFIX };
        assert_eq!(left, [format!("/store/{PATH}{suffix}")]);
    }
}

#[test]
fn a_file_that_was_written_survives_the_loss_of_power_and_is_never_seen_in_part() {
    let root = Path::new("/");
    let memory = CrashFs::new();
    memory.create_dir_all(Path::new("/data")).unwrap();
    memory.sync_dir(root).unwrap();
    let file = write_to(&memory, root).unwrap();
    let whole = memory.read(&root.join(PATH)).unwrap();
    for cut in memory.power_cuts() {
        for image in cut.images(3, 20) {
            let found = image.get(&root.join(PATH));
            assert!(found.is_none_or(|bytes| bytes == whole), "after operation {}", cut.operations());
        }
    }
    for image in memory.power_cut().images(3, 20) {
        read_data_file(&CrashFs::from_image(&image), root, &file).unwrap();
    }
}

fn stream(vfs: &dyn Vfs, root: &Path, file: &DataFile, batch_rows: usize) -> Result<DataFileStream> {
    CheckedDataFile::open(vfs, root, file)?.stream(batch_rows, &Schema::empty())
}

#[test]
fn a_file_streams_by_in_batches_as_it_was_written() {
    let (memory, root) = (CrashFs::new(), Path::new("/store"));
    let file = write_to(&memory, root).unwrap();
    let (schema, whole) = read_data_file(&memory, root, &file).unwrap();
    let stream = stream(&memory, root, &file, 7).unwrap();
    assert_eq!(*stream.schema(), schema);
    let batches = stream.collect::<Result<Vec<_>>>().unwrap();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 7) && batches.len() > 2);
    let concat = |batches: &[RecordBatch]| arrow::compute::concat_batches(&schema, batches).unwrap();
    assert_eq!(concat(&batches), concat(&whole));
}

#[test]
fn a_stream_of_another_file_than_the_manifest_says_fails_and_names_it() {
    let (memory, root) = (CrashFs::new(), Path::new("/store"));
    let file = write_to(&memory, root).unwrap();
    let cases = [
        ("bytes", DataFile { bytes: file.bytes + 1, ..file.clone() }),
        ("crc32c", DataFile { crc32c: file.crc32c ^ 1, ..file.clone() }),
        ("rows", DataFile { rows: file.rows + 1, ..file.clone() }),
    ];
    for (what, file) in cases {
        let read = stream(&memory, root, &file, 100).and_then(Iterator::collect::<Result<Vec<_>>>);
        let error = read.unwrap_err();
        assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains(PATH), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn a_stream_in_which_any_call_fails_says_what_the_file_system_said() {
    use std::io::ErrorKind::PermissionDenied;
    for (rows, least_calls) in [(small_file(), 2), (large_file(), 5)] {
        let (memory, root) = (CrashFs::new(), Path::new("/store"));
        let file = write_rows_to(&memory, root, rows).unwrap();
        for nth in 1.. {
            let faults = FaultFs::new(Arc::new(memory.clone()));
            faults.set(Fault::nth(nth, PermissionDenied));
            let read = stream(&faults, root, &file, 700).and_then(Iterator::collect::<Result<Vec<_>>>);
            if faults.total_calls() < nth {
                assert!(read.is_ok() && nth > least_calls);
                break;
            }
            let error = read.unwrap_err();
            let is_refused = |source: &std::io::Error| source.kind() == PermissionDenied;
            assert!(matches!(&error, crate::Error::Io { source, .. } if is_refused(source)), "{error}");
        }
    }
}

#[test]
fn few_texts_can_be_had_as_places_and_many_as_they_are() {
    let (memory, root) = (CrashFs::new(), Path::new("/store"));
    let few: StringArray = (0..500).map(|row| (row % 7 > 0).then(|| format!("state {}", row % 5))).collect();
    // Long enough, and of as many digits that they stay so when compressed.
    let digits =
        |row: u64| (0..60).map(move |n| format!("{:016x}", (60 * row + n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let many: StringArray = (0..500).map(|row| Some(digits(row).collect::<String>())).collect();
    let rows = batch(vec![("few", Arc::new(few) as ArrayRef), ("many", Arc::new(many))]);
    let options = ParquetOptions { row_group_rows: 200, ..ParquetOptions::default() };
    let spec = spec(rows.schema(), &[]);
    let file = write_data_file(&memory, root, &spec, [Ok(rows.clone())].into_iter(), &options).unwrap();
    let open = || CheckedDataFile::open(&memory, root, &file).unwrap();
    assert_eq!(["few", "many", "other"].map(|column| open().has_dictionary(column)), [true, false, false]);
    let fields = rows.schema().fields().iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>();
    let wanted = Schema::new(
        fields
            .iter()
            .map(|field| match field.name().as_str() {
                "few" => field.clone().with_data_type(text_dictionary()),
                _ => field.clone(),
            })
            .collect::<Vec<_>>(),
    );
    let batches = open().stream(64, &wanted).unwrap().collect::<Result<Vec<_>>>().unwrap();
    assert!(batches.iter().all(|batch| batch.schema().fields() == wanted.fields()));
    let plain = |batch: &RecordBatch| {
        let columns = batch.columns().iter().zip(&fields);
        let columns = columns.map(|(column, field)| arrow::compute::cast(column, field.data_type()).unwrap()).collect();
        RecordBatch::try_new(rows.schema(), columns).unwrap()
    };
    let back: Vec<RecordBatch> = batches.iter().map(plain).collect();
    assert_eq!(arrow::compute::concat_batches(&rows.schema(), &back).unwrap(), rows);
}
