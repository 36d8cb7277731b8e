//! Tails of an engine that writes, and of one that reads beside it, which see the same rows.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arrow::{
    array::{AsArray, Int64Array, RecordBatch, TimestampNanosecondArray},
    datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType},
    ipc::writer::StreamWriter,
};
use futures::StreamExt;

use super::queue::MOST_WAITING_BYTES;
use super::*;
use crate::{
    Comparison, Durability, EngineBuilder, ErrorKind, OnConflict, Options, Predicate, WriteOptions, sync::block_on,
    vfs::CrashFs,
};

/// Long enough for whatever will come.
const LONG: Duration = Duration::from_secs(20);

fn builder(fs: &CrashFs) -> EngineBuilder {
    let options = Options {
        compaction: false,
        flush_after: Duration::from_secs(1 << 30),
        wal_segment_bytes: 64 << 10,
        // The log is let go of once its rows are in files.
        history: Duration::ZERO,
        ..Options::default()
    };
    Engine::builder("/store").options(options).vfs(Arc::new(fs.clone()))
}

/// An engine that writes, with a table `m` of database `d` that has one row, and one that reads.
fn pair() -> [Engine; 2] {
    let fs = CrashFs::new();
    let writer = builder(&fs).open().unwrap();
    write(&writer, "m,h=a v=0 0");
    [writer, builder(&fs).open_reader().unwrap()]
}

fn write(engine: &Engine, lines: &str) {
    assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().rejected_points, 0, "{lines}");
}

fn times_of(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<TimestampNanosecondType>().values().to_vec()
}

/// Takes rows until there are so many; returns their times.
fn times(tail: &mut Tail, count: usize) -> Vec<i64> {
    let mut times = Vec::new();
    while times.len() < count {
        let batch = tail.next_within(LONG).unwrap().expect("rows that were acknowledged");
        times.extend(times_of(&batch));
    }
    times
}

/// Takes rows until the tail ends; returns their number and the error.
fn ending(tail: &mut Tail) -> (usize, crate::Error) {
    let mut rows = 0;
    loop {
        match tail.next_within(LONG) {
            Ok(Some(batch)) => rows += batch.num_rows(),
            Ok(None) => panic!("it has not ended"),
            Err(error) => return (rows, error),
        }
    }
}

/// Writes whole columns.
fn write_arrow(engine: &Engine, times: std::ops::Range<i64>) {
    let (rows, body) = (times.end - times.start, arrow_body(times));
    let pending = engine.submit_arrow("d", "big", body.into(), &WriteOptions::new()).unwrap();
    assert_eq!(i64::try_from(pending.wait().unwrap().points).unwrap(), rows);
}

