//! Columns of sorted rows against rows that were sorted one by one.

use std::path::Path;

use arrow::{
    array::{AsArray, RecordBatch},
    compute::{cast, concat_batches},
    datatypes::{Int64Type, TimestampNanosecondType},
};
use proptest::prelude::*;

use super::*;
use crate::{
    SequenceNumber,
    buffer::{ChunkReader, FrozenBuffer, Rows, Scalar, SeriesIndex, split},
    datafile::{DataFileSpec, DataFileWriter, ParquetOptions},
    model::{TableSchema, tag_type},
    sync::RwLock,
    vfs::CrashFs,
};

/// Tag, time, and the fields text, number and flag.
type Row = (Option<u8>, i64, Option<String>, Option<i64>, Option<bool>);

fn table(has_primary_key: bool) -> TableSchema {
    let column = |name: &str, kind, data_type| Column { name: name.into(), kind, data_type };
    let columns = vec![
        column("text", ColumnKind::Field, DataType::Utf8),
        column("number", ColumnKind::Field, DataType::Int64),
        column("flag", ColumnKind::Field, DataType::Boolean),
        column("host", ColumnKind::Tag, tag_type()),
    ];
    let columns = columns.into_iter().filter(|c| has_primary_key || c.kind == ColumnKind::Field).collect();
    TableSchema { database: "d".into(), table: "t".into(), has_primary_key, columns }
}

/// Of every so many chunks one has its texts as codes: of one all, of 0 none.
type Placed = usize;

fn chunk(index: &mut SeriesIndex, has_primary_key: bool, encoded: bool, rows: &[Row]) -> Arc<Chunk> {
    let mut chunk = Rows::default();
    for (host, time, text, number, flag) in rows {
        if let Some(text) = text {
            chunk.set(0, &DataType::Utf8, Scalar::Text(text)).unwrap();
        }
        if let Some(number) = number {
            chunk.set(1, &DataType::Int64, Scalar::Integer(*number)).unwrap();
        }
        if let Some(flag) = flag {
            chunk.set(2, &DataType::Boolean, Scalar::Boolean(*flag)).unwrap();
        }
        let host = host.map(|host| host.to_string());
        let tags = host.iter().map(|host| ("host", host.as_str()));
        chunk.end_row(*time, has_primary_key.then(|| index.resolve(tags).unwrap()));
    }
    if let Some(texts) = chunk.values(0).map(|values| values.to_array().unwrap()) {
        let data_type = if encoded { &dictionary_of(&texts) } else { &DataType::Utf8 };
        let array = cast(&texts, data_type).unwrap();
        let (time, series) = (chunk.time.clone().into(), chunk.series.clone().into());
        let others = (1..3).map(|column| chunk.values(column).map(|values| values.to_array().unwrap()));
        let columns = std::iter::once(Some(array)).chain(others).collect();
        return Arc::new(Chunk::new(time, series, columns).unwrap());
    }
    Arc::new(chunk.into_chunk().unwrap())
}

fn dictionary_of(texts: &ArrayRef) -> DataType {
    let codes = if texts.len() < 100 { DataType::UInt8 } else { DataType::UInt16 };
    DataType::Dictionary(Box::new(codes), Box::new(DataType::Utf8))
}

/// Returns the checksum of the file that a part becomes.
fn written(part: &FlushPart<'_>) -> (u64, u32) {
    let spec = DataFileSpec {
        time_unit: crate::FileTimeUnit::default(),
        path: "data/d/t/day=2026-11-21/file.parquet".into(),
        schema: Arc::clone(&part.schema),
        sorted_by: part.sorted_by.clone(),
        min_seq: SequenceNumber(1),
        max_seq: SequenceNumber(1),
        late: part.late,
        hourly: false,
        tags: &["host"],
    };
    let options = ParquetOptions::default();
    let file = DataFileWriter::default().write(&CrashFs::new(), Path::new("/"), &spec, part, &options).unwrap();
    (file.bytes, file.crc32c)
}

