//! The path of a commit under one seed: queue, two threads that commit, sync, spare segments,
//! buffers, flush; over a disk whose calls fail and take their time.
//!
//! Each write carries a mark that is found again in the bytes of the log, so that what was appended
//! and what was synced is known at the very moment at which a writer is told.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    future::poll_fn,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use arc_core::{
    Durability, Engine, Error, ErrorKind, Options, PendingWrite, WriteOptions, Written,
    sync::{
        block_on,
        schedule::{self, Draws, Schedule, Strategy},
        thread::{Builder, sleep},
    },
    vfs::CrashFs,
};
use arrow::{
    array::{Array, AsArray, Int64Array, RecordBatch, StringArray},
    compute::cast,
    datatypes::DataType,
};
use parking_lot::Mutex;

use crate::{
    core::{Run, SeededRandom},
    disk::{Call, Disk, Weather},
    rows,
};

const ROOT: &str = "/store";
const MOST_STEPS: u64 = 300_000;
const MARK: &[u8] = b"mark-";
const MARK_BYTES: usize = 8;

/// What is known of a write.
#[derive(Debug, Clone, Default)]
struct Told {
    level: Durability,
    /// Its place in the log.
    appended: Option<usize>,
    is_synced: bool,
    /// Its place among the answers, where it was waited for.
    answered: Option<usize>,
    /// Whether it was as durable then as it asked.
    was_durable: Option<bool>,
    result: Option<Result<(), ErrorKind>>,
}

impl Told {
    fn is_durable(&self) -> bool {
        match self.level {
            Durability::Memory => true,
            Durability::Process => self.appended.is_some(),
            _ => self.is_synced,
        }
    }
}

/// Everything that is known. Locked for moments, and never while a thread may be stopped.
#[derive(Debug, Default)]
struct Book {
    told: BTreeMap<String, Told>,
    appended: usize,
    answered: usize,
    /// Marks by the file of the log in which they are, not synced.
    unsynced: BTreeMap<PathBuf, Vec<String>>,
    /// How much of the log there was when it failed.
    failed_at: Option<usize>,
    wrong: Option<String>,
}

impl Book {
    fn see(&mut self, call: &Call<'_>) {
        let is_in_log = |path: &Path| path.parent() == Some(Path::new("/store/wal"));
        // Points are in segments alone: a spare is none yet, and readers go on without `acknowledged`.
        let is_log = |path: &Path| is_in_log(path) && path.extension().is_some_and(|ending| ending == "wal");
        match call {
            // A spare is open already when it becomes a segment, and keeps the name it was opened
            // by.
            Call::Wrote { path, parts } if is_in_log(path) => {
                for mark in parts.iter().flat_map(|part| marks(part)) {
                    let Some(told) = self.told.get_mut(&mark).filter(|told| told.appended.is_none()) else { continue };
                    told.appended = Some(self.appended);
                    self.appended += 1;
                    self.unsynced.entry(path.to_path_buf()).or_default().push(mark);
                }
            }
            Call::Synced { path } => {
                for mark in self.unsynced.remove(*path).unwrap_or_default() {
                    self.told.entry(mark).or_default().is_synced = true;
                }
            }
            Call::Failed { path } if is_log(path) => {
                self.failed_at.get_or_insert(self.appended);
            }
            _ => {}
        }
    }

    /// Notes that a writer is being told, by the thread that tells it.
    fn answer(&mut self, mark: &str) {
        let place = self.answered;
        self.answered += 1;
        let told = self.told.entry(mark.to_owned()).or_default();
        (told.answered, told.was_durable) = (Some(place), Some(told.is_durable()));
    }

    /// Notes what a writer was told.
    fn result(&mut self, mark: &str, result: Result<(), ErrorKind>) {
        let told = self.told.entry(mark.to_owned()).or_default();
        if told.result.replace(result).is_some() {
            self.wrong = Some(format!("{mark} was answered twice"));
        }
    }

    fn expect_durable(&mut self, mark: &str) {
        let Some(told) = self.told.get(mark) else { return };
        if !told.was_durable.unwrap_or_else(|| told.is_durable()) {
            self.wrong.get_or_insert(format!("{mark} was acknowledged too early: {told:?}"));
        }
        if let (Some(failed_at), Some(place)) = (self.failed_at, told.appended)
            && place >= failed_at
        {
            self.wrong.get_or_insert(format!("{mark} was acknowledged after the log had failed: {told:?}"));
        }
    }

    /// Answers come in the order of the log.
    fn check_order(&self) -> Result<(), String> {
        let done = self.told.iter().filter(|(_, told)| told.result == Some(Ok(())));
        let mut answers: Vec<_> =
            done.filter_map(|(mark, told)| Some((told.answered?, told.appended?, mark))).collect();
        answers.sort_unstable();
        match answers.windows(2).find(|pair| pair[0].1 > pair[1].1) {
            Some(pair) => {
                Err(format!("{} was answered before {}, which is before it in the log", pair[0].2, pair[1].2))
            }
            None => Ok(()),
        }
    }
}

