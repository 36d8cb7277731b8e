//! A reader with a folder of its own beside a writer, over one store in memory, as on two machines: it sees what the writer has.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use object_store::memory::InMemory;

use super::*;
use crate::{
    ErrorKind, Options, SequenceNumber,
    store::ObjectStorage,
    vfs::{CrashFs, Vfs},
};

const DAY: i64 = 1_700_000_000_000_000_000;

/// Two machines and a store.
#[derive(Debug, Default)]
struct Machines {
    store: Arc<InMemory>,
    owner: CrashFs,
    node: CrashFs,
}

/// A log that can be cut off.
#[derive(Debug)]
struct Cable {
    engine: Engine,
    is_cut: Arc<AtomicBool>,
}

impl Cable {
    fn end(&self) -> Result<&Engine> {
        let reason = "node a: the cable is cut".to_owned();
        if self.is_cut.load(Ordering::SeqCst) { Err(Error::OwnerUnreachable { reason }) } else { Ok(&self.engine) }
    }
}

impl OwnerLog for Cable {
    fn state(&self, directory: Option<&str>) -> Result<LogState> {
        self.end()?.state(directory)
    }

    fn segments(&self) -> Result<Vec<LogSegment>> {
        self.end()?.segments()
    }

    fn read(&self, segment: &str, offset: u64, len: usize) -> Result<Option<Bytes>> {
        OwnerLog::read(self.end()?, segment, offset, len)
    }

    fn hold(&self, reader: u64, commit: u64, time: Duration) -> Result<()> {
        self.end()?.hold(reader, commit, time)
    }

    fn release(&self, reader: u64) {
        if let Ok(engine) = self.end() {
            engine.release(reader);
        }
    }
}

impl Machines {
    fn builder(&self, fs: &CrashFs, root: &str) -> crate::EngineBuilder {
        let options = Options {
            compaction: false,
            compaction_grace: Duration::ZERO,
            history: Duration::ZERO,
            compaction_files: 2,
            flush_after: Duration::from_secs(1 << 30),
            wal_segment_bytes: 64 << 10,
            ..Options::default()
        };
        let storage = ObjectStorage::new(Arc::<InMemory>::clone(&self.store) as _, "plants");
        Engine::builder(root).options(options).vfs(Arc::new(fs.clone())).object_store(storage)
    }

    fn open_owner(&self) -> Engine {
        self.builder(&self.owner, "/owner").open().unwrap()
    }

    fn open_reader(&self, log: Arc<dyn OwnerLog>) -> Engine {
        self.builder(&self.node, "/node").owner_log(log).open_reader().unwrap()
    }
}

fn write(engine: &Engine, lines: &str) {
    assert_eq!(engine.write_lp("d", lines.as_bytes()).unwrap().rejected_points, 0, "{lines}");
}

fn rows(engine: &Engine) -> u64 {
    let table = &engine.tables("d").unwrap()[0];
    table.file_rows + table.buffered_rows
}

#[test]
fn each_look_has_all_that_was_acknowledged_through_flushes_merges_and_full_segments() {
    let machines = Machines::default();
    let owner = machines.open_owner();
    let reader = machines.open_reader(Arc::new(owner.clone()));
    let filler = "x".repeat(9_000);
    for n in 1..60 {
        write(&owner, &format!("m,h=a v=1,s=\"{filler}\" {}", DAY + n));
        assert_eq!(rows(&reader), n.unsigned_abs(), "write {n}");
        if n % 9 == 0 {
            owner.flush().unwrap();
        }
        if n % 20 == 0 {
            owner.compact().unwrap();
        }
        assert_eq!(rows(&reader), n.unsigned_abs(), "after write {n}");
    }
    assert!(machines.node.list(Path::new("/node/wal")).is_ok_and(|files| files.is_empty()), "it has no log of its own");
    assert_eq!(reader.progress(), owner.progress());
}

#[test]
fn without_the_owner_there_is_no_answer_and_later_there_is() {
    let machines = Machines::default();
    let owner = machines.open_owner();
    write(&owner, &format!("m,h=a v=1 {DAY}"));
    let is_cut = Arc::new(AtomicBool::new(true));
    let reader = machines.open_reader(Arc::new(Cable { engine: owner.clone(), is_cut: Arc::clone(&is_cut) }));
    for _ in 0..2 {
        let error = reader.tables("d").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("node a: the cable is cut"), "{error}");
        assert!(reader.refresh().is_err());
    }
    is_cut.store(false, Ordering::SeqCst);
    assert_eq!(rows(&reader), 1);
    write(&owner, &format!("m,h=a v=1 {}", DAY + 1));
    owner.flush().unwrap();
    is_cut.store(true, Ordering::SeqCst);
    assert!(reader.tables("d").is_err(), "not even what is in files, for there may be more");
}

