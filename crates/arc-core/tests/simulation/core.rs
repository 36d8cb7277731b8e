//! The whole core under one seed: everybody at once, power cuts on the way, then a phase without
//! faults in which everything has to come to its end.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use arc_core::{
    Comparison, Durability, Engine, Error, ErrorKind, Literal, Options, Predicate, WriteOptions,
    clock::Clock,
    random::RandomSource,
    sync::{
        schedule::{self, Draws, Outcome, Schedule},
        thread::{Builder, JoinHandle, sleep},
    },
    vfs::{CrashFs, Image, PowerCut},
};
use parking_lot::Mutex;

use crate::{
    disk::{Call, Disk, Weather},
    model::{DAY_NS, End, FIRST_NS, History, Id, Look, What, time_of},
    rows::{self, KINDS, other_field},
    swarm::{Ends, Swarm, Work},
};

const ROOT: &str = "/store";
const MOST_STEPS: u64 = 3_000_000;
/// The name of a writer that takes long while it decodes, how long, and what others may take
/// meanwhile.
const SLOW: (&str, Duration) = ("slow", Duration::from_secs(1));
const NOT_SLOW: Duration = Duration::from_millis(500);
/// Most power cuts of one life.
const MOST_CUTS: usize = 3;

/// The wall clock: that of the schedule, and it jumps.
#[derive(Debug, Clone)]
pub(crate) struct JumpingClock(Arc<AtomicI64>);

impl JumpingClock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(FIRST_NS)))
    }
}

impl Clock for JumpingClock {
    fn now_ns(&self) -> i64 {
        let since = i64::try_from(schedule::now().as_nanos()).unwrap_or(i64::MAX);
        self.0.load(Ordering::Relaxed).saturating_add(since)
    }
}

pub(crate) struct SeededRandom(Mutex<Draws>);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(Draws::new(seed ^ 0x72_616e_646f)))
    }
}

impl fmt::Debug for SeededRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeededRandom")
    }
}

impl RandomSource for SeededRandom {
    fn next(&self) -> u64 {
        self.0.lock().next()
    }
}

/// A disk at some moment, and what it may hold.
struct Cut {
    state: CutState,
    history: History,
    look: Look,
    seed: u64,
}

enum CutState {
    Power(PowerCut),
    /// What `kill -9` leaves, or a whole directory of another place.
    Now(Image, &'static str),
}

/// One life of a directory: from an opening to the end of an engine.
struct Life {
    swarm: Swarm,
    disk: Disk,
    history: History,
    clock: JumpingClock,
    random: Arc<SeededRandom>,
    cuts: Mutex<Vec<Cut>>,
    seed: u64,
}

/// What one seed came to.
pub(crate) struct Run {
    pub(crate) hash: u64,
    pub(crate) steps: u64,
    pub(crate) images: u64,
    pub(crate) failure: Option<String>,
}

/// Runs one seed.
pub(crate) fn run(seed: u64) -> Run {
    let swarm = Swarm::draw(seed);
    let mut run = Run { hash: seed, steps: 0, images: 0, failure: None };
    let (clock, random) = (JumpingClock::new(), Arc::new(SeededRandom::new(seed)));
    let history = History::default();
    let mut fs = CrashFs::new();
    for life in 0..swarm.lives {
        let seed = seed.wrapping_mul(8).wrapping_add(life);
        let disk = Disk::new(fs.clone(), seed);
        let (clock, random) = (clock.clone(), Arc::clone(&random));
        let cuts = Mutex::default();
        let history = history.clone();
        let life = Arc::new(Life { swarm: swarm.clone(), disk, history, clock, random, cuts, seed });
        let Outcome { steps, hash, failure, .. } = life.clone().live();
        (run.steps, run.hash) = (run.steps + steps, run.hash.rotate_left(7) ^ hash);
        let check = || -> Result<(), String> {
            if let Some(failure) = failure {
                return Err(failure);
            }
            // A thread may be about to let go of its part of this.
            let cuts = std::mem::take(&mut *life.cuts.lock());
            run.images += life.check_cuts(&cuts)?;
            Ok(())
        };
        if let Err(failure) = check() {
            run.failure = Some(failure);
            return run;
        }
        fs = CrashFs::from_image(&fs.current());
    }
    run
}

impl Life {
    fn live(self: Arc<Self>) -> Outcome {
        let slow = self.swarm.has_slow.then_some(SLOW);
        let schedule = Schedule { seed: self.seed, strategy: self.swarm.strategy, most_steps: MOST_STEPS, slow };
        schedule::run(&schedule, move || self.all())
    }