fn shown(batch: &RecordBatch) -> Vec<Row> {
    let texts = |name: &str| batch.column_by_name(name).map(|column| cast(column, &DataType::Utf8).unwrap());
    let (host, text) = (texts("host"), texts("text"));
    let text_of = |column: &Option<ArrayRef>, row: usize| {
        let column = column.as_ref()?.as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let time = batch.column(0).as_primitive::<TimestampNanosecondType>();
    let row = |row| {
        let number = batch.column_by_name("number").map(|column| column.as_primitive::<Int64Type>());
        let flag = batch.column_by_name("flag").map(|column| column.as_boolean());
        (
            text_of(&host, row).map(|host| host.parse().unwrap()),
            time.value(row),
            text_of(&text, row),
            number.filter(|column| column.is_valid(row)).map(|column| column.value(row)),
            flag.filter(|column| column.is_valid(row)).map(|column| column.value(row)),
        )
    };
    (0..batch.num_rows()).map(row).collect()
}

fn check(has_primary_key: bool, chunks: &[Vec<Row>], range_rows: usize) {
    let [plain, encoded, mixed] = [0, 1, 2].map(|encoded| check_form(has_primary_key, chunks, range_rows, encoded));
    assert_eq!(plain, encoded, "the form of texts makes no difference");
    assert_eq!(plain, mixed);
}

/// Returns what tells files apart.
fn check_form(has_primary_key: bool, chunks: &[Vec<Row>], range_rows: usize, encoded: Placed) -> Vec<(u64, u32)> {
    let (table, mut index) = (table(has_primary_key), SeriesIndex::default());
    let is_dictionary = |number: usize| encoded > 0 && number.is_multiple_of(encoded);
    let made = (0..).zip(chunks).map(|(number, rows)| chunk(&mut index, has_primary_key, is_dictionary(number), rows));
    let frozen = FrozenBuffer {
        main: made.collect(),
        late: Vec::new(),
        min_seq: SequenceNumber(1),
        max_seq: SequenceNumber(1),
        newest_before: i64::MIN,
        rows: 0,
        bytes: 0,
    };
    let index = Arc::new(RwLock::new(index));
    let parts = split(&frozen, &table, &index).unwrap();
    let mut expected: Vec<Row> = chunks.concat();
    // Hosts are sorted as texts.
    expected.sort_by_key(|row| (row.0.filter(|_| has_primary_key).map(|host| host.to_string()), row.1));
    expected.iter_mut().filter(|_| !has_primary_key).for_each(|row| row.0 = None);
    let mut found = Vec::new();
    for part in &parts {
        let starts = (0..part.len()).step_by(range_rows);
        let batches = starts.map(|start| part.batch_of(start..part.len().min(start + range_rows)).unwrap());
        let batches: Vec<RecordBatch> = batches.collect();
        found.extend(shown(&concat_batches(&part.schema, &batches).unwrap()));
        for index in 0..part.schema.fields().len() {
            assert_eq!(part.sample(index, 3).unwrap().len(), part.len().div_ceil(3));
        }
    }
    assert_eq!(found, expected);
    let reader = ChunkReader::new(Arc::new(table.clone()), Arc::clone(&index));
    for (chunk, rows) in frozen.main.iter().zip(chunks) {
        let mut rows = rows.clone();
        rows.iter_mut().filter(|_| !has_primary_key).for_each(|row| row.0 = None);
        assert_eq!(shown(&reader.rows(chunk).all().unwrap()), rows, "what queries see");
    }
    parts.iter().map(written).collect()
}

fn any_row() -> impl Strategy<Value = (Option<u8>, i64, Option<String>, Option<i64>, Option<bool>)> {
    let text = prop::option::of(prop::sample::select(vec!["", "a", "long enough to be long"]));
    (prop::option::of(0..4_u8), 0..50_i64, text, any::<Option<i64>>(), any::<Option<bool>>())
        .prop_map(|(host, time, text, number, flag)| (host, time, text.map(str::to_owned), number, flag))
}

proptest! {
    #[test]
    fn columns_are_those_of_the_sorted_rows(
        chunks in prop::collection::vec(prop::collection::vec(any_row(), 1..40), 1..5),
        (has_primary_key, range_rows, in_order) in (any::<bool>(), 1..50_usize, any::<bool>()),
    ) {
        let mut chunks = chunks;
        // Rows on time are newer than those of their series before them.
        if has_primary_key || in_order {
            (0..).zip(chunks.iter_mut().flatten()).for_each(|(time, row)| row.1 = time);
        }
        check(has_primary_key, &chunks, range_rows);
    }
}

#[test]
fn pages_of_many_rows_are_gathered_or_taken_as_they_are() {
    let row = |i: i64, time| (Some((i % 3) as u8), time, Some((i % 5).to_string()), (i % 7 > 0).then_some(i), None);
    let in_order: Vec<Row> = (0..12_000).map(|i| row(i, i)).collect();
    let behind: Vec<Row> = (12_000..25_000).map(|i| row(i, i)).collect();
    let between: Vec<Row> = (0..13_000).map(|i| row(i, i)).collect();
    // Texts that hardly repeat are no keys.
    let mut distinct = between.clone();
    (0..).zip(&mut distinct).for_each(|(i, row)| row.2 = Some(format!("text {i}")));
    let long: Vec<Row> = distinct.iter().cloned().chain(distinct.iter().cloned()).collect();
    check(false, &[in_order.clone(), behind.clone()], 25_000);
    check(false, &[in_order.clone(), between], 25_000);
    check(false, &[in_order.clone(), long], 20_001);
    check(true, &[in_order, behind], 20_001);
}
