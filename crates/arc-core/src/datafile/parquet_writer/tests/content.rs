//! What goes in comes out, whatever the type, the batches and the threads.

use arrow::{
    array::{
        Array, AsArray, BooleanArray, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int32Array,
        LargeStringArray, ListArray, StringViewArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt64Array,
        new_null_array,
    },
    datatypes::{Int32Type, TimeUnit},
};
use parquet::{
    arrow::arrow_reader::{ArrowReaderOptions, RowSelection, RowSelector},
    file::{metadata::PageIndexPolicy, reader::FileReader, serialized_reader::SerializedFileReader},
};

use super::*;
use crate::datafile::ParquetWriter;

/// Returns rows of all kinds of columns; each has its own share of nulls, and `late` has none but
/// nulls up to `late_from`.
fn mixed(rows: usize, late_from: usize) -> RecordBatch {
    let mut random = Random(7);
    let mut some = |limit: u64| -> Vec<Option<u64>> {
        let nulls = random.below(4);
        (0..rows).map(|_| random.below(limit)).map(|v| (nulls == 0 || v % (nulls + 1) > 0).then_some(v)).collect()
    };
    let text = |v: Option<u64>| v.map(|v| format!("text {v}{}", "x".repeat(usize::try_from(v % 30).unwrap())));
    let signed = |v: Option<u64>| v.map(u64::cast_signed);
    let (a, b, c, d, e, f) = (some(1 << 31), some(9), some(1 << 31), some(300), some(1 << 20), some(77));
    let late = (0..rows).map(|row| (row >= late_from).then(|| format!("late {row}")));
    let list = f.iter().map(|v| v.map(|v| (0..v % 4).map(|n| Some(i32::try_from(n).unwrap())).collect::<Vec<_>>()));
    let tags: DictionaryArray<Int32Type> =
        b.iter().map(|v| v.map(|v| ["east", "west", "süd"][(v % 3) as usize])).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows as i64))),
        ("random", Arc::new(Int64Array::from_iter(a.iter().copied().map(signed)))),
        ("few", Arc::new(Int64Array::from_iter(b.iter().copied().map(signed)))),
        ("unsigned", Arc::new(UInt64Array::from(c.clone()))),
        ("float", Arc::new(Float64Array::from_iter(d.iter().map(|v| v.map(|v| v as f64 / 8.0))))),
        ("flag", Arc::new(BooleanArray::from_iter(b.iter().map(|v| v.map(|v| v % 2 == 0))))),
        ("unique", Arc::new(StringArray::from_iter(c.into_iter().map(text)))),
        ("text", Arc::new(StringArray::from_iter(d.iter().copied().map(text)))),
        ("large", Arc::new(LargeStringArray::from_iter(e.iter().copied().map(text)))),
        ("view", Arc::new(StringViewArray::from_iter(e.iter().copied().map(text)))),
        ("tag", Arc::new(tags)),
        ("null", new_null_array(&DataType::Utf8, rows)),
        ("null_list", new_null_array(&DataType::new_list(DataType::Int32, true), rows)),
        ("late", Arc::new(StringArray::from_iter(late.clone()))),
        ("late_view", Arc::new(StringViewArray::from_iter(late))),
        ("ns", Arc::new(TimestampNanosecondArray::from_iter(a.iter().copied().map(signed)))),
        ("ms", Arc::new(TimestampMillisecondArray::from_iter(a.iter().copied().map(signed)).with_timezone("UTC"))),
        ("int", Arc::new(Int32Array::from_iter(e.iter().map(|v| v.map(|v| i32::try_from(v).unwrap()))))),
        ("short_float", Arc::new(Float32Array::from_iter(f.iter().map(|v| v.map(|v| v as f32))))),
        ("decimal", Arc::new(Decimal128Array::from_iter(f.iter().map(|v| v.map(i128::from))))),
        ("list", Arc::new(ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>(list))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

#[test]
fn columns_of_all_types_come_back_whatever_the_batches_row_groups_and_threads() {
    let folder = tempfile::tempdir().unwrap();
    let rows = mixed(3_000, 1_500);
    let wide = ParquetOptions::default;
    for (case, (batch_rows, layout, threads)) in [
        (3_000, wide(), 1),
        (3_000, small_layout(), 1),
        (1, ParquetOptions { gather_bytes: 1 << 20, ..small_layout() }, 1),
        (17, small_layout(), 3),
        (700, small_layout(), 2),
        (999, ParquetOptions { row_group_bytes: 1, ..small_layout() }, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let writer = ParquetWriter::builder(folder.path(), rows.schema()).name(format!("{case}")).layout(layout);
        let mut writer = writer.threads(threads).open().unwrap();
        for start in (0..rows.num_rows()).step_by(batch_rows) {
            writer.push(&rows.slice(start, batch_rows.min(rows.num_rows() - start))).unwrap();
        }
        let [file] = writer.close().unwrap() else { panic!("one file") };
        assert_eq!((file.rows, file.bytes), (3_000, std::fs::metadata(&file.path).unwrap().len()));
        let back = read(&file.path);
        let names: Vec<&String> = rows.schema_ref().fields().iter().map(|f| f.name()).collect();
        let kept: Vec<&String> = back.schema_ref().fields().iter().map(|f| f.name()).collect();
        assert_eq!(kept, names.into_iter().filter(|name| !name.starts_with("null")).collect::<Vec<_>>());
        for name in kept {
            assert_eq!(back.column_by_name(name), rows.column_by_name(name), "case {case}, column {name}");
        }
        let of_statistics: Vec<&String> = file.statistics.columns.iter().map(|column| &column.name).collect();
        assert_eq!(of_statistics, back.schema_ref().fields().iter().map(|f| f.name()).collect::<Vec<_>>());
    }
}

#[test]
fn texts_that_all_differ_are_compressed_from_the_first_page_on() {
    const ROWS: usize = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(9);
    // 32 digits of half a byte each.
    let mut id = || (0..4).map(|_| format!("{:08x}", random.below(1 << 32))).collect::<String>();
    let ids: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| id())));
    let rows = RecordBatch::try_from_iter_with_nullable([("id", ids, true)]).unwrap();
    let mut writer = ParquetWriter::builder(folder.path(), rows.schema()).open().unwrap();
    writer.push(&rows).unwrap();
    let file = &writer.close().unwrap()[0];
    assert!(file.bytes < 18 * ROWS as u64, "{} bytes a row", file.bytes as f64 / ROWS as f64);
    assert_eq!(read(&file.path).column(0), rows.column(0));
}