    fn engine(&self, options: Options, disk: &Disk) -> Result<Engine, Error> {
        let builder = Engine::builder(ROOT).options(options).vfs(Arc::new(disk.clone()));
        builder.clock(Arc::new(self.clock.clone())).random(self.random.clone()).open()
    }

    /// The first thread of the schedule.
    fn all(self: Arc<Self>) {
        let engine = self.engine(self.swarm.options.clone(), &self.disk).expect("it opens");
        let life = Arc::clone(&self);
        self.disk.observe(Some(Box::new(move |call| life.maybe_cut(*call))));
        self.disk.set(self.swarm.weather);
        let mut threads = Vec::new();
        for writer in 0..self.swarm.writers {
            let is_slow = writer == 0 && self.swarm.has_slow;
            let name = if is_slow { SLOW.0.to_owned() } else { format!("writer {writer}") };
            threads.push(self.start(name, &engine, move |life, engine, draws| {
                life.write_all(engine, writer, draws);
            }));
        }
        for work in self.swarm.works.clone() {
            threads.push(self.start(format!("{work:?}"), &engine, move |life, engine, draws| {
                life.work_all(engine, work, draws);
            }));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let closed = (self.swarm.ends == Ends::ClosedInFaults).then(|| engine.close());
        self.disk.set(Weather::default());
        self.disk.observe(None);
        if let Some(closed) = closed {
            self.after_close(engine, closed);
        } else {
            self.drain(&engine);
            self.check(&engine, "at the end");
            if self.swarm.ends == Ends::Closed {
                let has_failed = engine.closed_to_writes().is_some();
                let closed = engine.close();
                assert!(has_failed || closed.is_ok(), "it does not close: {closed:?}");
                assert_eq!(engine.flush().expect_err("it is closed").kind(), ErrorKind::Closed);
            }
            drop(engine);
        }
        self.reopen();
    }

    fn start(
        self: &Arc<Self>,
        name: String,
        engine: &Engine,
        work: impl FnOnce(&Self, &Engine, &mut Draws) + Send + 'static,
    ) -> JoinHandle<()> {
        let (life, engine) = (Arc::clone(self), engine.clone());
        let seed = name.bytes().fold(self.seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Builder::new().name(name).spawn(move || work(&life, &engine, &mut Draws::new(seed))).unwrap()
    }

    fn pause(&self, draws: &mut Draws) {
        let longest_us = u64::try_from(self.swarm.pause.as_micros()).unwrap();
        sleep(Duration::from_micros(draws.below(longest_us)));
    }

    fn database(&self, draws: &mut Draws) -> String {
        format!("d{}", draws.below(self.swarm.databases))
    }

    fn table(&self, draws: &mut Draws) -> String {
        format!("t{}", draws.below(self.swarm.tables))
    }

    fn write_all(&self, engine: &Engine, writer: u64, draws: &mut Draws) {
        for _ in 0..self.swarm.writes {
            let (mut database, table) = (self.database(draws), self.table(draws));
            if self.swarm.has_slow {
                // One that no thread drops, and the slow one never writes to.
                database = if writer == 0 { "d0".to_owned() } else { "d9".to_owned() };
            }
            let mut slots: Vec<u64> = (0..=draws.below(3)).map(|_| draws.below(self.swarm.slots)).collect();
            slots.sort_unstable();
            slots.dedup();
            let levels = &self.swarm.levels;
            let level = levels[usize::try_from(draws.below(levels.len() as u64)).unwrap()];
            let began = schedule::now();
            let options = WriteOptions::new().durability(level);
            self.write(engine, (&database, &table, writer), &slots, options, draws);
            let took = schedule::now().saturating_sub(began);
            if self.swarm.has_slow && writer != 0 {
                assert!(took < NOT_SLOW, "a write waits for a request to another database that is decoded: {took:?}");
            }
            if draws.one_in(3) {
                self.pause(draws);
            }
        }
    }

    fn write(
        &self,
        engine: &Engine,
        (database, table, writer): (&str, &str, u64),
        slots: &[u64],
        options: WriteOptions,
        draws: &mut Draws,
    ) {
        let point = |slot: &u64| Id { database: database.into(), table: table.into(), writer, slot: *slot };
        let kind = if self.swarm.widens { draws.below(KINDS.len() as u64) } else { 0 };
        let value = i64::try_from(self.history.now() * KINDS.len() as u64 + kind).unwrap();
        let what = What::Put { points: slots.iter().map(point).collect(), value };
        let (field, y, _) = other_field(value);
        let line = |slot: &u64| format!("{table},w={writer},k={slot} n={value}i,{field}={y} {}\n", time_of(*slot));
        let mut body: String = slots.iter().map(line).collect();
        if draws.one_in(3) {
            // So large for its rows that these are logged in columns.
            body = format!("# {}\n{body}", "x".repeat(4 << 10));
        }
        let asked = self.history.begin(what, options.durability.unwrap_or_default());
        let answer = engine.submit_lp(database, body.into(), &options).and_then(arc_core::PendingWrite::wait);
        let end = match answer {
            Ok(written) => {
                assert_eq!((written.points, written.rejected_points), (slots.len() as u64, 0));
                End::Done
            }
            Err(error) => ended(&error),
        };
        self.history.end(asked, end);
    }

    fn work_all(&self, engine: &Engine, work: Work, draws: &mut Draws) {
        for round in 0..self.swarm.rounds {
            self.pause(draws);
            self.work(engine, work, round, draws);
        }
    }

    fn work(&self, engine: &Engine, work: Work, round: u64, draws: &mut Draws) {
        match work {
            Work::Flush => allowed(engine.flush()),
            Work::Merge => allowed(engine.compact()),
            Work::Unpack => allowed(engine.unpack()),
            Work::Verify => self.verify(engine),
            Work::Read => self.read(engine),
            Work::Backup => self.back_up(engine, round),
            Work::DropTable => {
                let (database, table) = (self.database(draws), self.table(draws));
                self.drop(engine, &database, Some(&table));
            }
            Work::DropDatabase => {
                let database = self.database(draws);
                self.drop(engine, &database, None);
            }
            Work::Delete => self.delete(engine, draws),
            Work::Retention => {
                let database = self.database(draws);
                let days = draws.below(4);
                self.expire(days);
                let retention = (days > 0).then(|| Duration::from_secs(days * 86_400));
                allowed(engine.set_retention(&database, None, retention));
            }
            Work::Clock => {
                self.expire(0);
                let by_ns = [1_000_000_000, -1_000_000_000, DAY_NS, -DAY_NS, 3_600_000_000_000];
                let by_ns = by_ns[usize::try_from(draws.below(5)).unwrap()];
                self.clock.0.fetch_add(by_ns, Ordering::Relaxed);
            }
            Work::Full => {
                self.disk.set(Weather { is_full: true, ..self.swarm.weather });
                self.pause(draws);
                self.disk.set(self.swarm.weather);
            }
        }
    }

    /// Notes that old points may go, from now on.
    fn expire(&self, days: u64) {
        if days > 0 || self.swarm.works.contains(&Work::Retention) {
            let asked = self.history.begin(What::Expire, Durability::Disk);
            self.history.end(asked, End::Unknown);
        }
    }

    fn drop(&self, engine: &Engine, database: &str, table: Option<&str>) {
        let what = What::Drop { database: database.to_owned(), table: table.map(str::to_owned) };
        let asked = self.history.begin(what, Durability::Disk);
        let dropped = match table {
            Some(table) => engine.drop_table(database, table),
            None => engine.drop_database(database),
        };
        let end = match dropped {
            Ok(()) => End::Done,
            Err(error) if error.kind() == ErrorKind::NotFound => End::Refused,
            Err(error) => {
                ended(&error);
                End::Unknown
            }
        };
        self.history.end(asked, end);
    }

    fn delete(&self, engine: &Engine, draws: &mut Draws) {
        let (database, table) = (self.database(draws), self.table(draws));
        let writer = draws.one_in(2).then(|| draws.below(self.swarm.writers));
        let (one, other) = (time_of(draws.below(self.swarm.slots)), time_of(draws.below(self.swarm.slots)));
        let times = one.min(other)..one.max(other) + 1;
        let time = |comparison, time| Predicate::compare("time", comparison, Literal::Time(time));
        let mut all = vec![time(Comparison::GreaterOrEqual, times.start), time(Comparison::Less, times.end)];
        all.extend(writer.map(|w| Predicate::compare("w", Comparison::Equal, w.to_string().as_str())));
        let what = What::Delete { database: database.clone(), table: table.clone(), writer, times };
        let asked = self.history.begin(what, self.swarm.options.durability);
        let end = match engine.delete(&database, &table, &Predicate::And(all)) {
            Ok(_) => End::Done,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => End::Refused,
            Err(error) => ended(&error),
        };
        self.history.end(asked, end);
    }

    fn read(&self, engine: &Engine) {
        let from = self.history.now();
        let found = rows::of(engine, self.disk.fs()).unwrap();
        let look = Look { from, to: self.history.now(), level: Durability::Memory, is_moment: false };
        if let Err(wrong) = self.history.check(&found, look) {
            panic!("while others work: {wrong}");
        }
    }

    fn verify(&self, engine: &Engine) {
        match engine.verify() {
            Ok(report) => assert!(report.is_clean() || self.swarm.weather.fails_one_in > 0, "{report}"),
            Err(error) => drop(ended(&error)),
        }
    }

    fn back_up(&self, engine: &Engine, round: u64) {
        let target = format!("/backup{round}");
        let from = self.history.now();
        match engine.backup(&target) {
            Ok(_) => {
                let image = self.disk.fs().current();
                let look = Look { from, to: self.history.now(), level: Durability::Memory, is_moment: true };
                let name = ["/backup0", "/backup1", "/backup2", "/backup3"][usize::try_from(round).unwrap()];
                let (history, seed) = (self.history.frozen(), self.seed);
                self.cuts.lock().push(Cut { state: CutState::Now(image, name), history, look, seed });
            }
            Err(error) => drop(ended(&error)),
        }
    }

    /// Cuts the power after some calls.
    fn maybe_cut(&self, _call: Call<'_>) {
        let one_in = usize::try_from(self.swarm.cuts_one_in).unwrap();
        if self.cuts.lock().len() >= MOST_CUTS || schedule::draw(one_in) > 0 {
            return;
        }
        let now = self.history.now();
        let history = self.history.frozen();
        let (level, state) = match schedule::draw(3) {
            0 => (Durability::Process, CutState::Now(self.disk.fs().current(), ROOT)),
            _ => (Durability::Disk, CutState::Power(self.disk.fs().power_cut())),
        };
        let look = Look { from: now, to: now, level, is_moment: true };
        self.cuts.lock().push(Cut { state, history, look, seed: self.seed ^ now });
    }

    /// Once there are no faults everything goes on by itself and comes to an end.
    fn drain(&self, engine: &Engine) {
        if engine.closed_to_writes().is_some() {
            return;
        }
        self.write_last(engine);
        // Long enough for all that is tried again after a while.
        sleep(self.swarm.options.flush_after + Duration::from_secs(200));
        if engine.closed_to_writes().is_some() {
            // A call that was under way when the faults ended has failed.
            return;
        }
        let stats = engine.stats();
        assert_eq!(
            (stats.buffered_rows, stats.queued_writes),
            (0, 0),
            "nothing flushes by itself, asked to it says {:?}",
            engine.flush()
        );
        let report = engine.compact().expect("it merges");
        schedule::note(report.files_in);
        engine.unpack().expect("it unpacks");
        let packed = |database: &str, table: &str| {
            let files = engine.data_files(database, table).expect("its files are known");
            files.iter().filter(|file| file.packed().is_some()).count()
        };
        for database in engine.databases() {
            for table in engine.tables(&database.name).expect("it has tables") {
                assert_eq!(packed(&database.name, &table.schema.table), 0, "it is not unpacked");
            }
        }
        let report = engine.verify().expect("it verifies");
        assert!(report.is_clean(), "{report}");
    }

    fn write_last(&self, engine: &Engine) {
        let mut draws = Draws::new(self.seed);
        let options = WriteOptions::new().durability(Durability::Disk).max_wait(Duration::from_secs(100));
        for writer in 0..self.swarm.writers {
            self.write(engine, ("d0", "t0", writer), &[0], options.clone(), &mut draws);
        }
        if self.swarm.works.contains(&Work::Retention) {
            // They may be past it already.
            return;
        }
        let found = rows::of(engine, self.disk.fs()).unwrap();
        for writer in 0..self.swarm.writers {
            let id = Id { database: "d0".into(), table: "t0".into(), writer, slot: 0 };
            assert!(found.contains_key(&id), "no write goes on: {:?}", engine.closed_to_writes());
        }
    }

    fn check(&self, engine: &Engine, when: &str) {
        let found = rows::of(engine, self.disk.fs()).unwrap();
        let now = self.history.now();
        let look = Look { from: now, to: now, level: Durability::Memory, is_moment: true };
        if let Err(wrong) = self.history.check(&found, look) {
            panic!("{when}: {wrong}");
        }
    }

    /// A close that has failed leaves nothing that could still write, whoever opens the directory
    /// next.
    fn after_close(self: &Arc<Self>, old: Engine, closed: Result<(), Error>) {
        if let Err(error) = &closed {
            ended(error);
        }
        let other = self.engine(self.swarm.options.clone(), &self.disk).expect("the directory is free");
        let asked = self.start("old".to_owned(), &old, |_, old, _| {
            let flushed = old.flush();
            assert!(flushed.is_err_and(|error| error.kind() == ErrorKind::Closed), "it flushes after it was closed");
            assert!(old.compact().is_err_and(|error| error.kind() == ErrorKind::Closed), "it merges after that");
        });
        self.write_last(&other);
        asked.join().unwrap();
        other.flush().expect("it flushes");
        self.drain(&other);
        other.close().expect("it closes");
    }

    /// What was stored is there when it is opened again, but for what was promised nothing.
    fn reopen(&self) {
        let engine = self.engine(self.swarm.options.clone(), &self.disk).expect("it opens again");
        self.history.restart();
        let found = rows::of(&engine, self.disk.fs()).unwrap();
        let now = self.history.now();
        let look = Look { from: now, to: now, level: Durability::Process, is_moment: true };
        if let Err(wrong) = self.history.check(&found, look) {
            panic!("opened again: {wrong}");
        }
        self.write_last(&engine);
        self.drain(&engine);
        engine.close().expect("it closes");
    }

    /// Opens what the cuts left; returns how many states that were.
    fn check_cuts(&self, cuts: &[Cut]) -> Result<u64, String> {
        let mut count = 0;
        for cut in cuts {
            let images: Vec<(Image, &str)> = match &cut.state {
                CutState::Power(power) => {
                    // Always the worst one, and two of the others.
                    let others = usize::try_from(cut.seed % 4).unwrap();
                    let images = power.images(cut.seed, 12).enumerate();
                    let some = images.filter(|(n, _)| *n == 0 || n % 4 == others).take(3);
                    some.map(|(_, image)| (image, ROOT)).collect()
                }
                CutState::Now(image, root) => vec![(image.clone(), *root)],
            };
            for (image, root) in images {
                count += 1;
                self.check_image(&image, root, cut).map_err(|wrong| {
                    let what = if let CutState::Power(_) = cut.state { "power cut" } else { "killed or backed up" };
                    format!("{what} at {} of {root}: {wrong}", cut.look.to)
                })?;
            }
        }
        Ok(count)
    }

    fn check_image(&self, image: &Image, root: &str, cut: &Cut) -> Result<(), String> {
        let fs = CrashFs::from_image(image);
        let mut options = self.swarm.options.clone();
        (options.compaction, options.flush_after) = (false, Duration::from_secs(1 << 30));
        let builder = Engine::builder(Path::new(root)).options(options).vfs(Arc::new(fs.clone()));
        let engine = builder.open().map_err(|error| format!("it does not open: {error}"))?;
        let found = rows::of(&engine, &fs)?;
        cut.history.check(&found, cut.look)?;
        let report = engine.verify().map_err(|error| error.to_string())?;
        if report.is_clean() { Ok(()) } else { Err(report.to_string()) }
    }
}

/// What a write that failed has come to. Whatever the disk does, nothing is told of a bug or of
/// damage.
fn ended(error: &Error) -> End {
    match error.kind() {
        ErrorKind::Unknown => End::Unknown,
        ErrorKind::Busy | ErrorKind::Closed | ErrorKind::StorageFull | ErrorKind::Io => End::Refused,
        // What Arrow's reader makes of a read that fails: no more than its text is left.
        ErrorKind::Internal if error.to_string() == "arrow failed" => End::Refused,
        _ => panic!("{error}: {:?}", std::error::Error::source(error)),
    }
}

fn allowed<T>(result: Result<T, Error>) {
    match result {
        Err(error) if error.kind() != ErrorKind::NotFound => drop(ended(&error)),
        _ => {}
    }
}