fn arrow_body(times: std::ops::Range<i64>) -> Vec<u8> {
    let values = Int64Array::from_iter_values(times.clone());
    let times = TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC");
    let batch = RecordBatch::try_from_iter([("time", Arc::new(times) as _), ("n", Arc::new(values) as _)]).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn each_row_comes_once_and_in_order_whatever_happens_between() {
    let [writer, reader] = pair();
    let mut tails = [&writer, &reader].map(|engine| engine.tail("d", "m").unwrap());
    let lines = |times: std::ops::Range<i64>| -> String {
        times.map(|n| format!("m,h={} v={n} {n}\nother,h=x v=1 {n}\n", n % 7)).collect()
    };
    let steps: [&dyn Fn(); 8] = [
        &|| write(&writer, "m,h=a v=1 1"),
        &|| write(&writer, &lines(2..40)),
        &|| write(&writer, "m,h=new v=40 40"),
        &|| _ = writer.flush().unwrap(),
        &|| write(&writer, &lines(41..45)),
        &|| _ = writer.delete("d", "m", &Predicate::compare("h", Comparison::Equal, "a")).unwrap(),
        &|| write(&writer, "m,h=a v=45 45"),
        &|| write(&writer, "m,h=a v=2 1"),
    ];
    steps.iter().for_each(|step| step());
    let expected: Vec<i64> = (1..46).chain([1]).collect();
    for tail in &mut tails {
        assert_eq!(times(tail, expected.len()), expected);
        assert!(tail.next_within(Duration::from_millis(20)).unwrap().is_none(), "and no more");
    }
}

#[test]
fn rows_come_as_they_were_written_with_columns_that_are_new() {
    let [writer, reader] = pair();
    writer.set_column_types("d", None, &crate::ColumnTypes::new().on_conflict(OnConflict::Widen)).unwrap();
    write(&writer, "w n=1i 0");
    let mut tails = [&writer, &reader].map(|engine| (engine.tail("d", "m").unwrap(), engine.tail("d", "w").unwrap()));
    write(&writer, "m,h=a v=1 1");
    for (tail, _) in &mut tails {
        let batch = tail.next_within(LONG).unwrap().unwrap();
        assert_eq!(batch.schema(), tail.schema());
        assert_eq!(batch.num_columns(), 3);
    }
    write(&writer, "m,h=a,site=x w=5i 2");
    write(&writer, "w n=2i 1");
    write(&writer, "w n=2.5 2");
    for (tail, wide) in &mut tails {
        let batch = tail.next_within(LONG).unwrap().unwrap();
        let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["time", "h", "site", "v", "w"]);
        assert!(batch.column(3).is_null(0), "the write did not have it");
        assert_eq!(batch.column(4).as_primitive::<Int64Type>().value(0), 5);
        assert_eq!(times(wide, 2), [1, 2]);
        assert_eq!(*wide.schema().field(1).data_type(), DataType::Float64);
    }
    write(&writer, "w n=7i 3");
    for (_, wide) in &mut tails {
        let batch = wide.next_within(LONG).unwrap().unwrap();
        assert_eq!(batch.column(1).as_primitive::<Float64Type>().value(0), 7.0);
    }
}

#[test]
fn large_writes_in_columns_come_whole() {
    let [writer, reader] = pair();
    write_arrow(&writer, 0..10);
    let mut tails = [&writer, &reader].map(|engine| engine.tail("d", "big").unwrap());
    write_arrow(&writer, 10..200_000);
    for tail in &mut tails {
        assert_eq!(times(tail, 199_990), (10..200_000).collect::<Vec<_>>());
    }
}