/// Returns the marks in some bytes.
fn marks(bytes: &[u8]) -> Vec<String> {
    let at = memchr::memmem::find_iter(bytes, MARK);
    let marks = at.filter_map(|at| bytes.get(at..at + MARK_BYTES));
    marks.map(|mark| String::from_utf8_lossy(mark).into_owned()).collect()
}

/// Notes the moment at which a writer is told.
struct Teller {
    mark: String,
    book: Arc<Mutex<Book>>,
    waker: Waker,
}

impl Wake for Teller {
    fn wake(self: Arc<Self>) {
        self.book.lock().answer(&self.mark);
        self.waker.wake_by_ref();
    }
}

struct Commit {
    book: Arc<Mutex<Book>>,
    levels: Vec<Durability>,
    tables: u64,
    padding: usize,
}

impl Commit {
    fn wait(&self, mark: &str, mut write: PendingWrite) -> Result<Written, Error> {
        block_on(poll_fn(|context: &mut Context<'_>| {
            let waker = context.waker().clone();
            let teller = Teller { mark: mark.to_owned(), book: Arc::clone(&self.book), waker };
            match Pin::new(&mut write).poll(&mut Context::from_waker(&Waker::from(Arc::new(teller)))) {
                Poll::Ready(result) => {
                    if result.is_ok() {
                        self.book.lock().expect_durable(mark);
                    }
                    Poll::Ready(result)
                }
                Poll::Pending => Poll::Pending,
            }
        }))
    }

    fn write(&self, engine: &Engine, number: u64, max_wait: Option<Duration>, draws: &mut Draws) {
        let mark = format!("mark-{number:03}");
        let level = self.levels[usize::try_from(draws.below(self.levels.len() as u64)).unwrap()];
        self.book.lock().told.entry(mark.clone()).or_default().level = level;
        let text = format!("{mark}{}", "-".repeat(self.padding));
        let time = Int64Array::from(vec![i64::try_from(number).unwrap()]);
        let batch = RecordBatch::try_from_iter([
            ("time", Arc::new(time) as Arc<dyn Array>),
            ("mark", Arc::new(StringArray::from(vec![text])) as Arc<dyn Array>),
        ]);
        let table = format!("t{}", draws.below(self.tables));
        let mut options = WriteOptions::new().durability(level);
        options.max_wait = max_wait;
        let queued = engine.submit_batches("d", &table, &[batch.unwrap()], &options);
        let result = queued.and_then(|write| self.wait(&mark, write)).map(drop).map_err(|error| error.kind());
        self.book.lock().result(&mark, result);
    }
}

struct Plan {
    strategy: Strategy,
    weather: Weather,
    options: Options,
    writers: u64,
    writes: u64,
    flushes: u64,
    pause: Duration,
    closes: bool,
}

fn pick<T: Copy>(draws: &mut Draws, choices: &[T]) -> T {
    choices[usize::try_from(draws.below(choices.len() as u64)).unwrap()]
}

fn plan(draws: &mut Draws) -> (Plan, Commit) {
    let mut options = Options::default();
    (options.compaction, options.max_resident_bytes, options.memory_bytes) = (false, 0, 64 << 20);
    options.wal_segment_bytes = 64 << 10;
    options.flush_after = Duration::from_millis(pick(draws, &[1, 1 << 40]));
    options.flush_bytes = pick(draws, &[1_000, 64 << 20]);
    options.max_buffer_bytes = options.flush_bytes.max(pick(draws, &[1_000, 160 << 20]));
    options.write_timeout = Duration::from_millis(pick(draws, &[1, 5_000]));
    let strategy = if draws.one_in(2) {
        Strategy::Priorities { changes: 1 + draws.below(5), within: 200 + draws.below(1_000) }
    } else {
        Strategy::Random { one_in: pick(draws, &[1, 2, 8]) }
    };
    let weather = Weather {
        fails_one_in: pick(draws, &[0, 5, 30]),
        waits_one_in: pick(draws, &[0, 2]),
        longest: Duration::from_micros(pick(draws, &[50, 2_000])),
        is_full: false,
        syncs_fail: draws.one_in(2),
    };
    let levels = pick(draws, &[[Durability::Disk; 3], [Durability::Memory, Durability::Process, Durability::Disk]]);
    let plan = Plan {
        strategy,
        weather,
        options,
        writers: 2 + draws.below(3),
        writes: 1 + draws.below(3),
        flushes: draws.below(3),
        pause: Duration::from_micros(pick(draws, &[20, 500])),
        closes: draws.one_in(3),
    };
    let padding = pick(draws, &[0, 0, 20_000]);
    (plan, Commit { book: Arc::default(), levels: levels.to_vec(), tables: pick(draws, &[1, 2]), padding })
}

