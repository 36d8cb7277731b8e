//! A reader beside a writer, in one process, on a file system in memory: what it sees is what the
//! writer has.

mod faults;
mod files;
mod refused;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::*;
use crate::{
    Comparison, Durability, Engine, Predicate, TableInfo, WriteOptions, clock::Clock, engine::EngineRole, vfs::CrashFs,
};

const ROOT: &str = "/store";
pub(super) const SECOND: i64 = 1_000_000_000;
/// A day that is over by the time of the tests.
pub(super) const DAY: i64 = 1_700_000_000 * SECOND;

/// A clock that a test moves.
#[derive(Debug)]
pub(super) struct SetClock(AtomicI64);

impl SetClock {
    pub(super) fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * SECOND, Ordering::Relaxed);
    }
}

impl Clock for SetClock {
    fn now_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A disk with a directory, and a clock for those who have it open.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    pub(super) fs: CrashFs,
    pub(super) clock: Arc<SetClock>,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self { fs: CrashFs::new(), clock: Arc::new(SetClock(AtomicI64::new(DAY + 10 * 86_400 * SECOND))) }
    }

    pub(super) fn builder(&self) -> crate::EngineBuilder {
        let options = Options {
            compaction: false,
            compaction_grace: Duration::ZERO,
            history: Duration::ZERO,
            compaction_files: 2,
            flush_after: Duration::from_secs(1 << 30),
            wal_segment_bytes: 64 << 10,
            ..Options::default()
        };
        let clock: Arc<dyn Clock> = Arc::<SetClock>::clone(&self.clock);
        Engine::builder(ROOT).options(options).vfs(Arc::new(self.fs.clone())).clock(clock)
    }

    pub(super) fn open(&self) -> (Engine, Engine) {
        let writer = self.builder().open().unwrap();
        (writer, self.builder().open_reader().unwrap())
    }
}

pub(super) fn reader_of(engine: &Engine) -> &Arc<Reader> {
    match &engine.inner.role {
        EngineRole::Reader(reader) => reader,
        EngineRole::Writer(_) => panic!("it is no reader"),
    }
}

pub(super) fn write(engine: &Engine, lines: &str) {
    assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().rejected_points, 0, "{lines}");
}

/// Tables of a database, each with the number of its deletes and of its rows in memory.
type Contents = Vec<(TableInfo, usize, usize)>;

/// All that there is.
fn contents(engine: &Engine) -> Vec<(String, Contents)> {
    let of_table = |database: &str, info: TableInfo| {
        let view = engine.view(database, &info.schema.table).unwrap();
        let rows = view.buffers.iter().map(|part| part.row_count()).sum();
        (info, view.tombstones.len(), rows)
    };
    let of_database = |database: String| {
        let tables = engine.tables(&database).unwrap();
        let tables = tables.into_iter().map(|info| of_table(&database, info)).collect();
        (database, tables)
    };
    engine.databases().into_iter().map(|database| of_database(database.name)).collect()
}

#[test]
fn it_sees_what_the_writer_has_after_each_step() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    let of_a = || Predicate::compare("h", Comparison::Equal, "a");
    let steps: [(&str, &dyn Fn()); 16] = [
        ("a write", &|| write(&writer, &format!("m,h=a v=1 {DAY}\nm,h=b v=2 {DAY}"))),
        ("another table", &|| write(&writer, &format!("n,h=a v=1 {DAY}"))),
        ("a new column", &|| write(&writer, &format!("m,h=a v=1,w=\"x\" {}", DAY + 1))),
        ("a flush", &|| _ = writer.flush().unwrap()),
        ("a write after it", &|| write(&writer, &format!("m,h=a v=3 {}", DAY + 2))),
        ("a late write", &|| write(&writer, &format!("m,h=a v=4 {DAY}"))),
        ("a delete", &|| _ = writer.delete("d", "m", &of_a()).unwrap()),
        ("a write after that", &|| write(&writer, &format!("m,h=a v=5 {}", DAY + 3))),
        ("a flush of all that", &|| _ = writer.flush().unwrap()),
        ("a merge that carries the delete out", &|| _ = writer.compact().unwrap()),
        ("a table that is dropped", &|| writer.drop_table("d", "n").unwrap()),
        ("and made again", &|| write(&writer, &format!("n,x=a w=1 {DAY}"))),
        ("a setting", &|| writer.set_retention("d", None, Some(Duration::from_secs(3_600))).unwrap()),
        ("which ends rows", &|| _ = writer.compact().unwrap()),
        ("a database more", &|| writer.create_database("e").unwrap()),
        ("and one less", &|| writer.drop_database("d").unwrap()),
    ];
    let late = machine.builder().open_reader().unwrap();
    for (step, act) in steps {
        act();
        assert_eq!(contents(&reader), contents(&writer), "after {step}");
        let fresh = machine.builder().open_reader().unwrap();
        assert_eq!(contents(&fresh), contents(&writer), "opened after {step}");
    }
    assert_eq!(contents(&late), contents(&writer), "after all of it at once");
}

