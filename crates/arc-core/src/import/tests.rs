use std::{
    io::{Seek, Write},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use arrow::{
    array::{
        ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray,
        TimestampNanosecondArray, new_null_array,
    },
    compute::cast,
    datatypes::DataType,
    ipc::writer::{FileWriter, StreamWriter},
    util::display::{ArrayFormatter, FormatOptions},
};
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use rawzip::CompressionMethod;

use self::archives::zip;
use super::*;
use crate::{Engine, ErrorKind, model::Column};

mod archives;
mod strangers;

fn engine() -> (tempfile::TempDir, Engine) {
    let dir = tempfile::tempdir().unwrap();
    let options = crate::Options { wal_segment_bytes: 64 << 10, ..crate::Options::default() };
    let engine = Engine::builder(dir.path().join("data")).options(options).open().unwrap();
    (dir, engine)
}

fn file(name: &str, bytes: &[u8]) -> ImportFile {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    ImportFile::new(name, file)
}

fn table(name: &str) -> ImportOptions {
    ImportOptions { database: "d".to_owned(), table: Some(name.to_owned()), ..ImportOptions::new() }
}

fn all_of(name: &str, bytes: &[u8], options: &ImportOptions, target: &dyn ImportTarget) -> Result<ImportReport> {
    import(target, file(name, bytes), options, &mut |_| {})
}

/// Returns the rows of a table as text, sorted.
fn rows(engine: &Engine, table: &str) -> Vec<String> {
    let Ok(view) = engine.view("d", table) else { return Vec::new() };
    let mut rows = Vec::new();
    for part in view.buffers {
        let batch = part.batch().unwrap();
        let mut columns = batch.columns().to_vec();
        columns[0] = cast(&columns[0], &DataType::Int64).unwrap();
        let options = FormatOptions::default();
        let shown: Vec<_> = columns.iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        for row in 0..batch.num_rows() {
            let cells = names.iter().zip(&shown).map(|(name, shown)| format!("{name}={}", shown.value(row)));
            rows.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    rows.sort();
    rows
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

fn batch(count: i64) -> RecordBatch {
    let time: ArrayRef = Arc::new(TimestampMillisecondArray::from_iter_values(0..count));
    let host: ArrayRef = Arc::new(StringArray::from_iter_values((0..count).map(|n| format!("h{}", n % 3))));
    let v: ArrayRef = Arc::new(Float64Array::from_iter((0..count).map(|n| (n % 5 > 0).then_some(n as f64 / 2.0))));
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    RecordBatch::try_from_iter([("time", time), ("host", host), ("n", n), ("v", v)]).unwrap()
}

/// The rows of [`batch`] in every format, with names that say so.
fn files(count: i64) -> Vec<(&'static str, Vec<u8>)> {
    let (batch, mut csv, mut lp) = (batch(count), "time,host,n,v\n".to_owned(), String::new());
    for n in 0..count {
        let v = (n % 5 > 0).then_some(n as f64 / 2.0);
        let (text, field) = v.map_or((String::new(), String::new()), |v| (format!("{v:?}"), format!(",v={v:?}")));
        csv.push_str(&format!("{n},h{},{n},{text}\n", n % 3));
        lp.push_str(&format!("t,host=h{} n={n}i{field} {n}\n", n % 3));
    }
    let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    parquet.write(&batch).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    let mut file = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    for start in (0..batch.num_rows()).step_by(7) {
        let part = batch.slice(start, 7.min(batch.num_rows() - start));
        stream.write(&part).unwrap();
        file.write(&part).unwrap();
    }
    vec![
        ("a.csv", csv.into_bytes()),
        ("a.lp", lp.into_bytes()),
        ("a.parquet", parquet.into_inner().unwrap()),
        ("a.arrows", stream.into_inner().unwrap()),
        ("a.arrow", file.into_inner().unwrap()),
    ]
}

/// Numbers in files are milliseconds; timestamps say it themselves.
fn in_milliseconds(tags: &[&str], chunk_bytes: usize) -> ImportOptions {
    ImportOptions {
        precision: Some(crate::Precision::Millisecond),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        chunk_bytes,
        ..table("t")
    }
}

#[test]
fn every_format_and_compression_is_the_same_rows() {
    let (_dir, reference) = engine();
    let written = reference.submit_batches("d", "t", &[batch(20)], &crate::WriteOptions::new().tags(["host"]));
    assert_eq!(written.unwrap().wait().unwrap().points, 20);
    let expected = rows(&reference, "t");
    for (name, bytes) in files(20) {
        let compressed = [
            (name.to_owned(), bytes.clone()),
            (format!("{name}.gz"), gzip(&bytes)),
            (format!("{name}.zst"), zstd(&bytes)),
            ("a.zip".to_owned(), zip(&[(name, &bytes)], CompressionMethod::DEFLATE)),
            (
                "a.zip".to_owned(),
                zip(&[("in/", b""), (name, &bytes), ("__MACOSX/a.csv", b"")], CompressionMethod::STORE),
            ),
        ];
        for (name, bytes) in compressed {
            for chunk_bytes in [1, 100, 1 << 20] {
                let (_dir, engine) = engine();
                let report = all_of(&name, &bytes, &in_milliseconds(&["host"], chunk_bytes), &engine).unwrap();
                assert_eq!((report.rows, report.refused, report.days), (20, 0, 1), "{name}");
                assert_eq!(report.times, Some((0, 19_000_000)), "{name}");
                assert_eq!(report.tables.iter().collect::<Vec<_>>(), ["t"], "{name}");
                assert_eq!(rows(&engine, "t"), expected, "{name} {chunk_bytes}");
            }
        }
    }
}

/// Fails after some pieces, before or after they are stored, as a lost connection would.
struct Failing<'a> {
    engine: &'a Engine,
    left: AtomicUsize,
}

impl ImportTarget for Failing<'_> {
    fn submit(&self, write: &ImportWrite) -> Result<ImportAnswer> {
        let failed = || Error::internal("the line is cut");
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(failed()),
            1 => {
                self.engine.submit(write)?()?;
                Ok(Box::new(move || Err(failed())))
            }
            _ => self.engine.submit(write),
        }
    }

    fn columns(&self, database: &str, table: &str) -> Result<Vec<Column>> {
        self.engine.columns(database, table)
    }
}

#[test]
fn an_interrupted_import_goes_on_without_doubling() {
    for (name, bytes) in files(30) {
        // Without tags rows append, so that a second copy would show.
        let options = in_milliseconds(&[], 50);
        let (dir, mut engine) = engine();
        let mut tries = 0;
        for left in 0.. {
            let target = Failing { engine: &engine, left: AtomicUsize::new(left) };
            tries += 1;
            match all_of(name, &bytes, &options, &target) {
                Ok(report) => {
                    assert_eq!(report.rows + report.rows_before, 30, "{name}");
                    break;
                }
                Err(error) => assert!(matches!(error, Error::ImportStopped { .. }), "{error}"),
            }
            // Keys are as durable as their points.
            engine.close().unwrap();
            engine = Engine::open(dir.path().join("data")).unwrap();
        }
        assert!(tries > 3, "{name} is one piece");
        let view = engine.view("d", "t").unwrap();
        let stored: u64 = view.files.iter().map(|file| file.rows).sum();
        let buffered: usize = view.buffers.iter().map(crate::BufferPart::row_count).sum();
        assert_eq!(stored + buffered as u64, 30, "{name}");
    }
}

#[test]
fn a_file_is_stored_once_for_each_name_of_an_import() {
    let (_dir, engine) = engine();
    let (name, bytes) = files(10).swap_remove(0);
    let options = in_milliseconds(&[], 1 << 20);
    assert_eq!(all_of(name, &bytes, &options, &engine).unwrap().rows, 10);
    let again = all_of("another name.csv", &bytes, &options, &engine).unwrap();
    assert_eq!((again.rows, again.rows_before), (0, 10));
    let other = ImportOptions { tags: Vec::new(), precision: Some(crate::Precision::Second), ..options.clone() };
    let error = all_of(name, &bytes, &other, &engine).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(
        matches!(&error, Error::ImportStopped { source, .. } if matches!(**source, Error::IdempotencyKeyReused { .. }))
    );
    let named = ImportOptions { id: Some("second".to_owned()), ..options.clone() };
    assert_eq!(all_of(name, &bytes, &named, &engine).unwrap().rows, 10);
    // Without a name every import is a new one.
    for _ in 0..2 {
        let unnamed = ImportOptions { id: None, ..options.clone() };
        assert_eq!(all_of(name, &bytes, &unnamed, &engine).unwrap().rows, 10);
    }
    let elsewhere = ImportOptions { table: Some("u".to_owned()), ..options };
    assert_eq!(all_of(name, &bytes, &elsewhere, &engine).unwrap().rows, 10);
    assert_eq!((rows(&engine, "t").len(), rows(&engine, "u").len()), (40, 10));
}

#[test]
fn a_file_that_is_read_twice_is_read_to_its_end() {
    let (_dir, engine) = engine();
    let (count, mut body) = (100_000, "time,v\n".to_owned());
    (0..count).for_each(|n| body.push_str(&format!("{n},{n}\n")));
    for (name, bytes) in [("a.csv", body.clone().into_bytes()), ("a.csv.zst", zstd(body.as_bytes()))] {
        let options = ImportOptions { table: Some(name.replace('.', "_")), ..in_milliseconds(&[], 4 << 20) };
        assert_eq!(all_of(name, &bytes, &options, &engine).unwrap().rows, count);
    }
}

/// Is busy every other time.
struct Busy<'a>(&'a Engine, AtomicUsize);

