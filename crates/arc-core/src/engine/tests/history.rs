//! Every state that was there can be asked for again, for as long as the settings say, whatever was
//! done since; and what is older is gone.

mod at_hand;
mod clocks;
mod folders;
mod kept;
mod restored;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use proptest::{collection::vec, prelude::*};

use self::{folders::check_folders, kept::ListFate};
use super::{
    contents::{contents, contents_of},
    quiet, quiet_in,
    requests::{Request, request},
};
use crate::{
    ColumnTypes, Comparison, Engine, Error, ErrorKind, Literal, OnConflict, Options, Predicate,
    clock::Clock,
    engine::EngineRole,
    model::PastMoment,
    vfs::{CrashFs, Vfs, stride},
};

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_000_000 * SECOND;

/// A clock that a test sets.
#[derive(Debug, Clone)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(START)))
    }

    /// Lets seconds go by, or puts it back by some.
    fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * SECOND, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An engine, the states that it had, and its clock.
struct Recorded {
    fs: CrashFs,
    clock: Hand,
    options: Options,
    engine: Engine,
    /// Of another process, as it were.
    reader: Engine,
    states: Vec<(i64, Vec<String>)>,
    snapshots: Vec<(String, Vec<String>)>,
    snapshots_made: usize,
    /// The first list of the files of snapshots that there was when the engine was opened again.
    older_list: Option<(PathBuf, Vec<u8>)>,
}

fn options(history: u64) -> Options {
    let mut options = Options::default();
    (options.history, options.compaction_grace) = (Duration::from_secs(history), Duration::ZERO);
    (options.compaction, options.flush_after) = (false, Duration::from_secs(1 << 30));
    (options.wal_segment_bytes, options.compaction_files) = (64 << 10, 2);
    options.column_types = ColumnTypes::new().on_conflict(OnConflict::Widen);
    options
}

fn open(fs: &CrashFs, clock: &Hand, options: &Options) -> Engine {
    quiet_in(fs).options(options.clone()).clock(Arc::new(clock.clone())).open().unwrap()
}

fn reader(fs: &CrashFs, clock: &Hand, options: &Options) -> Engine {
    quiet_in(fs).options(options.clone()).clock(Arc::new(clock.clone())).open_reader().unwrap()
}

impl Recorded {
    fn new(options: Options) -> Self {
        let (fs, clock) = (CrashFs::new(), Hand::new());
        let engine = open(&fs, &clock, &options);
        let reader = reader(&fs, &clock, &options);
        let (states, snapshots) = (Vec::new(), Vec::new());
        Self { fs, clock, options, engine, reader, states, snapshots, snapshots_made: 0, older_list: None }
    }

    fn line(&self, line: &str) {
        assert!(self.engine.write_lp("d", line.as_bytes()).unwrap().points > 0);
    }

    /// Notes what there is now, which a reader sees as well, and lets a second go by.
    fn record(&mut self) {
        self.check_reader();
        self.states.push((self.clock.now_ns(), contents(&self.engine)));
        self.clock.advance(1);
    }

    fn at(&self, time_ns: i64) -> crate::Result<Vec<String>> {
        self.contents_at(&PastMoment::Time(time_ns), true)
    }

    fn named(&self, name: &str) -> crate::Result<Vec<String>> {
        self.contents_at(&PastMoment::Snapshot(name.to_owned()), true)
    }

    /// Asks the engine, and if need be whoever only reads, who has to say the same.
    fn contents_at(&self, moment: &PastMoment, asks_reader: bool) -> crate::Result<Vec<String>> {
        if !asks_reader {
            let past = self.engine.writer()?.past_state(moment)?;
            return Ok(contents_of(&self.engine, &past.registry));
        }
        let EngineRole::Reader(reader) = &self.reader.inner.role else { panic!("it is no reader") };
        let of_reader = reader.pin().and_then(|_| reader.past_state(moment));
        let past = self.engine.writer()?.past_state(moment);
        assert_eq!(past.as_ref().err().map(Error::kind), of_reader.as_ref().err().map(Error::kind), "{moment:?}");
        let (past, of_reader) = (past?, of_reader?);
        let contents = contents_of(&self.engine, &past.registry);
        assert!(contents_of(&self.engine, &of_reader.registry) == contents, "{moment:?}");
        // So that its lease is for what it sees now.
        drop(of_reader);
        reader.renew()?;
        Ok(contents)
    }

