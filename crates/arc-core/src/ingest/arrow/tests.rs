use std::sync::Arc;

use arrow::{
    array::{
        BinaryViewArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
        FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array, LargeStringArray, ListArray, NullArray,
        StringArray, StringViewArray, StructArray, TimestampMicrosecondArray, TimestampMillisecondArray,
        TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt64Array,
    },
    buffer::OffsetBuffer,
    datatypes::{Field, Int8Type, Schema},
    ipc::{
        CompressionType, MetadataVersion,
        writer::{FileWriter, IpcWriteOptions, StreamWriter},
    },
    util::pretty::pretty_format_batches,
};
use proptest::prelude::*;

use super::*;
use crate::{
    ColumnTypes, FileTimeUnit, OnConflict, Precision,
    buffer::ChunkReader,
    ingest::{Context, TypePolicy},
    registry::Database,
};

const COPIED: Terms = Terms { most_bytes: 1 << 20, may_keep: false };

fn batch<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn column<A: Array + 'static>(array: A) -> ArrayRef {
    Arc::new(array)
}

fn times(values: &[i64]) -> ArrayRef {
    column(TimestampNanosecondArray::from(values.to_vec()))
}

fn stream_with(batches: &[RecordBatch], compression: Option<CompressionType>) -> Bytes {
    let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5).unwrap();
    let options = options.try_with_compression(compression).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    Bytes::from(writer.into_inner().unwrap())
}

fn stream(batches: &[RecordBatch]) -> Bytes {
    stream_with(batches, None)
}

fn file(batches: &[RecordBatch]) -> Bytes {
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    Bytes::from(writer.into_inner().unwrap())
}

/// Decodes into table `t` of an empty database and returns the rows as SQL would see them.
fn decoded_with(body: &Bytes, tags: &[&str], most_bytes: usize) -> Result<String, String> {
    let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let database = Arc::new(Database::new("db", 0, false));
    let context = Context { precision: Some(Precision::Second), tags: &tags, ..Context::plain(&database) };
    let staged =
        decode(body, "t", None, Terms { most_bytes, may_keep: false }, &context).map_err(|error| error.to_string())?;
    let table = staged.tables.into_iter().next().unwrap();
    let schema = table.grown_schema();
    let reader = ChunkReader::new(schema, Arc::clone(&table.table.series));
    let rows = reader.rows(&Arc::new(table.rows.into_chunk().unwrap())).all().unwrap();
    // Without a table of zones, a time with one cannot be printed.
    let mut shown = rows.columns().to_vec();
    shown[0] = cast(&shown[0], &DataType::Int64).unwrap();
    let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
    let shown = RecordBatch::try_from_iter(names.into_iter().zip(shown)).unwrap();
    Ok(pretty_format_batches(&[shown]).unwrap().to_string())
}

fn decoded(body: &Bytes, tags: &[&str]) -> Result<String, String> {
    decoded_with(body, tags, 1 << 20)
}