impl ImportTarget for Busy<'_> {
    fn submit(&self, write: &ImportWrite) -> Result<ImportAnswer> {
        if self.1.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            return Err(Error::Busy { reason: "not now", retry_after: Duration::ZERO });
        }
        self.0.submit(write)
    }

    fn columns(&self, database: &str, table: &str) -> Result<Vec<Column>> {
        self.0.columns(database, table)
    }
}

#[test]
fn a_busy_target_is_waited_for() {
    let (_dir, engine) = engine();
    let (name, bytes) = files(30).swap_remove(1);
    let (mut waited, mut last) = (0, 0);
    let report =
        import(&Busy(&engine, AtomicUsize::new(0)), file(name, &bytes), &in_milliseconds(&[], 50), &mut |event| {
            match event {
                ImportEvent::Waiting { reason } => {
                    assert_eq!(reason, "not now");
                    waited += 1;
                }
                ImportEvent::Progress { rows, .. } => {
                    assert!(rows >= last);
                    last = rows;
                }
                other => panic!("{other:?}"),
            }
        });
    assert_eq!((report.unwrap().rows, last), (30, 30));
    assert!(waited > 3);
}

#[test]
fn rows_of_csv_that_do_not_fit_are_named_and_the_others_stored() {
    let (_dir, engine) = engine();
    let body = "\u{feff}time,host,n,x,ok,note\n\
        2024-01-01T00:00:00Z,a,1,1.5,true,\"two\nlines, and a \"\"quote\"\"\"\n\
        yesterday,a,1,1.5,true,\n\
        2024-01-01T00:00:01Z,a,one,1.5,true,\n\
        2024-01-01T00:00:02Z,a,2,1e999,true,\n\
        \n\
        2024-01-01T00:00:03Z,a,2\n\
        2024-01-01T00:00:04Z,a,2,,,NULL\n\
        ,a,3,1.5,true,\n\
        2024-01-01T00:00:05Z,a,3,1.5,maybe,\n";
    let types = [("n", ImportType::Integer), ("x", ImportType::Float), ("ok", ImportType::Boolean)];
    let types = types.map(|(name, given)| (name.to_owned(), given)).to_vec();
    let options = ImportOptions { tags: vec!["host".to_owned()], types, nulls: vec!["NULL".to_owned()], ..table("t") };
    let report = all_of("a.csv", body.as_bytes(), &options, &engine).unwrap();
    let refused: Vec<_> = report.refusals.iter().map(|r| (r.row, r.column.as_str(), r.reason.as_str())).collect();
    assert_eq!(
        refused,
        [
            (4, "time", "\"yesterday\" is no time; expected RFC 3339, YYYY-MM-DD hh:mm:ss, or a number"),
            (5, "n", "\"one\" is not a 64-bit integer"),
            (6, "x", "\"1e999\" is not a number that a float can hold"),
            (8, "", "the row has 3 values, expected 6"),
            (10, "time", "the time is missing"),
            (11, "ok", "\"maybe\" is not true or false"),
        ]
    );
    assert_eq!((report.rows, report.refused), (2, 6));
    assert_eq!(report.columns, ["time", "host", "n", "x", "ok", "note"]);
    assert_eq!(
        rows(&engine, "t"),
        [
            "time=1704067200000000000 host=a n=1 x=1.5 ok=true note=two\nlines, and a \"quote\"",
            "time=1704067204000000000 host=a n=2 x= ok= note=",
        ]
    );
}