    fn check_reader(&self) {
        let EngineRole::Reader(reader) = &self.reader.inner.role else { panic!("it is no reader") };
        let seen = contents_of(&self.engine, reader.pin().unwrap().registry());
        assert!(seen == contents(&self.engine), "{seen:?}");
    }

    /// Has a table be what it was, or checks that nothing comes of it.
    fn restore(&self, time_ns: i64, nth: prop::sample::Index) {
        let moment = PastMoment::Time(time_ns);
        let Ok(past) = self.engine.writer().unwrap().past_state(&moment) else { return };
        let Some(database) = past.registry.database("d") else { return };
        let tables = database.tables();
        if tables.is_empty() {
            return;
        }
        let name = nth.get(&tables).schema().table.to_string();
        let was = table_of(&contents_of(&self.engine, &past.registry), &name);
        let before = contents(&self.engine);
        drop((tables, database, past));
        match self.engine.restore_table("d", &name, &moment) {
            Ok(()) => {
                let is = table_of(&contents(&self.engine), &name);
                let columns = |lines: &[String]| lines.iter().filter(|line| line.starts_with("column")).count();
                assert_eq!(is.len() - columns(&is), was.len() - columns(&was), "{name}");
                assert!(columns(&is) != columns(&was) || is == was || has_widened(&was, &is), "{name}");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::SchemaConflict, "{error}");
                assert!(contents(&self.engine) == before, "{error}");
            }
        }
    }

    fn snapshot(&mut self) {
        let name = format!("s{}", self.snapshots_made);
        self.snapshots_made += 1;
        self.engine.create_snapshot(&name).unwrap();
        self.snapshots.push((name, contents(&self.engine)));
    }

    /// Lets the process die, or end, and opens what it leaves.
    fn reopen(&mut self, is_kill: bool) {
        if is_kill {
            self.fs = CrashFs::from_image(&self.fs.current());
            // That of a reader of the folder that this one was copied from.
            for lease in self.fs.current().files().filter(|path| path.starts_with("/data/readers")) {
                self.fs.remove_file(lease).unwrap();
            }
        } else {
            self.engine.close().unwrap();
        }
        self.engine = open(&self.fs, &self.clock, &self.options);
        if is_kill {
            // Their folder is another one; without this the reader stays, whoever writes.
            self.reader = reader(&self.fs, &self.clock, &self.options);
        }
    }

    /// Compares all states that can be asked for with what they were.
    fn check(&self) {
        check_folders(&self.fs, &self.engine);
        let from_ns = self.clock.now_ns() - i64::try_from(self.options.history.as_nanos()).unwrap();
        for (time_ns, was) in &self.states {
            if *time_ns < from_ns {
                assert!(matches!(self.at(*time_ns), Err(Error::OutsideHistory { .. })), "{time_ns}");
                continue;
            }
            // Nothing came in the half second after it either.
            for (time_ns, asks_reader) in [(*time_ns, false), (time_ns + SECOND / 2, true)] {
                let is = self.contents_at(&PastMoment::Time(time_ns), asks_reader).unwrap();
                let differ = was.iter().zip(&is).find(|(was, is)| was != is);
                assert!(*was == is, "{time_ns}: {} lines, {}: {differ:?}", was.len(), is.len());
            }
        }
        for (name, was) in &self.snapshots {
            assert!(self.named(name).unwrap() == *was, "{name}");
        }
    }

    fn data_files(&self) -> usize {
        let image = self.fs.current();
        image.files().filter(|path| path.extension().is_some_and(|end| end == "parquet" || end == "pack")).count()
    }
}

/// Returns the lines of one table.
fn table_of(contents: &[String], table: &str) -> Vec<String> {
    let is_head = |line: &String| line.starts_with("table ") || line.starts_with("database ");
    let head = format!("table {table:?} ");
    let own = contents.iter().skip_while(|line| !line.starts_with(&head)).enumerate();
    own.take_while(|(nth, line)| *nth == 0 || !is_head(line)).map(|(_, line)| line.clone()).collect()
}

/// Returns whether a column is of another type by now.
fn has_widened(was: &[String], is: &[String]) -> bool {
    was.iter().zip(is).any(|(was, is)| was.starts_with("column") && was != is)
}