#[test]
fn types_that_a_table_cannot_have_are_refused_and_read_back_from_a_log() {
    let wide = |bytes: usize| column(FixedSizeBinaryArray::try_from_iter(std::iter::once(vec![0; bytes])).unwrap());
    let item = Arc::new(Field::new_list_field(DataType::Boolean, true));
    let flags = |size: usize| {
        let values = Arc::new(arrow::array::BooleanArray::from(vec![false; size]));
        column(FixedSizeListArray::new(Arc::clone(&item), i32::try_from(size).unwrap(), values, None))
    };
    let zoned = |zone: &str| column(TimestampSecondArray::from(vec![1]).with_timezone(zone));
    let many: Vec<(String, ArrayRef)> = (0..17).map(|n| (format!("w{n}"), wide(1 << 16))).collect();
    let many = many.iter().map(|(name, array)| (name.as_str(), Arc::clone(array)));
    let inner =
        StructArray::from(vec![(Arc::new(Field::new("x", wide(70_000).data_type().clone(), true)), wide(70_000))]);
    for (columns, reason) in [
        (vec![("x", wide(1 << 16))], None),
        (
            vec![("x", wide((1 << 16) + 1))],
            Some("column \"x\" has 65537 bytes a value, also where it is NULL; at most 65536"),
        ),
        (vec![("y", flags(1_000_000))], Some("column \"y\" has 1000000 bytes a value")),
        (vec![("z", column(inner))], Some("column \"z\" has 70000 bytes a value")),
        (vec![("u", zoned("Europe/Berlin"))], None),
        (vec![("u", zoned("Nowhere"))], Some("column \"u\" has times of \"Nowhere\", which is no time zone")),
        (many.collect(), Some("table \"t\" would have 1114112 bytes a row, also where all is NULL; at most 1048576")),
    ] {
        let body = stream(&[batch(std::iter::once(("time", times(&[1]))).chain(columns))]);
        let database = Arc::new(Database::new("db", 0, false));
        let decoded = |types| {
            let context = Context { types, ..Context::plain(&database) };
            decode(&body, "t", None, Terms { most_bytes: 1 << 22, may_keep: false }, &context)
        };
        match (decoded(TypePolicy::STRICT), reason) {
            (Ok(_), None) => {}
            (Err(error), Some(reason)) => assert!(error.to_string().contains(reason), "{error}"),
            (decoded, reason) => panic!("{decoded:?}, expected {reason:?}"),
        }
        decoded(TypePolicy::Logged).unwrap();
    }
}

/// A batch with most kinds of columns, two rows.
fn sample() -> RecordBatch {
    let texts = ["a", "b"];
    let keys: DictionaryArray<Int8Type> = texts.into_iter().collect();
    let pair = StructArray::from(vec![
        (Arc::new(Field::new("x", DataType::Int32, true)), column(Int32Array::from(vec![1, 2]))),
        (Arc::new(Field::new("y", DataType::Utf8, true)), column(StringArray::from(texts.to_vec()))),
    ]);
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let list = ListArray::new(item, OffsetBuffer::from_lengths([2, 0]), column(Int64Array::from(vec![1, 2])), None);
    batch([
        ("time", times(&[1, 2])),
        ("host", column(keys)),
        ("float", column(Float64Array::from(vec![Some(1.5), None]))),
        ("unsigned", column(UInt64Array::from(vec![u64::MAX, 0]))),
        ("small", column(UInt8Array::from(vec![255, 0]))),
        ("decimal", column(Decimal128Array::from(vec![12_345, -1]).with_precision_and_scale(10, 2).unwrap())),
        ("date", column(Date32Array::from(vec![0, -1]))),
        ("text", column(StringViewArray::from(vec!["short", "longer than twelve bytes"]))),
        ("bytes", column(BinaryViewArray::from(vec![&b"x"[..], b"also longer than twelve bytes"]))),
        ("pair", column(pair)),
        ("list", column(list)),
        ("nothing", column(NullArray::new(2))),
    ])
}

/// Returns a file that begins as those of Polars, where no message is.
fn of_polars(batches: &[RecordBatch]) -> Bytes {
    let mut file = file(batches).to_vec();
    file[8..16].copy_from_slice(&[4, 0, 0, 0, 0xf2, 0xff, 0xff, 0xff]);
    file.into()
}

#[test]
fn a_footer_that_lies_is_refused() {
    let whole = of_polars(&[sample()]);
    for at in whole.len() - 400..whole.len() {
        for bit in [0, 3, 7] {
            let mut changed = whole.to_vec();
            changed[at] ^= 1 << bit;
            if let Ok(stream) = of_file(&changed.into()) {
                assert!(stream.len() <= 2 * whole.len(), "{at}: {} bytes", stream.len());
                let _ = decoded(&stream, &["host"]);
            }
        }
    }
    for end in 12..whole.len() {
        assert!(of_file(&whole.slice(..end)).is_err(), "{end} of {}", whole.len());
    }
}