#[test]
fn cells_of_csv_are_text_by_their_name_and_give_columns_other_types() {
    let (_dir, engine) = engine();
    let types = crate::ColumnTypes::new().string_columns(["attr_*"]).on_conflict(crate::OnConflict::Widen);
    engine.create_database("d").unwrap();
    engine.set_column_types("d", None, &types).unwrap();
    assert_eq!(engine.write_lp("d", b"t v=1i,w=2i 1").unwrap().points, 1);
    let body = "time,v,w,attr_a,attr_b\n2,2.5,3,1.50,\n3,3,x,TRUE,007\n";
    for replayed in [0, 2] {
        let options = ImportOptions { precision: Some(crate::Precision::Nanosecond), ..table("t") };
        let report = all_of("a.csv", body.as_bytes(), &options, &engine).unwrap();
        assert_eq!((report.refused, report.rows_before), (0, replayed));
    }
    // The first row is in a chunk from before there were such columns.
    let expected =
        ["time=1 v=1.0 w=2", "time=2 v=2.5 w=3 attr_a=1.50 attr_b=", "time=3 v=3.0 w=x attr_a=TRUE attr_b=007"];
    assert_eq!(rows(&engine, "t"), expected);
}

#[test]
fn columns_of_csv_have_the_types_of_the_table_or_the_narrowest() {
    let (_dir, engine) = engine();
    let written = engine.write_lp("d", b"t,host=a v=1.5,s=\"x\" 1").unwrap();
    assert_eq!(written.points, 1);
    let body = "ts;host;v;s;n;zip;empty\n2;7;2;12;3;01234;\n3;7;two;;-3;99999;\n";
    let options = ImportOptions {
        delimiter: Some(b';'),
        skip_rows: 2,
        time_column: Some("ts".to_owned()),
        precision: Some(crate::Precision::Nanosecond),
        ..table("t")
    };
    let body = format!("a title\n;;;\n{body}");
    let report =
        all_of("a.txt", body.as_bytes(), &ImportOptions { format: Some(ImportFormat::Csv), ..options }, &engine);
    let report = report.unwrap();
    assert_eq!((report.rows, report.refusals[0].row, report.refusals[0].column.as_str()), (1, 5, "v"));
    assert_eq!(report.columns, ["time", "host", "v", "s", "n", "zip"]);
    assert_eq!(rows(&engine, "t"), ["time=1 host=a v=1.5 s=x n= zip=", "time=2 host=7 v=2.0 s=12 n=3 zip=01234"]);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_measurement() {
    for table in [None, Some("t".to_owned())] {
        let options = ImportOptions { database: "d".to_owned(), table, chunk_bytes: 1, ..ImportOptions::new() };
        let (_dir, engine) = engine();
        let report = all_of("a.lp", "\u{feff}t v=1 1\nt v=2 2\n".as_bytes(), &options, &engine).unwrap();
        assert_eq!((report.rows, report.refused), (2, 0));
        assert_eq!(rows(&engine, "t"), ["time=1 v=1.0", "time=2 v=2.0"]);
    }
}

#[test]
fn lines_that_are_bad_are_named_by_their_place_in_the_file() {
    let (_dir, engine) = engine();
    let mut body = String::new();
    for n in 0..50 {
        body.push_str(&format!("t,h=a v={n}i,s=\"one\ntwo\" {n}\n# a comment\n"));
    }
    body.push_str("t v=\nother v=1i 1\n");
    let whole = format!("{body}t v=\"never closed\nt v=7i 99");
    // The string takes the rest of the file with it.
    for (chunk_bytes, only, stored) in [(1 << 20, None, 51), (40, None, 51), (40, Some("t"), 50)] {
        let options = ImportOptions {
            database: "d".to_owned(),
            table: only.map(str::to_owned),
            chunk_bytes,
            id: Some(format!("{chunk_bytes} {only:?}")),
            ..ImportOptions::new()
        };
        let report = all_of("a.lp", whole.as_bytes(), &options, &engine).unwrap();
        let lines: Vec<u64> = report.refusals.iter().map(|refusal| refusal.row).collect();
        assert_eq!((report.rows, lines.as_slice()), (stored, &[151, 153][..]), "{chunk_bytes} {only:?}");
        assert_eq!(report.tables.contains("other"), only.is_none());
    }
}

#[test]
fn more_refusals_than_a_write_names_are_counted() {
    let (_dir, engine) = engine();
    let (mut told, mut also) = (0, 0);
    let bytes = "t v=\n".repeat(500);
    let report = import(&engine, file("a.lp", bytes.as_bytes()), &ImportOptions::new(), &mut |event| match event {
        ImportEvent::Refused(_) => told += 1,
        ImportEvent::AlsoRefused { count, after } => also += count * u64::from(after == 100),
        _ => {}
    });
    let report = report.unwrap();
    assert_eq!((report.refused, report.refusals.len(), told, also), (500, MAX_REFUSALS, 100, 400));
}

#[test]
fn rows_without_a_time_are_refused_one_by_one() {
    let (_dir, engine) = engine();
    let time: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![Some(1), None, Some(i64::MAX), Some(4)]));
    let n: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let text: ArrayRef =
        Arc::new(StringArray::from(vec![Some("1970-01-01T00:00:00.001Z"), None, Some("x"), Some("0.004")]));
    for (name, column) in [("t", time), ("u", text)] {
        let batch = RecordBatch::try_from_iter([("at", column), ("n", Arc::clone(&n))]).unwrap();
        let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        parquet.write(&batch).unwrap();
        let at = Some("at".to_owned());
        let options = ImportOptions { time_column: at, precision: Some(crate::Precision::Second), ..table(name) };
        let report = all_of("a.parquet", &parquet.into_inner().unwrap(), &options, &engine).unwrap();
        let refused: Vec<_> = report.refusals.iter().map(|r| (r.row, r.column.as_str())).collect();
        assert_eq!((report.rows, refused.as_slice()), (2, &[(2, "at"), (3, "at")][..]));
        assert_eq!(rows(&engine, name), ["time=1000000 n=1", "time=4000000 n=4"]);
    }
}