#[test]
fn it_begins_anew_where_the_commits_that_it_lacks_are_gone() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    for n in 0..300 {
        write(&writer, &format!("m,h=a v=1 {}", DAY + n));
        writer.flush().unwrap();
    }
    write(&writer, &format!("m,h=a v=1 {}", DAY + 300));
    assert_eq!(contents(&reader), contents(&writer));
}

#[test]
fn a_writer_that_is_opened_again_is_followed() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    for n in 0..3 {
        let writer = if n == 0 { writer.clone() } else { machine.builder().open().unwrap() };
        write(&writer, &format!("m,h=a v=1 {}", DAY + 10 * n));
        assert_eq!(contents(&reader), contents(&writer));
        if n == 1 {
            writer.flush().unwrap();
            write(&writer, &format!("m,h=a v=1 {}", DAY + 10 * n + 1));
        }
        writer.inner.stop();
        assert_eq!(contents(&reader), contents(&machine.builder().open_reader().unwrap()), "closed without a flush");
    }
    assert_eq!(reader.tables("d").unwrap()[0].buffered_rows + reader.tables("d").unwrap()[0].file_rows, 4);
}

#[test]
fn rows_that_are_in_memory_alone_are_seen_once_they_are_flushed() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    let options = WriteOptions::new().durability(Durability::Memory);
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    let line = format!("m,h=b v=1 {DAY}").into();
    assert_eq!(writer.submit_lp("d", line, &options).unwrap().wait().unwrap().points, 1);
    assert_eq!(reader.tables("d").unwrap()[0].buffered_rows, 1);
    writer.flush().unwrap();
    assert_eq!(reader.tables("d").unwrap()[0].file_rows, 2);
}

#[test]
fn without_a_word_from_the_writer_it_sees_what_the_log_proves() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    let count = |engine: &Engine| engine.tables("d").unwrap()[0].buffered_rows;
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    assert_eq!(count(&reader), 1);
    // As of a writer of a build that does not say it.
    machine.fs.remove_file(std::path::Path::new("/store/wal/acknowledged")).unwrap();
    write(&writer, &format!("m,h=a v=1 {}", DAY + 1));
    assert_eq!(count(&reader), 1, "nothing proves the last group");
    write(&writer, &format!("m,h=a v=1 {}", DAY + 2));
    assert_eq!(count(&reader), 2, "the next one does");
    writer.writer().unwrap().log.seal().unwrap();
    assert_eq!(count(&reader), 3, "and the seal of a log at rest");
    assert_eq!(count(&machine.builder().open_reader().unwrap()), 3);
}