#[test]
fn every_form_of_a_stream_is_the_same_rows() {
    let expected = decoded(&stream(&[sample()]), &["host"]).unwrap();
    assert!(expected.contains("18446744073709551615") && expected.contains("123.45"), "{expected}");
    assert!(expected.contains("{x: 2, y: b}") && expected.contains("1969-12-31"), "{expected}");
    let unaligned = Bytes::from([b"x".as_slice(), &stream(&[sample()])].concat()).slice(1..);
    let forms = [
        stream_with(&[sample()], Some(CompressionType::LZ4_FRAME)),
        stream_with(&[sample()], Some(CompressionType::ZSTD)),
        stream(&[sample().slice(0, 1), sample().slice(1, 1)]),
        of_file(&file(&[sample()])).unwrap(),
        of_file(&of_polars(&[sample()])).unwrap(),
        of_file(&of_polars(&[sample().slice(0, 1), sample().slice(1, 1)])).unwrap(),
        unaligned,
    ];
    for body in forms {
        assert_eq!(decoded(&body, &["host"]).unwrap(), expected);
    }
}

#[test]
fn times_of_every_unit_and_zone_are_the_same_moments() {
    let day = 86_400_i64;
    let seconds = [0, day, -day];
    let scaled = |unit: i64| seconds.map(|s| s * unit).to_vec();
    let expected = decoded(&stream(&[batch([("time", times(&scaled(1_000_000_000)))])]), &[]).unwrap();
    let arrays = [
        column(TimestampSecondArray::from(scaled(1)).with_timezone("+05:30")),
        column(TimestampMillisecondArray::from(scaled(1_000)).with_timezone("Asia/Tokyo")),
        column(TimestampMicrosecondArray::from(scaled(1_000_000)).with_timezone("UTC")),
        column(TimestampNanosecondArray::from(scaled(1_000_000_000)).with_timezone("-11:00")),
        column(Date32Array::from(vec![0, 1, -1])),
        column(Date64Array::from(scaled(1_000))),
        column(Int64Array::from(scaled(1))),
        column(Int32Array::from(vec![0, 86_400, -86_400])),
    ];
    for array in arrays {
        let name = array.data_type().to_string();
        assert_eq!(decoded(&stream(&[batch([("time", array)])]), &[]).as_ref(), Ok(&expected), "{name}");
    }
    let out_of_range = [
        column(TimestampSecondArray::from(vec![i64::MAX])),
        column(Date32Array::from(vec![i32::MAX])),
        column(Date64Array::from(vec![i64::MIN])),
        column(UInt64Array::from(vec![u64::MAX])),
        column(Int64Array::from(vec![i64::MAX])),
    ];
    for array in out_of_range {
        let name = array.data_type().to_string();
        let error = decoded(&stream(&[batch([("time", array)])]), &[]).unwrap_err();
        assert!(error.contains("outside the range"), "{name}: {error}");
    }
}

#[test]
fn tags_are_the_same_in_every_form_of_text() {
    let values = [Some("a"), Some(""), None, Some("a"), Some("ü b")];
    let of = |host: ArrayRef| batch([("time", times(&[1, 2, 3, 4, 5])), ("host", host)]);
    let expected = decoded(&stream(&[of(column(StringArray::from(values.to_vec())))]), &["host"]).unwrap();
    let with_null_value = StringArray::from(vec![Some("a"), None, Some(""), Some("ü b")]);
    let keys = Int32Array::from(vec![Some(0), Some(2), Some(1), Some(0), Some(3)]);
    let forms = [
        column(LargeStringArray::from(values.to_vec())),
        column(StringViewArray::from(values.to_vec())),
        column(values.iter().copied().collect::<DictionaryArray<Int8Type>>()),
        column(DictionaryArray::new(keys, column(with_null_value))),
    ];
    for host in forms {
        assert_eq!(
            decoded(&stream(&[of(Arc::clone(&host))]), &["host"]).as_ref(),
            Ok(&expected),
            "{}",
            host.data_type()
        );
    }
    let none = DictionaryArray::new(Int32Array::from(vec![None; 5]), column(StringArray::new_null(0)));
    let untagged = decoded(&stream(&[of(column(NullArray::new(5)))]), &["host"]);
    assert_eq!(decoded(&stream(&[of(column(none))]), &["host"]), untagged);
}