#[test]
fn an_owner_that_is_opened_again_is_believed_anew() {
    let machines = Machines::default();
    let owner = machines.open_owner();
    write(&owner, &format!("m,h=a v=1 {DAY}"));
    let first = owner.state(None).unwrap();
    let reader = machines.open_reader(Arc::new(owner.clone()));
    assert_eq!(rows(&reader), 1);
    owner.close().unwrap();
    assert!(matches!(owner.state(None), Err(Error::Closed { .. })));
    let owner = machines.open_owner();
    let second = owner.state(Some(&first.directory)).unwrap();
    assert!(second.opening > first.opening && second.directory == first.directory);
    let reader = machines.open_reader(Arc::new(owner.clone()));
    write(&owner, &format!("m,h=a v=1 {}", DAY + 1));
    assert_eq!(rows(&reader), 2);
}

/// The log of one that was opened again after a loss of power has other frames under the same numbers.
#[test]
fn frames_that_a_loss_of_power_took_are_not_shown_any_more() {
    let mut machines = Machines::default();
    let owner = machines.open_owner();
    write(&owner, &format!("m,h=a v=1 {DAY}"));
    let line = format!("m,h=b v=1 {DAY}").into();
    let options = crate::WriteOptions::new().durability(crate::Durability::Process);
    assert_eq!(owner.submit_lp("d", line, &options).unwrap().wait().unwrap().points, 1);
    #[derive(Debug)]
    struct Current(crate::sync::Mutex<Engine>);
    impl OwnerLog for Current {
        fn state(&self, directory: Option<&str>) -> Result<LogState> {
            self.0.lock().state(directory)
        }
        fn segments(&self) -> Result<Vec<LogSegment>> {
            self.0.lock().segments()
        }
        fn read(&self, segment: &str, offset: u64, len: usize) -> Result<Option<Bytes>> {
            OwnerLog::read(&*self.0.lock(), segment, offset, len)
        }
        fn hold(&self, reader: u64, commit: u64, time: Duration) -> Result<()> {
            self.0.lock().hold(reader, commit, time)
        }
        fn release(&self, reader: u64) {
            self.0.lock().release(reader);
        }
    }
    let current = Arc::new(Current(crate::sync::Mutex::new(owner.clone())));
    let reader = machines.open_reader(Arc::clone(&current) as _);
    assert_eq!(rows(&reader), 2);
    // Nothing that was not synced is there afterwards.
    let image = machines.owner.power_cut().images(1, 1).next().unwrap();
    machines.owner = CrashFs::from_image(&image);
    let owner = machines.open_owner();
    let kept = owner.tables("d").unwrap()[0].buffered_rows;
    *current.0.lock() = owner.clone();
    assert_eq!(rows(&reader), kept);
    write(&owner, &format!("m,h=c v=1 {DAY}"));
    assert_eq!(rows(&reader), kept + 1);
}

#[test]
fn files_are_held_at_the_owner_for_as_long_as_they_are_read() {
    let machines = Machines::default();
    let owner = machines.open_owner();
    for n in 0..2 {
        write(&owner, &format!("m,h=a v=1 {}", DAY + n));
        owner.flush().unwrap();
    }
    let reader = machines.open_reader(Arc::new(owner.clone()));
    let view = reader.view("d", "m").unwrap();
    assert_eq!(view.files.len(), 2);
    let leases = || machines.owner.list(Path::new("/owner/readers")).map_or(0, |files| files.len());
    assert_eq!(leases(), 1);
    drop(view);
    reader.close().unwrap();
    assert_eq!(leases(), 0, "given up when it is closed");
}

#[test]
fn an_owner_of_another_directory_is_not_asked() {
    let machines = Machines::default();
    let owner = machines.open_owner();
    let state = owner.state(None).unwrap();
    assert_eq!(state.acknowledged, SequenceNumber(0));
    let error = owner.state(Some("another")).unwrap_err();
    assert!(error.to_string().contains("another") && error.to_string().contains(&state.directory), "{error}");
}

#[test]
fn what_cannot_be_opened_like_this_is_told() {
    let machines = Machines::default();
    let owner = machines.open_owner();
    let log = || -> Arc<dyn OwnerLog> { Arc::new(owner.clone()) };
    let refused = |opened: Result<Engine>, told: &str| {
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(told), "{error}");
    };
    refused(machines.builder(&machines.node, "/other").owner_log(log()).open(), "an engine that only reads");
    refused(machines.builder(&machines.owner, "/owner").owner_log(log()).open_reader(), "a folder of its own");
    let local = Engine::builder("/node").vfs(Arc::new(machines.node.clone())).owner_log(log());
    refused(local.open_reader(), "has to be named");
}

#[test]
fn names_and_ranges_from_outside_reach_nothing_but_segments() {
    let machines = Machines::default();
    let owner = machines.open_owner();
    write(&owner, &format!("m,h=a v=1 {DAY}"));
    let segments = owner.segments().unwrap();
    let LogSegment { name, bytes } = &segments[0];
    for name in
        ["", "acknowledged", "../ARC", "/etc/passwd", "..", "00000000000000000001-zz.wal", &format!("../wal/{name}")]
    {
        assert_eq!(OwnerLog::read(&owner, name, 0, 10).unwrap(), None, "{name:?}");
    }
    let read = |offset, len| OwnerLog::read(&owner, name, offset, len).unwrap().unwrap().len();
    assert_eq!((read(0, 10), read(*bytes, 10), read(u64::MAX, 10), read(0, 0)), (10, 0, 0, 0));
    assert!(read(0, usize::MAX) <= LONGEST_READ);
}
