//! Engines that are open in this process: all that open one folder share one.
//!
//! Owns the count of who uses an engine: the last one closes it. Never decides what a user may do with it.

use std::{
    collections::HashMap,
    ops::Deref,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use arc_core::{Durability, Engine, Error, Options, Result, store::ObjectStorage};
use tempfile::TempDir;

use crate::forks::{check_process, is_fork};

type Key = (PathBuf, Mode);

/// Engines of folders, until they are closed: one without users is on its way there.
static OPEN: LazyLock<Mutex<HashMap<Key, Arc<Folder>>>> = LazyLock::new(Mutex::default);
static CLOSED: Condvar = Condvar::new();

/// The file of a folder that an engine holds as long as it is open, so that a folder made anew has another one.
const LOCK_FILE: &str = "LOCK";

fn lock() -> MutexGuard<'static, HashMap<Key, Arc<Folder>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an engine writes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It reads and writes.
    #[default]
    ReadWrite,
    /// It reads what another process may write.
    Read,
}

/// A folder that is open.
#[derive(Debug)]
struct Folder {
    key: Key,
    /// The number of its lock file.
    identity: Option<(u64, u64)>,
    engine: Engine,
    options: Options,
    /// Changed with the list locked.
    users: AtomicUsize,
}

/// One use of an engine, which is closed with its last one.
#[derive(Debug)]
pub struct OpenEngine {
    engine: Engine,
    /// `None` if nobody else has this engine.
    folder: Option<Arc<Folder>>,
    /// What a reader of a bucket has for itself.
    own: Option<TempDir>,
    is_closed: AtomicBool,
    process: u32,
}

impl OpenEngine {
    /// Opens a folder, or joins those that have it open in this process and mode.
    ///
    /// options: of the engine; who joins and gives some needs the same durability, and the same others if they are not
    ///     the default ones.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened; that it is open with other options, or was replaced since; that this process is a fork of
    /// one that had opened an engine.
    pub fn open(path: &Path, mode: Mode, options: Option<Options>) -> Result<Self> {
        check_process()?;
        let path = std::path::absolute(path).map_err(|error| invalid(error.to_string()))?;
        // A folder has one key, by whichever link it is named.
        let key = (path.canonicalize().unwrap_or_else(|_| path.clone()), mode);
        let mut open = lock();
        while let Some(folder) = open.get(&key) {
            if folder.users.load(Ordering::Relaxed) == 0 {
                open = CLOSED.wait(open).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if options.is_some_and(|options| !is_met(&options, &folder.options)) {
                return Err(invalid(format!(
                    "{} is open in this process with other settings; give the same ones, none, or close it first",
                    path.display()
                )));
            }
            if folder.identity != identity_of(&path) {
                return Err(invalid(format!(
                    "{} was removed or replaced while it was open in this process; close that engine first",
                    path.display()
                )));
            }
            folder.users.fetch_add(1, Ordering::Relaxed);
            return Ok(Self::of(folder.engine.clone(), Some(Arc::clone(folder)), None));
        }
        let options = options.unwrap_or_default();
        let builder = Engine::builder(&path).options(options.clone());
        let engine = match mode {
            Mode::ReadWrite => builder.open()?,
            Mode::Read => builder.open_reader()?,
        };
        let key = (path.canonicalize().unwrap_or_else(|_| path.clone()), mode);
        let (identity, users) = (identity_of(&path), AtomicUsize::new(1));
        let folder = Arc::new(Folder { key: key.clone(), identity, engine: engine.clone(), options, users });
        open.insert(key, Arc::clone(&folder));
        Ok(Self::of(engine, Some(folder), None))
    }

    /// Opens what a server keeps in a bucket, as far as it was flushed there, to read it.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened.
    pub fn open_bucket(url: &str, options: Options) -> Result<Self> {
        check_process()?;
        let storage = ObjectStorage::from_url(url, None)?;
        let make = |source| Error::Io { action: "make a folder in", path: std::env::temp_dir(), source };
        let own = TempDir::with_prefix("arc-reader-").map_err(make)?;
        let engine = Engine::builder(own.path()).options(options).object_store(storage).open_reader()?;
        Ok(Self::of(engine, None, Some(own)))
    }

    fn of(engine: Engine, folder: Option<Arc<Folder>>, own: Option<TempDir>) -> Self {
        Self { engine, folder, own, is_closed: AtomicBool::new(false), process: std::process::id() }
    }

    /// Returns what writes survive that do not say it themselves, and whose database does not.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.folder.as_ref().map_or_else(Durability::default, |folder| folder.options.durability)
    }

    /// Returns whether this use has ended; others of the same engine may go on.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Ends this use, and closes the engine if it was the last one.
    ///
    /// # Errors
    ///
    /// That of the last flush; the engine is closed all the same, and the points are in the log.
    pub fn close(&self) -> Result<()> {
        if self.is_closed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let Some(folder) = &self.folder else { return self.engine.close() };
        let open = lock();
        let is_last = folder.users.fetch_sub(1, Ordering::Relaxed) == 1;
        drop(open);
        if !is_last {
            return Ok(());
        }
        let _closing = Closing(&folder.key);
        self.engine.close()
    }
}

impl Deref for OpenEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Drop for OpenEngine {
    fn drop(&mut self) {
        if is_fork(self.process) {
            // Its threads are in the process that opened it, and so is whoever removes its folder.
            std::mem::forget((self.engine.clone(), self.folder.take(), self.own.take()));
            return;
        }
        // Every acknowledged row is in the log: what is not flushed now the next opening brings back.
        let _ = self.close();
    }
}

/// Lets others open the folder again, once it is dropped.
struct Closing<'a>(&'a Key);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        lock().remove(self.0);
        CLOSED.notify_all();
    }
}

/// Returns whether an engine that is open with `given` is what somebody asks for with `asked`.
fn is_met(asked: &Options, given: &Options) -> bool {
    let mut only_durability = Options::default();
    only_durability.durability = asked.durability;
    asked == given || (asked.durability == given.durability && *asked == only_durability)
}

/// Returns the number of the lock file of a folder, if there is one.
fn identity_of(path: &Path) -> Option<(u64, u64)> {
    let file = path.join(LOCK_FILE).metadata().ok()?;
    Some((file.dev(), file.ino()))
}

fn invalid(reason: String) -> Error {
    Error::InvalidOption { option: "path", reason }
}