#[test]
fn what_does_not_fit_is_refused_with_the_name_of_the_column() {
    let one = || ("time", times(&[1]));
    let of_ints = DictionaryArray::new(Int32Array::from(vec![0]), column(Int64Array::from(vec![7])));
    let negative = Decimal128Array::from(vec![1]).with_precision_and_scale(5, -2).unwrap();
    let nulls = ListArray::new(
        Arc::new(Field::new("item", DataType::Null, true)),
        OffsetBuffer::from_lengths([1_000_000]),
        column(NullArray::new(1_000_000)),
        None,
    );
    let cases = [
        (batch([("time", column(Float64Array::from(vec![1.0])))]), "\"time\" is Float64"),
        (batch([("time", column(StringArray::from(vec!["1"])))]), "\"time\" is Utf8"),
        (batch([("time", column(Int64Array::from(vec![None])))]), "\"time\" has 1 nulls"),
        (batch([("x", times(&[1]))]), "no column \"time\""),
        (batch([one(), ("n", column(of_ints))]), "column \"n\" is a dictionary of Int"),
        (batch([one(), ("d", column(negative))]), "column \"d\" has the type Decimal128(5, -2)"),
        (batch([one(), ("l", column(nulls))]), "column \"l\" has the type Null"),
        (batch([one(), ("h", column(Int64Array::from(vec![1])))]), "column \"h\""),
    ];
    for (batch, says) in cases {
        let tags: &[&str] = if batch.schema().column_with_name("h").is_some() { &["h"] } else { &[] };
        let error = decoded(&stream(&[batch]), tags).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let schema = Schema::new(vec![Field::new("time", DataType::Int64, false); 2]);
    let values = column(Int64Array::from(vec![1]));
    let twice = RecordBatch::try_new(Arc::new(schema), vec![Arc::clone(&values), values]).unwrap();
    assert!(decoded(&stream(&[twice]), &[]).unwrap_err().contains("\"time\" comes twice"));
}

/// Writes both arrays, one after the other, and returns the column's type, or why the second one is refused.
fn types_after(first: ArrayRef, second: ArrayRef) -> Result<DataType, Error> {
    let database = Arc::new(Database::new("db", 0, false));
    let context = Context::plain(&database);
    let body = [first, second].map(|v| {
        let time = times(&(0..i64::try_from(v.len()).unwrap()).collect::<Vec<_>>());
        stream(&[batch([("time", time), ("v", v)])])
    });
    let mut staged = decode(&body[0], "t", None, COPIED, &context).unwrap();
    let staged = staged.tables.remove(0);
    staged.table.set_schema(staged.grown_schema());
    database.add(Arc::clone(&staged.table));
    let data_type = staged.column(0).unwrap().data_type.clone();
    decode(&body[1], "t", None, COPIED, &context).map(|_| data_type)
}

#[test]
fn the_first_write_decides_no_width_and_no_unit() {
    let texts = |field: Field, values: ArrayRef| {
        column(ListArray::new(Arc::new(field), OffsetBuffer::from_lengths([values.len()]), values, None))
    };
    let kinds = [
        (
            DataType::Int64,
            vec![
                column(UInt8Array::from(vec![7])),
                column(Int32Array::from(vec![-7])),
                column(Int64Array::from(vec![i64::MAX])),
            ],
        ),
        (DataType::Float64, vec![column(Float32Array::from(vec![0.1])), column(Float64Array::from(vec![0.1]))]),
        (
            time_type(),
            vec![
                column(TimestampSecondArray::from(vec![1])),
                column(TimestampMillisecondArray::from(vec![1]).with_timezone("+01:00")),
                column(TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC")),
                column(TimestampNanosecondArray::from(vec![1])),
            ],
        ),
        (DataType::Date32, vec![column(Date32Array::from(vec![1])), column(Date64Array::from(vec![86_400_000]))]),
        (
            DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            vec![
                texts(Field::new("item", DataType::Utf8, true), column(StringArray::from(vec!["a"]))),
                texts(Field::new("element", DataType::Utf8View, true), column(StringViewArray::from(vec!["b"]))),
                texts(Field::new("l", DataType::LargeUtf8, false), column(LargeStringArray::from(vec!["c"]))),
            ],
        ),
    ];
    for (expected, arrays) in kinds {
        for (first, second) in arrays.iter().flat_map(|first| arrays.iter().map(move |second| (first, second))) {
            let name = format!("{} and {}", first.data_type(), second.data_type());
            let found = types_after(Arc::clone(first), Arc::clone(second)).map_err(|error| error.to_string());
            assert_eq!(found.as_ref(), Ok(&expected), "{name}");
        }
    }
    let (day, midnight) = (column(Date32Array::from(vec![1])), times(&[86_400_000_000_000]));
    assert_eq!(types_after(Arc::clone(&day), Arc::clone(&midnight)).unwrap(), DataType::Date32);
    assert_eq!(types_after(midnight, day).unwrap(), time_type());
    // What nanoseconds cannot be keeps its unit.
    let far = column(TimestampSecondArray::from(vec![253_402_300_799]));
    let kept = DataType::Timestamp(TimeUnit::Second, Some("UTC".into()));
    assert_eq!(types_after(far, column(TimestampNanosecondArray::from(vec![1_000_000_000]))).unwrap(), kept);
}

#[test]
fn numbers_that_are_none_of_the_column_are_refused_by_row_and_value() {
    let cases = [
        (
            column(Int64Array::from(vec![1])),
            column(Float64Array::from(vec![1.0, 2.5])),
            "has float, and 2.5 in row 2 cannot",
        ),
        (column(Int64Array::from(vec![1])), column(UInt64Array::from(vec![u64::MAX])), "18446744073709551615 in row 1"),
        (column(UInt64Array::from(vec![1])), column(Int32Array::from(vec![-7])), "-7 in row 1"),
        (
            column(Float64Array::from(vec![0.5])),
            column(Int64Array::from(vec![(1 << 53) + 1])),
            "9007199254740993 in row 1",
        ),
    ];
    for (first, second, says) in cases {
        let error = types_after(first, second).unwrap_err();
        assert!(matches!(&error, Error::SchemaConflict { column, .. } if column == "v"), "{error}");
        let error = error.to_string();
        assert!(error.contains(says) && error.ends_with("on_conflict = \"widen\" would let it in"), "{error}");
    }
    let decimal = Decimal128Array::from(vec![20]).with_precision_and_scale(5, 1).unwrap();
    let decimal = types_after(column(Int64Array::from(vec![2])), column(decimal)).unwrap_err();
    assert!(matches!(decimal, Error::SchemaConflict { .. }), "its text is 2.0: {decimal}");
    let date = types_after(column(Date32Array::from(vec![1])), times(&[1])).unwrap_err().to_string();
    assert!(date.contains("1970-01-01T00:00:00.000000001 in row 1"), "{date}");
}

#[test]
fn wider_values_count_before_they_are_made() {
    let rows = 4_000;
    let small = || column(UInt8Array::from(vec![0; rows]));
    let body = stream(&[batch([("time", times(&vec![1; rows])), ("a", small()), ("b", small()), ("c", small())])]);
    assert!(decoded_with(&body, &[], 3 * 7 * rows).is_ok());
    let error = decoded_with(&body, &[], 3 * 7 * rows - 1).unwrap_err();
    assert!(error.contains("column \"c\" takes 28000 bytes more as Int64"), "{error}");
}

#[test]
fn integers_keep_their_width_where_the_schema_says_so() {
    let keep = [(INTEGER_WIDTH.to_owned(), KEEP.to_owned())].into();
    let rows = batch([
        ("time", times(&[1])),
        ("i", column(Int32Array::from(vec![1]))),
        ("f", column(Float32Array::from(vec![0.5]))),
    ]);
    let schema = rows.schema().as_ref().clone().with_metadata(keep);
    let body = stream(&[rows.with_schema(Arc::new(schema)).unwrap()]);
    let database = Arc::new(Database::new("db", 0, false));
    for (types, expected) in [(ColumnTypes::new(), DataType::Int32), (widening(), DataType::Int64)] {
        let context = Context { types: TypePolicy::Settings(&types), ..Context::plain(&database) };
        let mut staged = decode(&body, "t", None, COPIED, &context).unwrap();
        let columns: Vec<_> = staged.tables.remove(0).added.into_iter().map(|column| column.data_type).collect();
        assert_eq!(columns, [expected, DataType::Float64]);
    }
}

#[test]
fn new_columns_of_times_have_the_unit_of_files_if_it_has_them() {
    let body = stream(&[batch([
        ("time", times(&[1])),
        ("whole", column(TimestampNanosecondArray::from(vec![-7_000]))),
        ("finer", column(TimestampNanosecondArray::from(vec![-7_001]).with_timezone("UTC"))),
        ("far", column(TimestampSecondArray::from(vec![253_402_300_799]).with_timezone("+01:00"))),
    ])]);
    let database = Arc::new(Database::new("db", 0, false));
    let of = |types: &ColumnTypes| {
        let context = Context { types: TypePolicy::Settings(types), ..Context::plain(&database) };
        let mut staged = decode(&body, "t", None, COPIED, &context).unwrap();
        staged.tables.remove(0).added.into_iter().map(|column| column.data_type).collect::<Vec<_>>()
    };
    let utc = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    let [ns, us, s] = [TimeUnit::Nanosecond, TimeUnit::Microsecond, TimeUnit::Second].map(utc);
    assert_eq!(of(&ColumnTypes::new()), [ns.clone(), ns.clone(), s]);
    for unit in [FileTimeUnit::Microsecond, FileTimeUnit::Millisecond] {
        assert_eq!(of(&ColumnTypes::new().time_unit(unit)), [us.clone(), ns.clone(), us.clone()]);
    }
}

fn widening() -> ColumnTypes {
    ColumnTypes::new().on_conflict(OnConflict::Widen)
}

#[test]
fn extension_types_are_not_taken_for_their_numbers() {
    let of = |extension: &str, array: ArrayRef| {
        let metadata = [("ARROW:extension:name".to_owned(), extension.to_owned())].into();
        let field = Field::new("x", array.data_type().clone(), true).with_metadata(metadata);
        let fields = vec![Field::new("time", times(&[1]).data_type().clone(), false), field];
        stream(&[RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![times(&[1]), array]).unwrap()])
    };
    let period = of("pandas.period", column(Int64Array::from(vec![648])));
    let error = decoded(&period, &[]).unwrap_err();
    assert!(error.contains("column \"x\" has the extension type pandas.period"), "{error}");
    let bytes = FixedSizeBinaryArray::try_from_iter(std::iter::once([7; 16])).unwrap();
    assert!(decoded(&of("arrow.uuid", column(bytes)), &[]).is_err());
    assert!(decoded(&of("arrow.json", column(StringArray::from(vec!["{}"]))), &[]).is_ok());
    let database = Arc::new(Database::new("db", 0, false));
    let logged = Context { types: TypePolicy::Logged, ..Context::plain(&database) };
    decode(&period, "t", None, COPIED, &logged).unwrap();
}

#[test]
fn a_body_that_was_cut_off_anywhere_is_refused() {
    let whole = stream_with(&[sample(), sample()], Some(CompressionType::LZ4_FRAME));
    for end in 0..whole.len() {
        assert!(decoded(&whole.slice(..end), &["host"]).is_err(), "{end} of {}", whole.len());
    }
    assert!(decoded(&Bytes::from([&whole[..], b"\0"].concat()), &["host"]).unwrap_err().contains("1 bytes follow"));
    let whole = file(&[sample()]);
    for end in 6..whole.len() {
        let refused = of_file(&whole.slice(..end)).and_then(|stream| decoded(&stream, &["host"]));
        assert!(refused.is_err(), "{end} of {}", whole.len());
    }
}

#[test]
fn rows_of_one_request_do_not_overwrite_each_other() {
    let host = || ("host", column(StringArray::from(vec!["a"])));
    let twice = [batch([("time", times(&[7])), host()]), batch([("time", times(&[7])), host()])];
    let database = Arc::new(Database::new("db", 0, false));
    let tags = ["host".to_owned()];
    let context = Context { tags: &tags, ..Context::plain(&database) };
    let mut staged = decode(&stream(&twice), "t", None, COPIED, &context).unwrap();
    let staged = staged.tables.remove(0);
    staged.table.set_schema(staged.grown_schema());
    database.add(Arc::clone(&staged.table));
    let undeclared = Context { tags: &[], ..context };
    let error = decode(&stream(&twice), "t", None, COPIED, &undeclared).unwrap_err().to_string();
    assert!(error.contains("rows 1 and 2"), "{error}");
}

/// Bodies that mean much more than they are.
#[test]
fn a_bomb_is_refused_before_it_takes_memory() {
    let rows = 4_000;
    let time = || ("time", times(&vec![1; rows]));
    let long = "x".repeat(1 << 10);
    let keys = || Int32Array::from(vec![0; rows]);
    let words = DictionaryArray::new(keys(), column(StringArray::from(vec![long.as_str()])));
    let words_as_tag = stream(&[batch([time(), ("w", column(words.clone()))])]);
    let in_a_list = ListArray::new(
        Arc::new(Field::new("item", words.data_type().clone(), true)),
        OffsetBuffer::from_lengths(vec![1; rows]),
        column(words.clone()),
        None,
    );
    let views = StringViewArray::from_iter_values([&long]);
    let (views, buffers, nulls) = (vec![views.views()[0]; rows], views.data_buffers().to_vec(), None);
    let shared = StringViewArray::new(views.into(), buffers, nulls);
    for (name, array) in [("w", column(words)), ("l", column(in_a_list)), ("v", column(shared))] {
        let error = decoded(&stream(&[batch([time(), (name, array)])]), &[]).unwrap_err();
        assert!(error.contains(&format!("column {name:?} repeats values: they take 4096000 bytes")), "{error}");
    }
    // As a tag the word is there once.
    assert!(decoded_with(&words_as_tag, &["w"], 100_000).is_ok());

    let zeros = batch([time(), ("z", column(Int64Array::from(vec![0; rows])))]);
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        let body = stream_with(std::slice::from_ref(&zeros), Some(codec));
        assert!(body.len() < 2_000);
        assert!(decoded_with(&body, &[], 2 * 8 * rows).is_ok());
        let error = decoded_with(&body, &[], 2 * 8 * rows - 1).unwrap_err();
        assert!(error.contains("more memory than one write may"), "{error}");
        // What a buffer says of itself is a lie, in either direction.
        let size = (8 * rows as u64).to_le_bytes();
        let at = body.windows(8).position(|window| window == size).unwrap();
        for lie in [0_u64, 8, 1 << 40, u64::MAX - 1] {
            let mut body = body.to_vec();
            body[at..at + 8].copy_from_slice(&lie.to_le_bytes());
            assert!(decoded(&Bytes::from(body), &[]).is_err(), "{codec:?} {lie}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let body = Bytes::from(body);
        let _ = of_file(&body).and_then(|body| decoded(&body, &["host"]));
    }

    #[test]
    fn damaged_streams_are_decoded_or_refused(
        form in 0_usize..4,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let body = match form {
            0 => stream(&[sample()]),
            1 => stream_with(&[sample()], Some(CompressionType::LZ4_FRAME)),
            2 => stream_with(&[sample()], Some(CompressionType::ZSTD)),
            _ => file(&[sample()]),
        };
        let mut body = body.to_vec();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let _ = of_file(&Bytes::from(body)).and_then(|body| decoded(&body, &["host"]));
    }

    #[test]
    fn dictionaries_and_text_are_the_same_series(
        rows in prop::collection::vec((prop::option::of(0_usize..3), prop::option::of(0_usize..4)), 1..40),
    ) {
        let text = |value: Option<usize>| value.map(|value| ["", "a", "b", "c"][value]);
        let (a, b): (Vec<_>, Vec<_>) = rows.iter().map(|(a, b)| (text(*a), text(*b))).unzip();
        let time: Vec<i64> = (0..).take(rows.len()).collect();
        let plain = [column(StringArray::from(a.clone())), column(StringArray::from(b.clone()))];
        let has_primary_key = [a, b].map(|values| column(values.into_iter().collect::<DictionaryArray<Int8Type>>()));
        let [plain, has_primary_key] = [plain, has_primary_key].map(|[a, b]| {
            decoded(&stream(&[batch([("time", times(&time)), ("a", a), ("b", b)])]), &["a", "b"]).unwrap()
        });
        prop_assert_eq!(plain, has_primary_key);
    }
}