/// Runs one seed.
pub(crate) fn run(seed: u64) -> Run {
    let (plan, commit) = plan(&mut Draws::new(seed ^ 0x636f_6d6d_6974));
    let (fs, commit) = (CrashFs::new(), Arc::new(commit));
    let schedule = Schedule { seed, strategy: plan.strategy, most_steps: MOST_STEPS, slow: None };
    let (root, disk) = (Arc::clone(&commit), Disk::new(fs.clone(), seed));
    let outcome = schedule::run(&schedule, move || work(&root, &plan, &disk, seed));
    let failure = outcome.failure.or_else(|| check(&commit, &fs, seed).err());
    Run { hash: outcome.hash, steps: outcome.steps, images: 2, failure }
}

fn work(commit: &Arc<Commit>, plan: &Plan, disk: &Disk, seed: u64) {
    let random = Arc::new(SeededRandom::new(seed));
    let builder = Engine::builder(ROOT).options(plan.options.clone()).vfs(Arc::new(disk.clone())).random(random);
    let engine = builder.clock(Arc::new(crate::core::JumpingClock::new())).open().expect("it opens");
    let book = Arc::clone(&commit.book);
    disk.observe(Some(Box::new(move |call| book.lock().see(call))));
    disk.set(plan.weather);
    let mut threads = Vec::new();
    for writer in 0..plan.writers {
        let (commit, engine, writes) = (Arc::clone(commit), engine.clone(), plan.writes);
        let thread = Builder::new().name(format!("writer {writer}")).spawn(move || {
            let mut draws = Draws::new(seed.wrapping_mul(31).wrapping_add(writer));
            (0..writes).for_each(|n| commit.write(&engine, writer * 10 + n, None, &mut draws));
        });
        threads.push(thread.unwrap());
    }
    for n in 0..plan.flushes {
        sleep(plan.pause);
        flush(commit, &engine, n);
    }
    if plan.closes {
        let _ = engine.close();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    disk.set(Weather::default());
    if !plan.closes && engine.closed_to_writes().is_none() {
        commit.write(&engine, 999, Some(Duration::from_secs(100)), &mut Draws::new(seed));
        assert_eq!(commit.book.lock().told["mark-999"].result, Some(Ok(())), "writes do not go on");
        flush(commit, &engine, 9);
    }
    drop(engine);
    disk.observe(None);
}

/// What was acknowledged before a flush is in files after it, and the log has no more of it.
fn flush(commit: &Commit, engine: &Engine, number: u64) {
    let done = |book: &Book| book.told.values().filter(|told| told.result == Some(Ok(()))).count() as u64;
    let before = done(&commit.book.lock());
    if engine.flush().is_ok() {
        let rows = engine.tables("d").map_or(0, |tables| tables.iter().map(|table| table.file_rows).sum::<u64>());
        assert!(rows >= before, "flush {number}: {before} rows were acknowledged, {rows} are in files");
    }
}

/// Checks what was told, and that what the log and the files have is that.
fn check(commit: &Commit, fs: &CrashFs, seed: u64) -> Result<(), String> {
    let book = commit.book.lock();
    if let Some(wrong) = &book.wrong {
        return Err(wrong.clone());
    }
    book.check_order()?;
    if let Some((mark, _)) = book.told.iter().find(|(_, told)| told.result.is_none()) {
        return Err(format!("{mark} was never answered"));
    }
    let cut = fs.power_cut();
    let power = cut.images(seed, 1).map(|image| (image, Durability::Disk));
    for (image, level) in power.chain([(fs.current(), Durability::Process)]) {
        let found = found(&CrashFs::from_image(&image))?;
        for (mark, told) in &book.told {
            let count = found.get(mark).copied().unwrap_or(0);
            let (least, most) = match told.result {
                Some(Ok(())) => (usize::from(told.level >= level), 1),
                Some(Err(ErrorKind::Unknown)) => (0, 1),
                _ => (0, 0),
            };
            if !(least..=most).contains(&count) {
                let mut wrong = format!("{mark} is there {count} times after a loss of what is below {level}");
                let _ = write!(wrong, ", it should be {least} to {most} times: {told:?}");
                return Err(wrong);
            }
        }
    }
    Ok(())
}

/// Opens a directory and counts the marks in it.
fn found(fs: &CrashFs) -> Result<BTreeMap<String, usize>, String> {
    let mut options = Options::default();
    (options.compaction, options.wal_segment_bytes) = (false, 64 << 10);
    (options.max_resident_bytes, options.memory_bytes) = (0, 64 << 20);
    let engine = Engine::builder(ROOT).options(options).vfs(Arc::new(fs.clone())).open();
    let engine = engine.map_err(|error| format!("it does not open: {error}"))?;
    let mut found = BTreeMap::new();
    for table in engine.tables("d").unwrap_or_default() {
        for batch in rows::batches(&engine, fs, "d", &table.schema.table)? {
            let marks = cast(batch.column_by_name("mark").unwrap(), &DataType::Utf8).unwrap();
            for mark in marks.as_string::<i32>().iter().flatten() {
                *found.entry(mark[..MARK_BYTES].to_owned()).or_insert(0) += 1;
            }
        }
    }
    Ok(found)
}
