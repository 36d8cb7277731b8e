use std::sync::Arc;

use arrow::{
    array::{
        Array, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float32Array,
        Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StringViewArray,
        TimestampMicrosecondArray, TimestampNanosecondArray,
    },
    compute::concat_batches,
    datatypes::{Int32Type, Int64Type},
    ipc::{
        CompressionType, MetadataVersion,
        writer::{IpcWriteOptions, StreamWriter},
    },
};
use proptest::prelude::*;

use super::{super::*, *};
use crate::{
    SequenceNumber,
    buffer::{ChunkReader, TableBuffer},
    ingest::{Context, staged::StagedTable},
    registry::Database,
};

const WHOLE: usize = WHOLE_ROWS;

fn array<A: Array + 'static>(array: A) -> ArrayRef {
    Arc::new(array)
}

/// One column of each kind that a batch may have, with its own choice of nulls.
fn kinds(rows: usize, seed: i64) -> Vec<(&'static str, ArrayRef)> {
    let number = move |row: usize| (row as i64).wrapping_mul(seed | 1) >> 3;
    let some = move |row: usize| (number(row) & 7 != 0).then(|| number(row));
    let numbers = || (0..rows).map(number);
    let texts: Vec<Option<String>> = (0..rows).map(|row| some(row).map(|n| format!("text {}", n % 1_000))).collect();
    let words = || texts.iter().map(Option::as_deref);
    let has_primary_key: DictionaryArray<Int32Type> = (0..rows).map(|row| (row % 7 > 0).then_some("a word")).collect();
    let decimals = Decimal128Array::from_iter_values(numbers().map(i128::from));
    let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_deref().unwrap_or_default().as_bytes()).collect();
    let fixed = FixedSizeBinaryArray::try_from_iter(numbers().map(i64::to_le_bytes)).unwrap();
    let lists = (0..rows).map(|row| some(row).map(|n| vec![Some(n), None]));
    vec![
        ("integer", array(Int64Array::from_iter_values(numbers()))),
        ("holes", array((0..rows).map(some).collect::<Int64Array>())),
        ("float", array((0..rows).map(|row| some(row).map(|n| n as f64 / 8.0)).collect::<Float64Array>())),
        ("single", array(Float32Array::from_iter_values(numbers().map(|n| n as f32)))),
        ("truth", array((0..rows).map(|row| some(row).map(|n| n & 1 == 0)).collect::<BooleanArray>())),
        ("text", array(words().collect::<StringArray>())),
        ("view", array(words().collect::<StringViewArray>())),
        ("word", array(has_primary_key)),
        ("moment", array(TimestampMicrosecondArray::from_iter_values(numbers()))),
        ("decimal", array(decimals)),
        ("bytes", array(BinaryArray::from_vec(bytes))),
        ("fixed", array(fixed)),
        ("list", array(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
    ]
}

fn times(rows: usize, from: i64) -> ArrayRef {
    array(TimestampNanosecondArray::from_iter_values((0..rows as i64).map(|row| from + row)))
}

fn batch(rows: usize, from: i64, columns: Vec<(&'static str, ArrayRef)>) -> RecordBatch {
    let hosts = Int32Array::from_iter_values((0..5).cycle().take(rows));
    let hosts = DictionaryArray::new(hosts, array(StringArray::from(vec!["a", "b", "c", "d", "e"])));
    let before = [("time", times(rows, from)), ("host", array(hosts))];
    RecordBatch::try_from_iter_with_nullable(before.into_iter().chain(columns).map(|(n, c)| (n, c, true))).unwrap()
}

/// The stream of some batches, `shift` bytes from where it should lie.
fn stream(batches: &[RecordBatch], compression: Option<CompressionType>, shift: usize) -> Bytes {
    let options = IpcWriteOptions::try_new(64, false, MetadataVersion::V5).unwrap();
    let options = options.try_with_compression(compression).unwrap();
    let begun = vec![0; shift];
    let mut writer = StreamWriter::try_new_with_options(begun, &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    Bytes::from(writer.into_inner().unwrap()).slice(shift..)
}

fn decoded(body: &Bytes, tags: &[&str], may_keep: bool) -> StagedTable {
    let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let database = Arc::new(Database::new("db", 0, false));
    let context = Context { tags: &tags, ..Context::plain(&database) };
    decode(body, "t", None, Terms { most_bytes: 1 << 30, may_keep }, &context).unwrap().tables.remove(0)
}

/// Puts rows into a buffer, after one of the same times, and returns all of it: rows on time, then
/// late ones.
fn buffered(staged: StagedTable) -> RecordBatch {
    let schema = staged.grown_schema();
    let mut buffer = TableBuffer::new(None);
    let mut bytes = buffer.append_zero_copy(SequenceNumber(1), staged.kept).unwrap();
    if !staged.rows.is_empty() {
        bytes += buffer.append(SequenceNumber(1), staged.rows).unwrap();
    }
    assert_eq!(buffer.bytes(), bytes);
    let parts = buffer.snapshot().unwrap();
    let reader = ChunkReader::new(schema, Arc::clone(&staged.table.series));
    let chunks = parts.iter().flat_map(|part| &part.chunks);
    // Arrow counts as equal what has the same values, wherever they lie.
    let batches: Vec<RecordBatch> = chunks.map(|chunk| reader.rows(chunk).all().unwrap()).collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

fn keeps(body: &Bytes) -> ZeroCopyRows {
    decoded(body, &[], true).kept
}

#[test]
fn large_batches_of_a_large_body_stay_in_it() {
    let ten =
        |rows: usize| (0..10).map(move |n| (["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"][n], times(rows, 7)));
    let whole = |rows: usize| RecordBatch::try_from_iter([("time", times(rows, 0))].into_iter().chain(ten(rows)));
    let (large, small) = (whole(WHOLE).unwrap(), whole(WHOLE - 1).unwrap());
    for (batches, chunks) in [
        (vec![large.clone()], 1),
        (vec![large.clone(), large.clone(), small.slice(0, 100)], 2),
        // Rows stay in their order.
        (vec![small.clone(), large.clone()], 0),
        (vec![small], 0),
    ] {
        let body = stream(&batches, None, 0);
        let kept = keeps(&body);
        assert_eq!((kept.chunks.len(), kept.hold_body), (chunks, chunks > 0));
        assert_eq!(kept.bytes, if chunks > 0 { body.len() } else { 0 });
    }
    let body = stream(&[whole(WHOLE).unwrap()], None, 0);
    assert!(decoded(&body, &[], false).kept.chunks.is_empty(), "replay");
    let few = RecordBatch::try_from_iter([("time", times(WHOLE, 0)), ("v", times(WHOLE, 0))]).unwrap();
    assert!(keeps(&stream(&[few], None, 0)).chunks.is_empty(), "less than 1 MiB");
}

#[test]
fn a_body_of_which_little_is_used_is_let_go() {
    let views =
        |n: i64| array(StringViewArray::from_iter_values((0..WHOLE).map(|row| format!("{n} of row {row:040}"))));
    let columns = |n: i64| vec![("time", times(WHOLE, 0)), ("v", times(WHOLE, n)), ("text", views(n))];
    let batches = [0, 1].map(|n| RecordBatch::try_from_iter(columns(n)).unwrap());
    let body = stream(&batches, None, 0);
    let kept = keeps(&body);
    assert_eq!((kept.chunks.len(), kept.hold_body), (2, false));
    let values = 2 * WHOLE * (8 + 8 + 4 + 49);
    assert!((values..values + values / 4).contains(&kept.bytes), "{} of {values}", kept.bytes);
    let start = body.as_ptr();
    let arrays = kept.chunks.iter().flat_map(Chunk::arrays).flat_map(|array| array.to_data().buffers().to_vec());
    let times = kept.chunks.iter().map(|chunk| chunk.time.inner().clone());
    assert!(arrays.chain(times).all(|buffer| buffer.data_ptr().as_ptr().cast_const() != start));
    assert_eq!(buffered(decoded(&body, &[], true)), buffered(decoded(&body, &[], false)));
}

#[test]
fn what_does_not_lie_in_the_body_counts_for_itself() {
    let columns = || kinds(2 * WHOLE, 3).into_iter().take(2).collect();
    let plain = stream(&[batch(2 * WHOLE, 0, columns())], None, 0);
    let compressed = stream(&[batch(2 * WHOLE, 0, columns())], Some(CompressionType::ZSTD), 0);
    let unaligned = stream(&[batch(2 * WHOLE, 0, columns())], None, 1);
    // Times, series and two numbers, one of them with nulls.
    let values = 2 * WHOLE * (8 + 4 + 8 + 8) + 2 * WHOLE / 8;
    for (body, holds) in [(&plain, true), (&compressed, false), (&unaligned, false)] {
        if body.len() < MIN_BODY_BYTES {
            assert!(decoded(body, &["host"], true).kept.chunks.is_empty());
            continue;
        }
        let kept = decoded(body, &["host"], true).kept;
        assert_eq!((kept.chunks.len(), kept.hold_body), (1, holds));
        assert!((values..values + values / 2).contains(&kept.bytes), "{} of {values}", kept.bytes);
    }
}

#[test]
fn a_chunk_knows_whether_its_columns_have_the_types_of_the_table() {
    let time = || ("time", times(2 * WHOLE, 0));
    let pad = || ["a", "b", "c", "d"].map(|name| (name, times(2 * WHOLE, 0)));
    let of = |v: ArrayRef| RecordBatch::try_from_iter([time(), ("v", v)].into_iter().chain(pad())).unwrap();
    let large = i64::MAX - 1;
    let integers = of(array(Int64Array::from_iter_values((0..2 * WHOLE).map(|_| large))));
    let body = stream(&[integers], None, 0);
    assert_eq!(decoded(&body, &[], true).kept.chunks.len(), 1);
    let kept = decoded(&body, &[], true);
    let schema = kept.grown_schema();
    assert!(kept.kept.chunks.iter().all(|chunk| chunk.has_types_of(&schema)));
    let mut wider = crate::model::TableSchema::clone(&schema);
    wider.columns.iter_mut().filter(|column| column.name.as_ref() == "v").for_each(|c| c.data_type = DataType::Float64);
    assert!(!kept.kept.chunks[0].has_types_of(&wider));
}

#[test]
fn dictionaries_of_texts_keep_their_places() {
    let rows = 2 * WHOLE;
    let has_primary_key = |text: &dyn Fn(usize) -> String| {
        let texts: Vec<String> = (0..rows).map(text).collect();
        array(texts.iter().map(|text| Some(text.as_str())).collect::<DictionaryArray<Int32Type>>())
    };
    let distinct = has_primary_key(&|row| format!("text {row}"));
    let long = has_primary_key(&|row| ["a", "b"][row % 2].repeat(200));
    let columns = kinds(rows, 5).into_iter().chain([("distinct", distinct), ("long", long)]);
    let kept = decoded(&stream(&[batch(rows, 0, columns.collect())], None, 0), &["host"], true);
    let types = ["word", "distinct", "long", "text"].map(|name| {
        let column = kept.kept.chunks[0].column(kept.position(name).unwrap()).unwrap();
        column.data_type().to_string()
    });
    assert_eq!(types, ["Dictionary(UInt8, Utf8)", "Utf8", "Utf8", "Utf8"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever the columns are, wherever they lie, and whichever rows are late.
    #[test]
    fn rows_that_stay_are_the_rows_that_are_copied(
        seed in any::<i64>(),
        sizes in prop::collection::vec((0_usize..40, WHOLE - 2..WHOLE + 40, 0_i64..3), 1..4),
        chosen in prop::collection::vec(any::<bool>(), 13),
        shift in prop::sample::select(vec![0_usize, 0, 1, 4, 8]),
        compressed in prop::sample::select(vec![None, None, None, Some(CompressionType::LZ4_FRAME)]),
        tags in any::<bool>(),
    ) {
        let batches: Vec<RecordBatch> = sizes.iter().map(|&(from, rows, later)| {
            let columns = kinds(from + rows, seed).into_iter().zip(&chosen).filter(|(_, chosen)| **chosen);
            // A part of a larger batch, and often the times of the batch before.
            batch(from + rows, later * 10_000, columns.map(|(column, _)| column).collect()).slice(from, rows)
        }).collect();
        let body = stream(&batches, compressed, shift);
        let tags: &[&str] = if tags { &["host"] } else { &[] };
        let (kept, copied) = (decoded(&body, tags, true), decoded(&body, tags, false));
        prop_assert!(copied.kept.chunks.is_empty());
        prop_assert_eq!(kept.len(), copied.len());
        if body.len() >= MIN_BODY_BYTES && sizes[0].1 >= WHOLE {
            prop_assert!(!kept.kept.chunks.is_empty());
        }
        let values: usize = kept.kept.chunks.iter().map(|chunk| chunk.len() * 8).sum();
        prop_assert!(kept.kept.bytes >= values);
        prop_assert_eq!(buffered(kept), buffered(copied));
    }
}
