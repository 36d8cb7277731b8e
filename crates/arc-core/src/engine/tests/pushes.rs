//! Rows that one directory hands to another are there once, whatever ends a push, and whatever is
//! done to their files meanwhile.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
    time::Duration,
};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampNanosecondArray};
use bytes::Bytes;
use proptest::{collection::vec, prelude::*};

use super::{contents::contents, quiet_in};
use crate::{
    AdoptOutcome, Comparison, CutName, Durability, Engine, Error, Literal, Options, Predicate, PushOptions, PushTarget,
    Result, Upload, WriteOptions,
    vfs::{CrashFs, Image, cases, stride},
};

const DAY: i64 = 86_400_000_000_000;

/// A directory in memory.
struct Site {
    fs: CrashFs,
    engine: Engine,
}

impl Site {
    fn new() -> Self {
        Self::of(CrashFs::new())
    }

    fn of(fs: CrashFs) -> Self {
        let engine = quiet_in(&fs).open().unwrap();
        Self { fs, engine }
    }

    fn killed(&self) -> Self {
        Self::of(CrashFs::from_image(&self.fs.current()))
    }

    fn lines(&self, lines: &str, durability: Durability) {
        let options = WriteOptions::new().durability(durability);
        let written = self.engine.submit_lp("d", lines.to_owned().into(), &options).unwrap().wait().unwrap();
        assert_eq!(written.rejected_points, 0, "{:?}", written.rejected);
    }

    fn append(&self, value: i64) {
        let columns: [(&str, ArrayRef); 2] = [
            ("time", Arc::new(TimestampNanosecondArray::from(vec![value % 5 * DAY / 3]))),
            ("x", Arc::new(Int64Array::from(vec![value]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        assert_eq!(self.engine.write_batch("d", "log", &batch).unwrap().points, 1);
    }
}

/// An engine at the end of a connection that breaks.
struct Shaky<'a> {
    centre: &'a Engine,
    /// Calls that pass.
    calls: Cell<usize>,
    /// Whether the call that breaks is carried out.
    arrives: bool,
    then: &'a dyn Fn(),
}

impl Shaky<'_> {
    fn call<T>(&self, call: impl Fn() -> Result<T>) -> Result<T> {
        if self.calls.get() > 0 {
            self.calls.set(self.calls.get() - 1);
            return call();
        }
        if self.arrives {
            let _ = call();
        }
        (self.then)();
        Err(Error::io("send to", "the centre", std::io::ErrorKind::BrokenPipe.into()))
    }
}

impl PushTarget for Shaky<'_> {
    fn adopted(&self, origin: &str) -> Result<Option<CutName>> {
        self.call(|| self.centre.adopted_cut(origin))
    }

    fn received(&self, upload: &Upload) -> Result<u64> {
        self.call(|| self.centre.received(upload))
    }

    fn send(&self, upload: &Upload, offset: u64, bytes: &Bytes) -> Result<u64> {
        self.call(|| self.centre.receive(upload, offset, bytes))
    }

    fn adopt(&self, adoption: &Bytes) -> Result<AdoptOutcome> {
        self.call(|| self.centre.adopt(adoption, &|_, _| true))
    }
}

fn options() -> PushOptions {
    PushOptions { piece_bytes: 700, ..PushOptions::default() }
}

fn push(edge: &Engine, centre: &Engine) -> Result<crate::PushReport> {
    edge.push(centre, &options(), &mut |_| {})
}

#[derive(Debug, Clone)]
enum Step {
    /// Points of a primary-key table: series, time.
    Points(u8, u8, bool),
    Append,
    Flush,
    Compact,
    /// Breaks after so many calls.
    Push(usize, bool),
    KillEdge,
    KillCentre,
    /// Kills both in the middle of a push.
    KillBoth(usize, bool),
    CentrePoints(u8, u8),
    CentreCompact,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_u8, any::<u8>(), any::<bool>()).prop_map(|(series, time, logged)| Step::Points(series, time, logged)),
        3 => Just(Step::Append),
        2 => Just(Step::Flush),
        2 => Just(Step::Compact),
        4 => (0..30_usize, any::<bool>()).prop_map(|(calls, arrives)| Step::Push(calls, arrives)),
        1 => Just(Step::KillEdge),
        1 => Just(Step::KillCentre),
        2 => (0..20_usize, any::<bool>()).prop_map(|(calls, arrives)| Step::KillBoth(calls, arrives)),
        1 => (0..3_u8, any::<u8>()).prop_map(|(series, time)| Step::CentrePoints(series, time)),
        1 => Just(Step::CentreCompact),
    ]
}