#[derive(Debug, Clone)]
enum Step {
    Write(Request),
    Flush,
    Compact,
    Delete { table: prop::sample::Index, before_ns: i64 },
    Drop { table: prop::sample::Index, whole: bool },
    Snapshot,
    DropSnapshot(prop::sample::Index),
    Restore { state: prop::sample::Index, table: prop::sample::Index },
    Reopen { is_kill: bool, list: ListFate },
    Wait(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let index = || any::<prop::sample::Index>();
    let fates = [ListFate::Left, ListFate::Removed, ListFate::Damaged, ListFate::Older];
    let fate = prop::sample::select(fates.to_vec());
    prop_oneof![
        8 => request().prop_map(Step::Write),
        3 => Just(Step::Flush),
        2 => Just(Step::Compact),
        2 => (index(), -10..1_000_000_i64).prop_map(|(table, before_ns)| Step::Delete { table, before_ns }),
        1 => (index(), any::<bool>()).prop_map(|(table, whole)| Step::Drop { table, whole }),
        1 => Just(Step::Snapshot),
        1 => index().prop_map(Step::DropSnapshot),
        2 => (index(), index()).prop_map(|(state, table)| Step::Restore { state, table }),
        2 => (any::<bool>(), fate).prop_map(|(is_kill, list)| Step::Reopen { is_kill, list }),
        1 => (1..30_i64).prop_map(Step::Wait),
    ]
}

impl Recorded {
    fn step(&mut self, step: Step) {
        let engine = self.engine.clone();
        let table = |index: prop::sample::Index| {
            let tables = engine.tables("d").unwrap_or_default();
            (!tables.is_empty()).then(|| index.get(&tables).schema.table.to_string())
        };
        match step {
            Step::Write(request) => drop(request.send(&engine)),
            Step::Flush => drop(engine.flush().unwrap()),
            Step::Compact => drop(engine.compact().unwrap()),
            Step::Delete { table: index, before_ns } => {
                let Some(table) = table(index) else { return };
                let old = Predicate::compare("time", Comparison::Less, Literal::Time(before_ns));
                engine.delete("d", &table, &old).unwrap();
            }
            Step::Drop { table: index, whole } => match table(index) {
                Some(_) if whole => engine.drop_database("d").unwrap(),
                Some(table) => engine.drop_table("d", &table).unwrap(),
                None => {}
            },
            Step::Snapshot => self.snapshot(),
            Step::DropSnapshot(index) if !self.snapshots.is_empty() => {
                let (name, _) = self.snapshots.remove(index.index(self.snapshots.len()));
                engine.drop_snapshot(&name).unwrap();
            }
            Step::DropSnapshot(_) => {}
            Step::Restore { state, table } if !self.states.is_empty() => self.restore(state.get(&self.states).0, table),
            Step::Restore { .. } => {}
            Step::Reopen { is_kill, list } => {
                self.strike_list(list);
                self.reopen(is_kill);
            }
            Step::Wait(seconds) => self.clock.advance(seconds),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn every_state_is_what_it_was(steps in vec(step(), 1..14)) {
        let mut recorded = Recorded::new(options(25));
        for step in steps {
            recorded.step(step);
            recorded.record();
        }
        recorded.check();
        recorded.reopen(true);
        recorded.check();
        recorded.engine.flush().unwrap();
        recorded.engine.compact().unwrap();
        recorded.check();
        recorded.check_nothing_stays();
    }
}

#[test]
fn rows_that_were_not_flushed_are_there_and_later_ones_are_not() {
    let mut recorded = Recorded::new(options(3_600));
    recorded.record();
    for round in 0..4 {
        recorded.line(&format!("m,h=a v={round} 1\nm,h=b v={round} {round}"));
        recorded.record();
        recorded.line(&format!("m,h=a w={round} 1\nlist v=\"{round}\" 7"));
        recorded.record();
        if round % 2 == 1 {
            recorded.engine.flush().unwrap();
            recorded.record();
        }
    }
    recorded.check();
}

#[test]
fn a_branch_begins_as_any_state_that_can_be_asked_for() {
    let mut recorded = Recorded::new(options(3_600));
    recorded.line("m,h=a v=1 1\nm,h=b v=2 2\nn,h=a v=1 1");
    recorded.record();
    recorded.engine.flush().unwrap();
    recorded.line("m,h=c v=3 3");
    recorded.record();
    let of_a = Predicate::compare("h", Comparison::Equal, "a");
    recorded.engine.delete("d", "m", &of_a).unwrap();
    recorded.record();
    recorded.engine.drop_table("d", "n").unwrap();
    recorded.line("n,h=z v=9 1");
    recorded.record();
    recorded.engine.compact().unwrap();
    recorded.record();
    for (nth, (time_ns, was)) in recorded.states.iter().enumerate() {
        for (by, engine) in [("writer", &recorded.engine), ("reader", &recorded.reader)] {
            let root = format!("/branches/{by}{nth}");
            engine.branch_at(&root, &PastMoment::Time(*time_ns)).unwrap();
            let branch = quiet(Path::new(&root)).vfs(Arc::new(recorded.fs.clone())).options(recorded.options.clone());
            assert!(contents(&branch.open().unwrap()) == *was, "{root}");
            #[cfg(feature = "object-store")]
            check_branch_in_store(engine, *time_ns, was);
        }
    }
    recorded.check();
}

/// The same in a bucket, where all that was in the log has to be in files.
#[cfg(feature = "object-store")]
fn check_branch_in_store(engine: &Engine, time_ns: i64, was: &[String]) {
    let store: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    let storage = crate::store::ObjectStorage::new(store, "branch");
    let report = engine.branch_in_store(storage.clone(), Some(&PastMoment::Time(time_ns))).unwrap();
    let branch = quiet_in(&CrashFs::new()).options(options(0)).object_store(storage).open().unwrap();
    assert!(contents(&branch) == *was && report.frames == 0, "{time_ns}: {report:?}");
    assert_eq!(branch.stats().buffered_rows, 0, "all of it is in files");
}

#[test]
fn a_reader_keeps_the_older_state_that_it_reads_and_no_longer() {
    let mut recorded = Recorded::new(options(100));
    recorded.line("m,h=a v=1 1");
    recorded.engine.flush().unwrap();
    recorded.snapshot();
    recorded.record();
    let was = contents(&recorded.engine);
    recorded.engine.drop_database("d").unwrap();
    recorded.engine.flush().unwrap();
    recorded.engine.drop_snapshot("s0").unwrap();
    let EngineRole::Reader(reader) = &recorded.reader.inner.role else { panic!("it is no reader") };
    drop(reader.pin().unwrap());
    let past = reader.past_state(&PastMoment::Time(recorded.states[0].0)).unwrap();
    // Its time is over, and its lease goes on.
    for _ in 0..8 {
        recorded.clock.advance(30);
        reader.renew().unwrap();
        recorded.engine.compact().unwrap();
    }
    assert_eq!(recorded.data_files(), 1);
    assert!(contents_of(&recorded.engine, &past.registry) == was);
    drop(past);
    reader.renew().unwrap();
    recorded.engine.compact().unwrap();
    assert_eq!(recorded.data_files(), 0);
    let error = recorded.at(recorded.states[0].0).unwrap_err();
    assert!(matches!(error, Error::OutsideHistory { .. }), "{error}");
}

#[test]
fn a_reader_shows_the_snapshots_that_there_are_and_what_they_cost() {
    let mut recorded = Recorded::new(options(10));
    recorded.line("m,h=a v=1 1\nm,h=b v=2 2");
    recorded.snapshot();
    recorded.engine.drop_database("d").unwrap();
    recorded.line("m,h=a v=2 1");
    recorded.snapshot();
    recorded.engine.flush().unwrap();
    let of_writer = recorded.engine.snapshots();
    assert!(of_writer.len() == 2 && of_writer[0].retired_files == 1, "{of_writer:?}");
    assert_eq!(recorded.reader.snapshots(), of_writer);
    recorded.engine.drop_snapshot("s0").unwrap();
    assert_eq!(recorded.reader.snapshots(), recorded.engine.snapshots());
}

#[test]
fn what_was_deleted_and_dropped_is_there_until_it_is_too_old_and_then_it_goes() {
    let mut recorded = Recorded::new(options(100));
    recorded.line("m,h=a v=1 1\nm,h=b v=2 2\nn,h=a v=1 1");
    recorded.engine.flush().unwrap();
    recorded.line("m,h=c v=3 3\nn,h=b v=4 1");
    recorded.record();
    let of_a = Predicate::compare("h", Comparison::Equal, "a");
    recorded.engine.delete("d", "m", &of_a).unwrap();
    recorded.record();
    recorded.engine.drop_table("d", "n").unwrap();
    recorded.record();
    recorded.engine.compact().unwrap();
    recorded.record();
    recorded.check();
    assert!(recorded.engine.stats().retired_files >= 2 && recorded.engine.stats().retired_bytes > 0);
    recorded.reopen(false);
    assert!(recorded.engine.stats().retired_files >= 2, "a restart forgets nothing");
    recorded.check();
    recorded.clock.advance(101);
    recorded.engine.compact().unwrap();
    let stats = recorded.engine.stats();
    assert_eq!((stats.retired_files, stats.retired_bytes), (0, 0));
    assert_eq!(recorded.data_files(), recorded.engine.data_files("d", "m").unwrap().len());
    recorded.check();
    let error = recorded.at(START).unwrap_err();
    assert!(error.to_string().contains("history begins at 1970-01-12T13:46:45Z"), "{error}");
    let error = recorded.at(recorded.clock.now_ns() + 1).unwrap_err();
    assert!(error.to_string().contains("is in the future; it is 1970-01-12T13:"), "{error}");
}

#[test]
fn a_snapshot_keeps_what_it_has_until_it_is_dropped_also_without_history() {
    for history in [0, 10] {
        let mut recorded = Recorded::new(options(history));
        recorded.line("m,h=a v=1 1\nm,h=b v=2 2");
        recorded.snapshot();
        assert!(matches!(recorded.engine.create_snapshot("s0"), Err(Error::SnapshotExists { .. })));
        recorded.engine.drop_database("d").unwrap();
        recorded.engine.create_database("e").unwrap();
        for _ in 0..300 {
            // Enough commits that the manifest lets go of its oldest objects.
            recorded.clock.advance(1);
            recorded.engine.set_retention("e", None, Some(Duration::from_secs(3_600))).unwrap();
        }
        recorded.clock.advance(1_000);
        recorded.engine.compact().unwrap();
        assert_eq!((recorded.data_files(), recorded.engine.snapshots()[0].retired_files), (1, 1));
        recorded.check();
        recorded.reopen(true);
        recorded.engine.compact().unwrap();
        recorded.check();
        recorded.engine.drop_snapshot("s0").unwrap();
        assert!(matches!(recorded.named("s0"), Err(Error::SnapshotNotFound { .. })));
        assert!(matches!(recorded.engine.drop_snapshot("s0"), Err(Error::SnapshotNotFound { .. })));
        recorded.engine.compact().unwrap();
        assert_eq!(recorded.data_files(), 0);
        assert!(recorded.engine.snapshots().is_empty());
    }
}

#[test]
fn history_reaches_no_further_than_the_log_that_is_kept() {
    let mut options = options(3_600);
    options.history_log_bytes = 128 << 10;
    let mut recorded = Recorded::new(options);
    let first = recorded.clock.now_ns();
    for round in 0..40 {
        let text = "x".repeat(20_000);
        recorded.line(&format!("m,h=a v=\"{text}{round}\" {round}"));
        recorded.clock.advance(1);
        if round % 4 == 3 {
            recorded.engine.flush().unwrap();
        }
    }
    recorded.record();
    assert!(recorded.engine.stats().history_log_bytes <= 128 << 10);
    let error = recorded.at(first).unwrap_err();
    assert!(error.to_string().contains("history begins at"), "{error}");
    recorded.check();
}

#[test]
fn a_drop_at_any_cut_of_power_leaves_snapshots_whole() {
    let recorded = Recorded::new(options(10));
    recorded.line("m,h=a v=1 1");
    recorded.engine.create_snapshot("kept").unwrap();
    let was = contents(&recorded.engine);
    recorded.line("m,h=a v=2 1");
    recorded.engine.drop_table("d", "m").unwrap();
    recorded.clock.advance(1_000);
    recorded.engine.compact().unwrap();
    drop(recorded.engine);
    for cut in recorded.fs.power_cuts().step_by(stride(3)) {
        for image in cut.images(3, 4) {
            let fs = CrashFs::from_image(&image);
            let engine = quiet_in(&fs).options(recorded.options.clone()).clock(Arc::new(recorded.clock.clone())).open();
            let engine = engine.unwrap_or_else(|error| panic!("after operation {}: {error}", cut.operations()));
            if engine.snapshots().iter().any(|snapshot| snapshot.name == "kept") {
                let past = engine.writer().unwrap().past_state(&PastMoment::Snapshot("kept".into())).unwrap();
                assert_eq!(contents_of(&engine, &past.registry), was, "after operation {}", cut.operations());
            }
        }
    }
}
