//! The disk of a simulation: each call is a step of the schedule, and may take its time or fail.

use std::{
    any::Any,
    fmt,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use arc_core::{
    sync::{
        schedule::{self, Draws},
        thread::sleep,
    },
    vfs::{CrashFs, DirEntry, Vfs, VfsFile},
};
use parking_lot::Mutex;

/// What the calls of a disk come to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    /// One call in so many fails; none if it is 0.
    pub(crate) fails_one_in: u64,
    /// One call in so many takes its time; none if it is 0.
    pub(crate) waits_one_in: u64,
    /// The longest that it takes.
    pub(crate) longest: Duration,
    /// Whether it is full: what makes files or lengthens them fails.
    pub(crate) is_full: bool,
    /// Whether syncs fail, too. After one of the log's nothing is written any more.
    pub(crate) syncs_fail: bool,
}

/// Sees each call, once it is done.
pub(crate) type Observer = Box<dyn Fn(&Call<'_>) + Send + Sync>;

/// A call that has changed the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call<'a> {
    Wrote {
        path: &'a Path,
        parts: &'a [&'a [u8]],
    },
    Synced {
        path: &'a Path,
    },
    /// A call that had to write or sync, and says that it did not.
    Failed {
        path: &'a Path,
    },
    Other,
}

/// The disk. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Disk(Arc<Inner>);

struct Inner {
    fs: CrashFs,
    state: Mutex<State>,
    observer: Mutex<Option<Arc<Observer>>>,
}

#[derive(Debug)]
struct State {
    draws: Draws,
    weather: Weather,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Name,
    Sync,
}

enum Fate {
    Done,
    Fails(ErrorKind),
    /// It is done, and says that it is not.
    Lies,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

impl Disk {
    pub(crate) fn new(fs: CrashFs, seed: u64) -> Self {
        let state = State { draws: Draws::new(seed), weather: Weather::default() };
        Self(Arc::new(Inner { fs, state: Mutex::new(state), observer: Mutex::new(None) }))
    }

    pub(crate) fn fs(&self) -> &CrashFs {
        &self.0.fs
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.0.state.lock().weather = weather;
    }

    pub(crate) fn observe(&self, observer: Option<Observer>) {
        *self.0.observer.lock() = observer.map(Arc::new);
    }

    fn call<T>(
        &self,
        kind: Kind,
        path: &Path,
        seen: Call<'_>,
        work: impl FnOnce(&CrashFs) -> io::Result<T>,
    ) -> io::Result<T> {
        schedule::step();
        let (fate, wait) = self.0.draw(kind);
        if let Some(time) = wait {
            sleep(time);
        }
        schedule::note(kind as u64 + 1);
        path.as_os_str().as_encoded_bytes().iter().for_each(|byte| schedule::note(u64::from(*byte)));
        let done = match fate {
            Fate::Fails(kind) => Err(kind.into()),
            Fate::Done => work(&self.0.fs),
            Fate::Lies => work(&self.0.fs).and(Err(ErrorKind::Other.into())),
        };
        let has_failed = done.is_err() && [Kind::Write, Kind::Sync].contains(&kind);
        let seen = if has_failed { Call::Failed { path } } else { seen };
        let observer = self.0.observer.lock().clone().filter(|_| kind != Kind::Read);
        if let Some(observer) = observer {
            observer(&seen);
        }
        done
    }
}

impl Inner {
    fn draw(&self, kind: Kind) -> (Fate, Option<Duration>) {
        let State { draws, weather } = &mut *self.state.lock();
        let waits = weather.waits_one_in > 0 && kind != Kind::Read && draws.one_in(weather.waits_one_in);
        let longest_us = u64::try_from(weather.longest.as_micros()).unwrap();
        let wait = waits.then(|| Duration::from_micros(draws.below(longest_us)));
        if kind == Kind::Sync && !weather.syncs_fail {
            return (Fate::Done, wait);
        }
        let fails = weather.fails_one_in > 0 && draws.one_in(weather.fails_one_in);
        let fate = match kind {
            Kind::Name | Kind::Write if weather.is_full => Fate::Fails(ErrorKind::StorageFull),
            Kind::Name if fails && draws.one_in(3) => Fate::Lies,
            _ if fails => Fate::Fails(ErrorKind::Other),
            _ => Fate::Done,
        };
        (fate, wait)
    }
}

impl Vfs for Disk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.call(Kind::Name, dir, Call::Other, |fs| fs.create_dir_all(dir))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.call(Kind::Name, path, Call::Other, |fs| self.file(fs.create_new(path)?, path))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.call(Kind::Read, path, Call::Other, |fs| self.file(fs.open(path)?, path))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        self.call(Kind::Read, path, Call::Other, |fs| self.file(fs.open_read(path)?, path))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.call(Kind::Read, path, Call::Other, |fs| fs.read(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Kind::Name, to, Call::Other, |fs| fs.rename(from, to))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Kind::Name, to, Call::Other, |fs| fs.rename_new(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Kind::Name, to, Call::Other, |fs| fs.hard_link(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.call(Kind::Name, path, Call::Other, |fs| fs.remove_file(path))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(Kind::Name, dir, Call::Other, |fs| fs.remove_dir(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(Kind::Sync, dir, Call::Other, |fs| fs.sync_dir(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        self.call(Kind::Read, dir, Call::Other, |fs| fs.list(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.0.fs.lock(path)
    }
}

impl Disk {
    #[expect(clippy::unnecessary_wraps, reason = "the calls that open files fail")]
    fn file(&self, file: Box<dyn VfsFile>, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        Ok(Box::new(File { disk: self.clone(), file, path: path.to_owned() }))
    }
}

#[derive(Debug)]
struct File {
    disk: Disk,
    file: Box<dyn VfsFile>,
    /// As it was opened: a segment is opened after it has its name.
    path: PathBuf,
}

impl VfsFile for File {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.file.modified()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.call(Kind::Read, &self.path, Call::Other, |_| self.file.read_at(buf, offset))
    }

    fn write_all_at(&self, parts: &[&[u8]], offset: u64) -> io::Result<()> {
        parts.iter().for_each(|part| schedule::note(u64::from(crc32c::crc32c(part))));
        let seen = Call::Wrote { path: &self.path, parts };
        self.disk.call(Kind::Write, &self.path, seen, |_| self.file.write_all_at(parts, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.call(Kind::Sync, &self.path, Call::Synced { path: &self.path }, |_| self.file.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.disk.call(Kind::Sync, &self.path, Call::Synced { path: &self.path }, |_| self.file.sync_all())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.call(Kind::Write, &self.path, Call::Other, |_| self.file.set_len(len))
    }
}