#[test]
fn rows_finer_than_their_table_are_refused_one_by_one_or_rounded() {
    use crate::FinerTimes::{Reject, Round};
    let (_dir, engine) = engine();
    let time: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1_000, 1_500, 2_000]));
    let n: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("time", time), ("n", n)]).unwrap();
    let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    parquet.write(&batch).unwrap();
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    stream.write(&batch).unwrap();
    let files = [
        ("a.parquet", parquet.into_inner().unwrap()),
        ("a.arrows", stream.into_inner().unwrap()),
        ("a.csv", b"time,n\n1000,1\n1500,2\n2000,3\n".to_vec()),
        ("a.lp", b"t n=1i 1000\nt n=2i 1500\nt n=3i 2000\n".to_vec()),
    ];
    engine.create_database("d").unwrap();
    for (finer_times, expected) in [(Reject, ["n=1", "n=3"].as_slice()), (Round, &["n=1", "n=2", "n=3"])] {
        let types = crate::ColumnTypes::new().time_unit(crate::FileTimeUnit::Microsecond).finer_times(finer_times);
        engine.set_column_types("d", None, &types).unwrap();
        for (name, bytes) in &files {
            let to = if name.ends_with(".lp") { "t".to_owned() } else { format!("{finer_times}_{}", &name[2..]) };
            // Another import of the same file.
            let id = Some(finer_times.to_string());
            let options = ImportOptions { precision: Some(crate::Precision::Nanosecond), id, ..table(&to) };
            let report = all_of(name, bytes, &options, &engine).unwrap();
            let refused: Vec<_> =
                report.refusals.iter().map(|refusal| refusal.reason.contains("is finer than")).collect();
            assert_eq!(refused, if finer_times == Reject { vec![true] } else { Vec::new() }, "{name}");
            assert_eq!(report.rows, expected.len() as u64, "{name}, {finer_times}");
            if to != "t" {
                let found = rows(&engine, &to);
                assert!(found.iter().all(|row| row.contains("000 ")), "{found:?}");
                assert_eq!(found.iter().map(|row| row.split_once(' ').unwrap().1).collect::<Vec<_>>(), expected);
            }
        }
    }
}