/// Two directories, and one that is written to as both are.
struct World {
    edge: Site,
    centre: Site,
    all: Site,
    value: i64,
}

impl World {
    fn new() -> Self {
        let world = Self { edge: Site::new(), centre: Site::new(), all: Site::new(), value: 0 };
        // Columns in one order.
        for site in [&world.edge, &world.all] {
            site.lines("m,h=first x=0i 1", Durability::Disk);
            site.append(-1);
        }
        world
    }

    fn next(&mut self) -> i64 {
        self.value += 1;
        self.value
    }

    fn point(&mut self, at: &str, series: u8, time: u8) -> String {
        let time = i64::from(time % 9) * DAY / 4;
        format!("m,h={at}{series} x={}i {time}", self.next())
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Points(series, time, logged) => {
                let line = self.point("e", series, time);
                let durability = if logged { Durability::Disk } else { Durability::Memory };
                self.edge.lines(&line, durability);
                self.all.lines(&line, Durability::Disk);
            }
            Step::Append => {
                let value = self.next();
                self.edge.append(value);
                self.all.append(value);
            }
            Step::Flush => drop(self.edge.engine.flush().unwrap()),
            Step::Compact => drop(self.edge.engine.compact().unwrap()),
            Step::Push(calls, arrives) => {
                let calls = Cell::new(calls);
                let target = Shaky { centre: &self.centre.engine, calls, arrives, then: &|| {} };
                let _ = self.edge.engine.push(&target, &options(), &mut |_| {});
            }
            Step::KillEdge => {
                // What is in memory alone would be gone.
                self.edge.engine.flush().unwrap();
                self.edge = self.edge.killed();
            }
            Step::KillCentre => self.centre = self.centre.killed(),
            Step::KillBoth(calls, arrives) => self.kill_both(calls, arrives),
            Step::CentrePoints(series, time) => {
                let line = self.point("c", series, time);
                self.centre.lines(&line, Durability::Disk);
                self.all.lines(&line, Durability::Disk);
            }
            Step::CentreCompact => drop(self.centre.engine.compact().unwrap()),
        }
    }

    fn kill_both(&mut self, calls: usize, arrives: bool) {
        let images: RefCell<Option<(Image, Image)>> = RefCell::default();
        self.edge.engine.flush().unwrap();
        let then = || *images.borrow_mut() = Some((self.edge.fs.current(), self.centre.fs.current()));
        let target = Shaky { centre: &self.centre.engine, calls: Cell::new(calls), arrives, then: &then };
        let _ = self.edge.engine.push(&target, &options(), &mut |_| {});
        let Some((edge, centre)) = images.into_inner() else { return };
        self.edge = Site::of(CrashFs::from_image(&edge));
        self.centre = Site::of(CrashFs::from_image(&centre));
    }

    fn check(&self) {
        push(&self.edge.engine, &self.centre.engine).unwrap();
        // The last one may have gone on with a cut that was under way.
        assert_eq!(push(&self.edge.engine, &self.centre.engine).unwrap().cuts, 0);
        assert_eq!(contents(&self.centre.engine), contents(&self.all.engine));
        self.centre.engine.compact().unwrap();
        assert_eq!(contents(&self.centre.engine), contents(&self.all.engine), "merged");
        assert_eq!(contents(&self.centre.killed().engine), contents(&self.all.engine), "opened again");
        let Site { fs, engine } = &self.centre;
        engine.close().unwrap();
        let report = crate::maintenance::verify::verify_on(fs, engine.path()).unwrap();
        assert!(report.is_clean(), "{report}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), ..ProptestConfig::default() })]
    #[test]
    fn each_row_arrives_once_whatever_happens(steps in vec(step(), 1..40)) {
        let mut world = World::new();
        steps.iter().for_each(|step| world.apply(step));
        world.check();
    }
}

#[test]
fn files_that_were_handed_over_are_not_merged_with_others() {
    let (edge, centre) = (Site::new(), Site::new());
    for round in 0..9_i64 {
        for file in 0..10_i64 {
            edge.lines(&format!("m,h=a x={file}i {}", round * 10 + file), Durability::Memory);
            edge.append(round * 10 + file);
            edge.engine.flush().unwrap();
            edge.engine.compact().unwrap();
        }
        push(&edge.engine, &centre.engine).unwrap();
        edge.engine.compact().unwrap();
        centre.engine.compact().unwrap();
    }
    assert_eq!(contents(&centre.engine), contents(&edge.engine));
    // All of them are on one side by now.
    assert!(edge.engine.data_files("d", "log").unwrap().len() < 20, "{:?}", edge.engine.data_files("d", "log"));
}

#[test]
fn retention_that_waits_for_pushes_drops_no_row_that_was_not_handed_over() {
    let waiting = |fs: CrashFs| {
        let mut options = Options::default();
        (options.flush_after, options.compaction) = (Duration::from_secs(1 << 30), false);
        options.retention_waits_for_push = true;
        let engine = Engine::builder("/data").options(options).vfs(Arc::new(fs.clone())).open().unwrap();
        Site { fs, engine }
    };
    let (edge, one, two) = (waiting(CrashFs::new()), Site::new(), Site::new());
    let files = |site: &Site| site.engine.tables("d").unwrap().iter().map(|table| table.files).sum::<usize>();
    // All rows are of 1970, and past it; so many files that they would be merged without their rows.
    edge.lines("m,h=a x=0i 1", Durability::Disk);
    edge.engine.set_retention("d", None, Some(Duration::from_secs(1))).unwrap();
    let compacted = |site: &Site| {
        site.engine.compact().unwrap();
        site.engine.compact().unwrap();
    };
    for file in 1..=20_i64 {
        edge.lines(&format!("m,h=a x={file}i {file}"), Durability::Disk);
        edge.engine.flush().unwrap();
    }
    compacted(&edge);
    let all = contents(&edge.engine);
    push(&edge.engine, &one.engine).unwrap();
    assert_eq!(contents(&one.engine), all, "nothing was past its retention before it was handed over");
    compacted(&edge);
    assert_eq!(files(&edge), 0, "and all of it after");
    // Rows that one of two has.
    edge.lines("m,h=a x=7i 77", Durability::Disk);
    let edge = waiting(CrashFs::from_image(&edge.fs.current()));
    push(&edge.engine, &two.engine).unwrap();
    compacted(&edge);
    assert_eq!(files(&edge), 1);
    push(&edge.engine, &one.engine).unwrap();
    compacted(&edge);
    assert_eq!(files(&edge), 0);
    assert_eq!(contents(&one.engine).len(), all.len() + 1, "and the row of between");
}

#[test]
fn a_power_cut_at_any_step_of_either_side_loses_and_doubles_nothing() {
    let (edge, centre) = (Site::new(), Site::new());
    for site in [&edge, &centre] {
        site.lines("m,h=a x=1i 1", Durability::Disk);
        site.append(7);
    }
    push(&edge.engine, &centre.engine).unwrap();
    edge.lines("m,h=a y=2i 2\nm,h=b x=3i 1", Durability::Disk);
    edge.append(8);
    centre.lines("m,h=a y=9i,x=9i 2", Durability::Disk);
    let centre_before = centre.fs.current();
    let (edge_from, centre_from) = (edge.fs.operations(), centre.fs.operations());
    // While the files are sent.
    let mut sending = None;
    let mut progress = |_: &crate::PushProgress| sending = Some((edge.fs.current(), edge.fs.operations()));
    edge.engine.push(&centre.engine, &options(), &mut progress).unwrap();
    let (edge_sending, edge_cut) = sending.unwrap();
    let expected = contents(&centre.engine);
    // What was adopted came later than what was there.
    assert!(
        expected.iter().any(|line| line.contains("9") && line.contains("2") && line.contains("\"x\"")),
        "{expected:#?}"
    );
    let finish = |edge: &Site, centre: &Site, what: &str| {
        push(&edge.engine, &centre.engine).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(contents(&centre.engine), expected, "{what}");
    };
    for (step, cut) in centre.fs.power_cuts().enumerate().skip(centre_from).step_by(stride(12)) {
        for image in cut.images(step as u64, 2) {
            let (edge, centre) = (CrashFs::from_image(&edge_sending), CrashFs::from_image(&image));
            finish(&Site::of(edge), &Site::of(centre), &format!("centre, step {step}"));
        }
    }
    let (edge_after, centre_after) = (edge.fs.current(), centre.fs.current());
    for (step, cut) in edge.fs.power_cuts().enumerate().skip(edge_from).step_by(stride(12)) {
        let there = if step <= edge_cut { &centre_before } else { &centre_after };
        for image in cut.images(step as u64, 2) {
            let (edge, centre) = (CrashFs::from_image(&image), CrashFs::from_image(there));
            finish(&Site::of(edge), &Site::of(centre), &format!("edge, step {step}"));
        }
    }
    finish(&Site::of(CrashFs::from_image(&edge_after)), &Site::of(CrashFs::from_image(&centre_after)), "both after");
}

#[test]
fn a_copy_of_a_directory_is_noticed() {
    let (edge, centre) = (Site::new(), Site::new());
    edge.append(1);
    let unsent = edge.killed();
    push(&edge.engine, &centre.engine).unwrap();
    let backup = edge.killed();
    edge.append(2);
    push(&edge.engine, &centre.engine).unwrap();
    let there = contents(&centre.engine);
    // Each has something of its own, under numbers that the other one used.
    for copy in [unsent, backup] {
        copy.append(3);
        for _ in 0..2 {
            assert!(matches!(push(&copy.engine, &centre.engine), Err(Error::Diverged { .. })));
        }
        assert_eq!(contents(&centre.engine), there);
        assert!(contents(&copy.engine).iter().any(|line| line.contains('3')));
    }
    // A backup of what nothing was sent of since goes on, and the other one is the copy then.
    let copy = edge.killed();
    copy.append(4);
    push(&copy.engine, &centre.engine).unwrap();
    edge.append(5);
    assert!(matches!(push(&edge.engine, &centre.engine), Err(Error::Diverged { .. })));
    // The directory itself, and one that has its rows because it is a copy.
    for (from, to) in [(&edge, &edge), (&edge, &copy), (&copy, &edge)] {
        let before = contents(&to.engine);
        assert!(matches!(push(&from.engine, &to.engine), Err(Error::Diverged { .. })));
        assert_eq!(contents(&to.engine), before);
    }
    // A centre that was restored has forgotten what it had.
    let old = Site::new();
    edge.append(6);
    assert_eq!(push(&edge.engine, &old.engine).unwrap().rows, 4, "it has nothing, and gets all");
}

#[test]
fn deletes_drops_and_restores_on_the_edge() {
    let (edge, centre) = (Site::new(), Site::new());
    let x = |value: i64| Predicate::compare("x", Comparison::Equal, Literal::Integer(value));
    (1..=3).for_each(|value| edge.append(value));
    edge.engine.flush().unwrap();
    // Not sent: it is gone by then. Its file has others.
    edge.engine.delete("d", "log", &x(2)).unwrap();
    edge.engine.create_snapshot("before").unwrap();
    push(&edge.engine, &centre.engine).unwrap();
    let rows = |site: &Site| site.engine.data_files("d", "log").unwrap().iter().map(|file| file.rows).sum::<u64>();
    assert_eq!(rows(&centre), 2);
    // Sent already: it stays there.
    edge.engine.delete("d", "log", &x(1)).unwrap();
    push(&edge.engine, &centre.engine).unwrap();
    assert_eq!(rows(&centre), 2);
    // Rows would come back of which nobody knows whether they were sent.
    edge.engine.drop_table("d", "log").unwrap();
    let restored = edge.engine.restore_table("d", "log", &crate::PastMoment::Snapshot("before".into()));
    assert!(restored.unwrap_err().to_string().contains("push"));
    edge.append(4);
    push(&edge.engine, &centre.engine).unwrap();
    assert_eq!(rows(&centre), 3);
}

#[test]
fn schemas_grow_and_conflicts_are_named_and_change_nothing() {
    let (edge, centre) = (Site::new(), Site::new());
    edge.lines("m,h=a x=1i 1", Durability::Disk);
    centre.lines("m,h=b x=0.5,own=t 1\nn v=1 1", Durability::Disk);
    push(&edge.engine, &centre.engine).unwrap();
    edge.lines("m,h=a,rack=r new=\"s\" 2\nk v=1 1", Durability::Disk);
    push(&edge.engine, &centre.engine).unwrap();
    let columns = |site: &Site| {
        let schema = site.engine.schema("d", "m").unwrap();
        let mut names: Vec<String> = schema.columns.iter().map(|column| column.name.to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(columns(&centre), ["h", "new", "own", "rack", "x"]);
    centre.engine.compact().unwrap();
    let before = contents(&centre.engine);
    assert_eq!(before.len(), contents(&centre.killed().engine).len());
    // An integer that no float is; a field that is a tag there.
    for line in ["m,h=a x=9007199254740993i 3", "m,own=t x=1i 3", "n,v=t x=1 1"] {
        let edge = Site::new();
        edge.lines(line, Durability::Disk);
        edge.lines("other x=1 1", Durability::Disk);
        let error = push(&edge.engine, &centre.engine).unwrap_err();
        assert!(["\"x\"", "\"own\"", "\"v\""].iter().any(|name| error.to_string().contains(name)), "{error}");
        assert_eq!(contents(&centre.engine), before);
    }
}

#[test]
fn nothing_is_believed_of_what_is_sent() {
    let (edge, centre) = (Site::new(), Site::new());
    edge.lines("m,h=a x=1i 1\nm,h=b x=2i 2", Durability::Disk);
    /// Sends something else than it is given.
    struct Liar<'a>(&'a Engine, &'a dyn Fn(Vec<u8>) -> Vec<u8>, &'a dyn Fn(Vec<u8>) -> Vec<u8>);
    impl PushTarget for Liar<'_> {
        fn adopted(&self, origin: &str) -> Result<Option<CutName>> {
            self.0.adopted_cut(origin)
        }
        fn received(&self, upload: &Upload) -> Result<u64> {
            self.0.received(upload)
        }
        fn send(&self, upload: &Upload, offset: u64, bytes: &Bytes) -> Result<u64> {
            self.0.receive(upload, offset, &(self.1)(bytes.to_vec()))
        }
        fn adopt(&self, adoption: &Bytes) -> Result<AdoptOutcome> {
            self.0.adopt(&(self.2)(adoption.to_vec()), &|_, _| true)
        }
    }
    let flipped = |mut bytes: Vec<u8>| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes
    };
    let same = |bytes: Vec<u8>| bytes;
    let error = edge.engine.push(&Liar(&centre.engine, &flipped, &same), &options(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
    // Any byte of the request: refused, or without effect, and never a panic.
    let original = RefCell::new(Vec::new());
    let keep = |bytes: Vec<u8>| {
        *original.borrow_mut() = bytes;
        Vec::new()
    };
    edge.engine.push(&Liar(&centre.engine, &same, &keep), &options(), &mut |_| {}).unwrap_err();
    let original = original.into_inner();
    for at in (0..original.len()).step_by(5 * stride(3)) {
        for byte in [0, original[at] ^ 1] {
            let fresh = Site::of(CrashFs::from_image(&centre.fs.current()));
            let mut changed = original.clone();
            changed[at] = byte;
            if let Ok(AdoptOutcome::Adopted(_)) = fresh.engine.adopt(&changed, &|_, _| true) {
                let Site { fs, engine } = &fresh;
                engine.close().unwrap();
                let report = crate::maintenance::verify::verify_on(fs, engine.path()).unwrap();
                assert!(report.is_clean(), "byte {at} is {byte}: {report}");
            }
        }
    }
    // Rights.
    let error = centre.engine.adopt(&original, &|_, table| table != "m").unwrap_err();
    assert!(matches!(error, Error::DatabaseOutOfScope { .. }), "{error}");
    assert!(matches!(centre.engine.adopt(&original, &|_, _| true).unwrap(), AdoptOutcome::Adopted(_)));
}