#[test]
fn a_table_that_is_dropped_ends_its_tails_and_no_others() {
    let [writer, reader] = pair();
    write(&writer, "n,h=a v=1 1");
    let mut tails = [&writer, &reader].map(|engine| (engine.tail("d", "m").unwrap(), engine.tail("d", "n").unwrap()));
    write(&writer, "m,h=a v=1 1");
    writer.drop_table("d", "m").unwrap();
    write(&writer, "m,x=1 v=1 2\nn,h=a v=1 2");
    for (dropped, other) in &mut tails {
        let (rows, error) = ending(dropped);
        assert_eq!((rows, error.kind()), (1, ErrorKind::NotFound), "{error}");
        assert_eq!(times(other, 1), [2]);
    }
    let mut again = [&writer, &reader].map(|engine| engine.tail("d", "m").unwrap());
    write(&writer, "m,x=1 v=1 3");
    again.iter_mut().for_each(|tail| assert_eq!(times(tail, 1), [3], "the table that has the name now"));
    writer.drop_database("d").unwrap();
    for tail in again.iter_mut().chain(tails.iter_mut().map(|(_, other)| other)) {
        assert_eq!(ending(tail).1.kind(), ErrorKind::NotFound);
    }
    for engine in [&writer, &reader] {
        assert_eq!(engine.tail("d", "m").unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn an_engine_that_is_closed_ends_its_tails_after_the_last_row() {
    let [writer, reader] = pair();
    let (mut tail, mut waiting, mut other) =
        (writer.tail("d", "m").unwrap(), writer.tail("d", "m").unwrap(), reader.tail("d", "m").unwrap());
    let waits = std::thread::spawn(move || ending(&mut waiting));
    write(&writer, "m,h=a v=1 1");
    writer.close().unwrap();
    for (rows, error) in [ending(&mut tail), waits.join().unwrap()] {
        assert_eq!((rows, error.kind()), (1, ErrorKind::Closed));
    }
    assert_eq!(times(&mut other, 1), [1]);
    reader.close().unwrap();
    assert_eq!(ending(&mut other).1.kind(), ErrorKind::Closed);
    for engine in [writer, reader] {
        assert_eq!(engine.tail("d", "m").unwrap_err().kind(), ErrorKind::Closed);
    }
}

#[test]
fn a_tail_keeps_no_engine_open() {
    let [writer, reader] = pair();
    let tails = [writer.tail("d", "m").unwrap(), reader.tail("d", "m").unwrap()];
    drop((writer, reader));
    for mut tail in tails {
        assert_eq!(ending(&mut tail).1.kind(), ErrorKind::Closed);
    }
}

#[test]
fn a_reader_that_is_too_slow_loses_its_tail_and_holds_up_nothing() {
    let [writer, reader] = pair();
    write_arrow(&writer, 0..1);
    for engine in [&writer, &reader] {
        let (mut slow, mut fast) = (engine.tail("d", "big").unwrap(), engine.tail("d", "big").unwrap());
        let (writes, count, rows) = (MOST_WAITING_BYTES / (1 << 20) * 2, 1 << 16, 1 << 16);
        for n in 0..writes as i64 {
            write_arrow(&writer, n * rows..(n + 1) * rows);
            assert_eq!(times(&mut fast, count)[0], n * rows, "as before");
        }
        // Sixteen bytes a row.
        let (taken, error) = ending(&mut slow);
        assert_eq!((taken, error.kind()), (MOST_WAITING_BYTES / 16, ErrorKind::Busy), "{error}");
        assert!(slow.next_within(Duration::ZERO).is_err(), "for good");
        // Of two tails the one that was opened later gets rows later.
        let (left, mut last) = (engine.tail("d", "big").unwrap(), engine.tail("d", "big").unwrap());
        write_arrow(&writer, 0..rows);
        assert_eq!(times(&mut last, count)[0], 0);
        let held = engine.stats().memory_bytes;
        drop(left);
        // The thread that hands rows on may hold it for a moment more.
        let is_given_back = || engine.stats().memory_bytes + 16 * count as u64 <= held;
        for _ in 0..4_000 {
            if is_given_back() {
                break;
            }
            crate::sync::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_given_back(), "what nobody takes is given back: {held}");
    }
}

#[test]
fn a_reader_whose_log_is_gone_says_so() {
    let [writer, reader] = pair();
    let mut tail = reader.tail("d", "m").unwrap();
    let EngineRole::Reader(role) = &reader.inner.role else { panic!("it is no reader") };
    let lines: String = (1..20_000).map(|n| format!("m,h=a v={n} {n}\n")).collect();
    {
        // As if it had no time to look.
        let _busy = role.hold_follower();
        for _ in 0..4 {
            write(&writer, &lines);
            writer.flush().unwrap();
        }
    }
    let (rows, error) = ending(&mut tail);
    assert_eq!((rows, error.kind()), (0, ErrorKind::Busy), "{error}");
    assert!(error.to_string().contains("flushed rows"), "{error}");
    let mut tail = reader.tail("d", "m").unwrap();
    write(&writer, "m,h=a v=1 1");
    assert_eq!(times(&mut tail, 1), [1], "another one begins");
}

#[test]
fn rows_that_survive_nothing_are_seen_where_they_are_written() {
    let [writer, reader] = pair();
    let mut tails = [&writer, &reader].map(|engine| engine.tail("d", "m").unwrap());
    let options = WriteOptions::new().durability(Durability::Memory);
    assert_eq!(writer.submit_lp("d", "m,h=a v=1 1".into(), &options).unwrap().wait().unwrap().points, 1);
    write(&writer, "m,h=a v=1 2");
    assert_eq!(times(&mut tails[0], 2), [1, 2]);
    assert_eq!(times(&mut tails[1], 1), [2]);
}

#[test]
fn as_a_stream_it_wakes_its_task_and_ends_once() {
    let [writer, reader] = pair();
    for engine in [&writer, &reader] {
        let mut tail = engine.tail("d", "m").unwrap();
        let task = std::thread::spawn(move || {
            block_on(async {
                let mut rows = 0;
                loop {
                    match tail.next().await {
                        Some(Ok(batch)) => rows += batch.num_rows(),
                        Some(Err(error)) => return (rows, error.kind(), tail.next().await.is_none()),
                        None => panic!("it ends with an error"),
                    }
                }
            })
        });
        write(&writer, "m,h=a v=1 1\nm,h=a v=2 2");
        if engine.is_reader() {
            // It looks by itself, some time later.
            let mut other = engine.tail("d", "m").unwrap();
            write(&writer, "m,h=a v=3 3");
            assert_eq!(times(&mut other, 1), [3]);
            engine.close().unwrap();
            assert_eq!(task.join().unwrap(), (3, ErrorKind::Closed, true));
        } else {
            writer.drop_table("d", "m").unwrap();
            assert_eq!(task.join().unwrap(), (2, ErrorKind::NotFound, true));
            write(&writer, "m,h=a v=0 0");
        }
    }
}

#[test]
fn a_tail_begins_between_two_writes() {
    let [writer, reader] = pair();
    for engine in [&writer, &reader] {
        let (is_over, sent) = (AtomicBool::new(false), std::sync::atomic::AtomicI64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let n = sent.fetch_add(1, Ordering::SeqCst) + 1;
                    write(&writer, &format!("m,h=a v=1 {n}"));
                }
            });
            for _ in 0..50 {
                let look = |table: &Table| {
                    let view = table.view()?;
                    Ok(view.buffers.iter().map(|part| part.max_time).max())
                };
                let (mut tail, seen) = engine.open_tail("d", "m", look).unwrap();
                let first = times(&mut tail, 1)[0];
                assert_eq!(Some(first), seen.map(|seen| seen + 1), "no row is in neither or in both");
            }
            is_over.store(true, Ordering::SeqCst);
        });
        writer.drop_table("d", "m").unwrap();
        write(&writer, "m,h=a v=0 0");
    }
}