#[test]
fn a_bad_file_is_refused_with_what_is_wrong() {
    let (_dir, engine) = engine();
    let two = |name: &str| {
        let time: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("at", Arc::clone(&time)), (name, time)]).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    };
    // A file of some hundred bytes, whose rows would be a million bytes each.
    let wide = {
        let time: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1]));
        let nothing = new_null_array(&DataType::FixedSizeBinary(1_000_000), 1);
        let batch = RecordBatch::try_from_iter([("time", time), ("wide", nothing)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    };
    let (parquet, arrow) = (files(5).swap_remove(2).1, files(5).swap_remove(4).1);
    let at = |options: ImportOptions| ImportOptions { time_column: Some("at".to_owned()), ..options };
    let small = |skip_rows| ImportOptions { chunk_bytes: 10, skip_rows, ..table("t") };
    let wide_csv = format!("time{}", (0..100_000).map(|n| format!(",c{n}")).collect::<String>()).into_bytes();
    let long_csv = [b"time,v\n1,a\n2,".to_vec(), vec![b'x'; 2 << 20]].concat();
    let cases: Vec<(&str, Vec<u8>, ImportOptions, &str)> = vec![
        ("a.txt", vec![], table("t"), "does not say its format"),
        ("a.csv", b"time,v\n1,2\n".to_vec(), ImportOptions::new(), "which table"),
        ("a.csv", b"".to_vec(), table("t"), "no column \"time\""),
        ("a.csv", b"a,b\n1,2\n".to_vec(), table("t"), "no column \"time\" for the time; there are a, b"),
        ("a.csv", b"time,a,a\n1,2,3\n".to_vec(), table("t"), "column \"a\" comes twice"),
        ("a.csv", b"at,time\n1,2\n".to_vec(), at(table("t")), "cannot be stored beside"),
        ("a.csv", b"time,v\n1,2\n".to_vec(), ImportOptions { tags: vec!["x".into()], ..table("t") }, "no column \"x\""),
        ("a.csv.gz", gzip(b"time,v\n1,2\n")[..20].to_vec(), table("t"), "a.csv.gz"),
        ("a.parquet", b"PAR1 or not".to_vec(), table("t"), "no good Parquet file"),
        ("a.parquet", parquet[..parquet.len() / 2].to_vec(), table("t"), "no good Parquet file"),
        ("a.parquet", wide, table("t"), "bytes a value, also where it is NULL; at most 65536"),
        ("a.arrow", b"ARROW or not".to_vec(), table("t"), "a.arrow"),
        ("a.arrow", arrow[..arrow.len() - 9].to_vec(), table("t"), "footer"),
        ("a.arrows", two("time"), at(table("t")), "cannot be stored beside"),
        ("a.arrows", two("x"), table("t"), "no column \"time\""),
        ("a.csv", wide_csv, table("t"), "it has 100001 columns, and a table up to"),
        ("a.csv", long_csv.clone(), small(0), "from line 3 on: a row is longer than 1048576 bytes"),
        (
            "a.csv.gz",
            gzip(&long_csv),
            ImportOptions { types: vec![("v".into(), ImportType::String)], ..small(0) },
            "from line 3 on",
        ),
        ("a.csv", vec![b'x'; 2 << 20], small(1), "line 1: a row is longer"),
        ("a.csv", vec![b'x'; 2 << 20], small(0), "its first line has no names: a row is longer"),
        ("a.lp", vec![b'x'; 2 << 20], ImportOptions { chunk_bytes: 10, ..ImportOptions::new() }, "line 1 is longer"),
    ];
    for (name, bytes, options, says) in cases {
        let error = all_of(name, &bytes, &options, &engine).unwrap_err();
        let mut text = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            text = format!("{text}: {source}");
        }
        assert!(text.contains(says), "{name}: {text}");
    }
    let damaged: Vec<u8> = parquet.iter().enumerate().map(|(at, byte)| if at == 40 { !byte } else { *byte }).collect();
    let _ = all_of("a.parquet", &damaged, &table("t"), &engine);
}

#[test]
fn a_piece_that_the_target_refuses_stops_the_import_where_it_is() {
    let (_dir, engine) = engine();
    assert_eq!(engine.write_lp("d", b"t n=\"text\" 1").unwrap().points, 1);
    let (name, bytes) = files(5).swap_remove(2);
    let error = all_of(name, &bytes, &table("t"), &engine).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaConflict);
    assert_eq!(error.to_string(), "the import of a.parquet stopped at row 1");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("column \"n\""), "{source}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_are_read_or_refused(
        which in 0_usize..5,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        chunk_bytes in prop::sample::select(vec![30, 1 << 20]),
    ) {
        let (name, mut bytes) = files(12).swap_remove(which);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (_dir, engine) = engine();
        let _ = all_of(name, &bytes, &in_milliseconds(&["host"], chunk_bytes), &engine);
    }
}