#[test]
fn page_indexes_lead_to_the_rows_that_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let rows = mixed(3_000, 1_500);
    let mut writer = ParquetWriter::builder(folder.path(), rows.schema()).layout(small_layout()).open().unwrap();
    writer.push(&rows).unwrap();
    let path = writer.close().unwrap()[0].path.clone();
    for start in [0, 63, 699, 1_400, 2_990] {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let reader =
            ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(&path).unwrap(), options).unwrap();
        let selection = RowSelection::from(vec![RowSelector::skip(start), RowSelector::select(5)]);
        let found = reader.with_row_selection(selection).build().unwrap().next().unwrap().unwrap();
        for (field, column) in found.schema_ref().fields().iter().zip(found.columns()) {
            assert_eq!(column, &rows.column_by_name(field.name()).unwrap().slice(start, 5), "{field}, {start}");
        }
    }
    // Chunks of a row group lie one after the other, within the file.
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let ranges = reader.metadata().row_groups().iter().flat_map(|row_group| row_group.columns());
    let mut end = 4;
    for (start, length) in ranges.map(|column| column.byte_range()) {
        assert!(start >= end);
        end = start + length;
    }
    assert!(end < std::fs::metadata(&path).unwrap().len());
}

#[test]
fn a_column_that_was_null_throughout_is_left_out_of_each_file_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let rows = mixed(3_000, 2_000);
    let writer = ParquetWriter::builder(folder.path(), rows.schema()).layout(small_layout()).max_rows(1_500);
    let mut writer = writer.open().unwrap();
    writer.push(&rows).unwrap();
    let has_late = |path: &PathBuf| read(path).column_by_name("late").is_some();
    let files = paths(writer.close().unwrap());
    assert_eq!(files.iter().map(has_late).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn the_first_column_stays_where_all_are_null() {
    let folder = tempfile::tempdir().unwrap();
    let all = schema(&[("a", DataType::Utf8), ("b", DataType::Int64)]);
    for (name, rows) in [("few", 3), ("many", 2_000)] {
        let writer = ParquetWriter::builder(folder.path(), Arc::clone(&all)).name(name).layout(small_layout());
        let mut writer = writer.open().unwrap();
        let nulls = all.fields().iter().map(|field| new_null_array(field.data_type(), rows)).collect();
        writer.push(&RecordBatch::try_new(Arc::clone(&all), nulls).unwrap()).unwrap();
        let back = read(&writer.close().unwrap()[0].path);
        assert_eq!((back.num_rows(), back.num_columns(), back.column(0).null_count()), (rows, 1, rows));
    }
}

#[test]
fn numbers_of_columns_with_a_prefix_become_texts() {
    let folder = tempfile::tempdir().unwrap();
    let mixed = mixed(500, 0);
    let columns = ["float", "few", "unsigned", "flag", "int", "short_float", "text", "ms", "tag"];
    let named = |prefix: &str| {
        let column = |name: &&str| (format!("{prefix}{name}"), Arc::clone(mixed.column_by_name(name).unwrap()), true);
        RecordBatch::try_from_iter_with_nullable(columns.iter().map(column)).unwrap()
    };
    let rows = named("attr_");
    let writer = ParquetWriter::builder(folder.path(), rows.schema()).text_prefixes(["resource_", "attr_"]);
    let mut writer = writer.open().unwrap();
    writer.push(&rows).unwrap();
    let back = read(&writer.close().unwrap()[0].path);
    for (field, column) in back.schema_ref().fields().iter().zip(back.columns()) {
        let name = field.name().trim_start_matches("attr_");
        let original = mixed.column_by_name(name).unwrap();
        if matches!(name, "ms" | "tag") {
            assert_eq!(column, original);
            continue;
        }
        let texts = column.as_string::<i32>();
        let shown = arrow::util::display::ArrayFormatter::try_new(original, &Default::default()).unwrap();
        for row in 0..rows.num_rows() {
            let expected = original.is_valid(row).then(|| shown.value(row).to_string());
            assert_eq!(texts.is_valid(row).then(|| texts.value(row).to_owned()), expected, "{name}, {row}");
        }
    }
    // The texts themselves are taken as well.
    let texts = RecordBatch::try_new(back.schema(), back.columns().to_vec()).unwrap();
    let mut again = ParquetWriter::builder(folder.path(), named("attr_").schema())
        .name("again")
        .text_prefixes(["attr_"])
        .open()
        .unwrap();
    again.push(&texts).unwrap();
    assert_eq!(read(&again.close().unwrap()[0].path), back);
}

#[test]
fn batches_are_matched_by_name_and_what_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let strict =
        Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Utf8, true)]));
    let mut writer = ParquetWriter::builder(folder.path(), strict).open().unwrap();
    let a = |values: Vec<Option<i64>>| ("a", Arc::new(Int64Array::from(values)) as ArrayRef);
    let b = |values: Vec<&str>| ("b", Arc::new(StringArray::from(values)) as ArrayRef);
    let floats: (&str, ArrayRef) = ("a", Arc::new(Float64Array::from(vec![1.0])));
    let unknown: (&str, ArrayRef) = ("c", Arc::new(Float64Array::from(vec![1.0])));
    let batch = |columns: Vec<(&str, ArrayRef)>| {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    };
    writer.push(&batch(vec![b(vec!["x"]), a(vec![Some(1)])])).unwrap();
    for (columns, expected) in [
        (vec![a(vec![Some(2), Some(3), None])], "row 4, column \"a\": it may not be null"),
        (vec![b(vec!["y"])], "row 2, column \"a\": it is absent, and may not be null"),
        (vec![floats], "row 2, column \"a\": expected Int64, got Float64"),
        (vec![a(vec![Some(1)]), unknown], "row 2, column \"c\": there is no such column"),
        (vec![a(vec![Some(1)]), a(vec![Some(1)])], "row 2, column \"a\": it is there twice"),
    ] {
        let error = writer.push(&batch(columns)).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.kind()), (expected, crate::ErrorKind::InvalidInput));
    }
    writer.push(&batch(vec![a(vec![Some(9)])])).unwrap();
    let back = read(&writer.close().unwrap()[0].path);
    assert_eq!(back.column(0).as_ref(), &Int64Array::from(vec![1, 9]));
    assert_eq!(back.column(1).as_ref(), &StringArray::from(vec![Some("x"), None]));
}