#[test]
fn a_log_that_fails_ends_all_tails() {
    let fs = crate::vfs::FaultFs::new(Arc::new(CrashFs::new()));
    let engine = Engine::builder("/store").vfs(Arc::new(fs.clone())).open().unwrap();
    write(&engine, "m,h=a v=1 1");
    let mut tail = engine.tail("d", "m").unwrap();
    fs.set(crate::vfs::Fault::nth(1, std::io::ErrorKind::Other).of(crate::vfs::Operation::SyncData).from_then_on());
    assert!(engine.write_lp("d", b"m,h=a v=1 2").is_err());
    let (rows, error) = ending(&mut tail);
    assert_eq!((rows, error.kind()), (0, ErrorKind::Closed), "{error}");
    assert_eq!(engine.tail("d", "m").unwrap_err().kind(), ErrorKind::Closed);
}

#[cfg(feature = "query")]
mod since {
    use super::*;

    /// In a folder, as queries read data files past the engine's file system.
    fn pair() -> (tempfile::TempDir, [Engine; 2]) {
        let dir = tempfile::tempdir().unwrap();
        let writer = Engine::open(dir.path()).unwrap();
        write(&writer, "m,h=a v=0 0");
        let reader = Engine::builder(dir.path()).open_reader().unwrap();
        (dir, [writer, reader])
    }

    #[tokio::test]
    async fn stored_rows_come_first_in_order_of_time_and_those_that_follow_once() {
        let (_dir, [writer, reader]) = pair();
        write(&writer, "m,h=a v=1 30\nm,h=b v=1 20\nm,h=b v=1 10");
        writer.flush().unwrap();
        write(&writer, "m,h=c v=1 25\nm,h=b v=9 20");
        for engine in [&writer, &reader] {
            let (stored, mut tail) = engine.tail_since("d", "m", 20).await.unwrap();
            write(&writer, "m,h=z v=1 1");
            let stored = stored.collect().await.unwrap();
            assert_eq!(stored.iter().flat_map(times_of).collect::<Vec<_>>(), [20, 25, 30]);
            assert_eq!(tail.next().await.unwrap().unwrap().num_rows(), 1);
        }
        let missing = writer.tail_since("d", "none", 0).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn names_are_taken_as_they_are() {
        let (_dir, [writer, _]) = pair();
        assert_eq!(writer.write_lp("d", br#"a"b\ c,h=a v=1 5"#).unwrap().points, 1);
        let (stored, _) = writer.tail_since("d", "a\"b c", 0).await.unwrap();
        assert_eq!(stored.collect().await.unwrap()[0].num_rows(), 1);
    }
}