#[test]
fn what_is_written_and_not_yet_acknowledged_is_not_seen() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    // A frame that is in the file, and that nothing has synced.
    let shared = writer.writer().unwrap();
    let frame = {
        let seq = shared.log.last_seq().next();
        let body = format!("m,h=a v=2 {}", DAY + 1);
        let meta =
            crate::engine::frame::encode(&crate::engine::frame::WriteMeta::new("d", None, 0, &WriteOptions::new()));
        let meta = meta.unwrap();
        let body_crc = crate::wal::body_checksum(body.as_bytes());
        let frame = crate::wal::Frame { seq, kind: 16, meta: &meta, body: body.as_bytes(), body_crc };
        assert!(shared.log.append(&[frame], false).is_ok());
        seq
    };
    assert_eq!(reader.tables("d").unwrap()[0].buffered_rows, 1);
    shared.log.acknowledge(frame);
    assert_eq!(reader.tables("d").unwrap()[0].buffered_rows, 2);
}

#[test]
fn a_query_that_is_planned_keeps_its_version_and_no_other_query_waits_for_it() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    let count = |registry: &Registry| registry.database("d").unwrap().table("m").unwrap().rows().unwrap().buffer.rows();
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    let first = reader_of(&reader).pin().unwrap();
    write(&writer, &format!("m,h=a v=1 {}", DAY + 1));
    let second = reader_of(&reader).pin().unwrap();
    assert_eq!((count(first.registry()), count(second.registry())), (1, 2));
    writer.flush().unwrap();
    let third = reader_of(&reader).pin().unwrap();
    assert_eq!((count(first.registry()), count(second.registry()), count(third.registry())), (1, 2, 0));
    drop((first, second));
    write(&writer, &format!("m,h=a v=1 {}", DAY + 2));
    drop(third);
    let fourth = reader_of(&reader).pin().unwrap();
    assert_eq!(count(fourth.registry()), 1);
}

#[test]
fn its_rows_are_counted_and_given_back() {
    let machine = Machine::new();
    let (writer, reader) = machine.open();
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    assert!(!reader.databases().is_empty());
    assert!(reader.stats().memory_bytes > 0 && reader.stats().buffered_rows == 1);
    writer.flush().unwrap();
    assert!(reader.stats().buffered_rows == 1, "what was seen last");
    assert!(!reader.databases().is_empty());
    assert_eq!((reader.stats().buffered_rows, reader.stats().memory_bytes), (0, 0));
    reader.close().unwrap();
    assert!(reader.view("d", "m").is_err());
    assert_eq!(reader.closed_to_writes().as_deref(), Some("the engine is closed"));
}

#[test]
fn beside_a_busy_writer_it_never_goes_back_and_never_misses_what_was_acknowledged() {
    const ROUNDS: u64 = 400;
    let machine = Machine::new();
    let (writer, _) = machine.open();
    let (acknowledged, sent, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    write(&writer, &format!("m,h=a v=1 {DAY}"));
    acknowledged.store(1, Ordering::SeqCst);
    sent.store(1, Ordering::SeqCst);
    let watch = |engine: Engine| {
        let (mut last, mut looks) = (0, 0);
        while !is_over.load(Ordering::SeqCst) || looks == 0 {
            let least = acknowledged.load(Ordering::SeqCst).max(last);
            let view = engine.view("d", "m").unwrap();
            let in_files: u64 = view.files.iter().map(|file| file.rows).sum();
            let seen = in_files + view.buffers.iter().map(|part| part.row_count() as u64).sum::<u64>();
            let most = sent.load(Ordering::SeqCst);
            assert!((least..=most).contains(&seen), "{seen} rows, of {least} to {most}");
            (last, looks) = (seen, looks + 1);
        }
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| machine.builder().open_reader().unwrap())
            .map(|reader| scope.spawn(|| watch(reader)))
            .collect();
        for n in 1..ROUNDS {
            sent.fetch_add(1, Ordering::SeqCst);
            // One frame in a while is larger than a segment.
            let text = "x".repeat(if n % 50 == 0 { 100_000 } else { 300 });
            write(&writer, &format!("m,h=a v=1,t=\"{text}\" {}", DAY + i64::try_from(n).unwrap()));
            acknowledged.fetch_add(1, Ordering::SeqCst);
            if n % 9 == 0 {
                writer.flush().unwrap();
            }
            if n % 20 == 0 {
                writer.compact().unwrap();
            }
        }
        is_over.store(true, Ordering::SeqCst);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}