#[test]
fn a_schema_that_cannot_be_written_is_refused_with_the_column() {
    let union = DataType::Union(arrow::datatypes::UnionFields::empty(), arrow::datatypes::UnionMode::Sparse);
    let seconds = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);
    for (columns, expected) in [
        (vec![("a", DataType::Int64), ("u", union)], "\"u\""),
        (vec![("i", seconds)], "\"i\""),
        (vec![("n", DataType::Null)], "\"n\""),
        (vec![("a", DataType::Int64), ("a", DataType::Utf8)], "\"a\": it is declared twice"),
        (vec![], "no columns"),
    ] {
        let error = ParquetWriter::builder("unused", schema(&columns)).open().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let times = schema(&[("t", DataType::Timestamp(TimeUnit::Millisecond, None)), ("f", DataType::Float32)]);
    let builder = || ParquetWriter::builder("unused", Arc::clone(&times));
    assert!(builder().time_column("t").distinct(["t"]).group_by(["f", "t"]).open().is_ok());
    for (builder, expected) in [
        (builder().time_column("x"), "time_column"),
        (builder().time_column("f"), "time_column"),
        (builder().distinct(["f"]), "distinct"),
        (builder().group_by(["x"]), "group_by"),
        (builder().threads(0), "threads"),
        (builder().max_rows(0), "max_rows"),
        (builder().max_bytes(0), "max_bytes"),
        (builder().name("a/b"), "name"),
        (builder().layout(ParquetOptions { page_rows: 0, ..ParquetOptions::default() }), "page_rows"),
    ] {
        let error = builder.open().unwrap_err();
        assert!(matches!(error, crate::Error::InvalidOption { option, .. } if option == expected), "{error}");
    }
}
