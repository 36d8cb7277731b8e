//! Settings and parts of an engine before it is opened.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{
    Engine, Inner,
    open::{self, Parts},
};
#[cfg(feature = "object-store")]
use crate::store::{ObjectStorage, OpenStorage};
use crate::{
    ColumnTypes, Durability, Options, Result,
    clock::{Clock, SystemClock},
    random::{RandomSource, SystemRandom},
    sync::Mutex,
    vfs::{RealVfs, Vfs},
};

/// Stores what it is given; [`open`](Self::open) checks it.
#[derive(Debug)]
#[must_use = "a builder does nothing before `open`"]
pub struct EngineBuilder {
    root: PathBuf,
    options: Options,
    vfs: Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn RandomSource>,
    #[cfg(feature = "object-store")]
    storage: Option<ObjectStorage>,
}

impl EngineBuilder {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            options: Options::default(),
            vfs: Arc::new(RealVfs),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom::default()),
            #[cfg(feature = "object-store")]
            storage: None,
        }
    }

    /// Sets all settings at once.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets [`Options::durability`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// Sets [`Options::column_types`].
    pub fn column_types(mut self, types: ColumnTypes) -> Self {
        self.options.column_types = types;
        self
    }

    /// Sets [`Options::flush_after`].
    pub fn flush_after(mut self, age: Duration) -> Self {
        self.options.flush_after = age;
        self
    }

    /// Sets [`Options::flush_bytes`].
    pub fn flush_bytes(mut self, bytes: usize) -> Self {
        self.options.flush_bytes = bytes;
        self
    }

    /// Sets [`Options::compaction`].
    pub fn compaction(mut self, compaction: bool) -> Self {
        self.options.compaction = compaction;
        self
    }

    /// Keeps data files and manifest in an object store. The data directory has the log, and files on their way.
    ///
    /// Acknowledged points are in the log until they are in the store. If the store fails or hangs, writes go on until
    /// [`Options::max_buffer_bytes`] is full, and fail as busy then; all is made up for when it answers again. A data
    /// directory belongs to one store and prefix, and has always to be opened with it.
    #[cfg(feature = "object-store")]
    pub fn object_store(mut self, storage: ObjectStorage) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Sets the file system under WAL, manifest and data files. Queries read data files from the real one.
    pub fn vfs(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Sets the clock that points without a timestamp get their time from, and that tells when data is past its
    /// retention and a day is over.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of random numbers.
    pub fn random(mut self, random: Arc<dyn RandomSource>) -> Self {
        self.random = random;
        self
    }

    /// Opens the engine.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for an option out of range, a folder that holds
    /// other things, a newer format, or belongs to another object store; [`Busy`](crate::ErrorKind::Busy) for one in use by another process;
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where an acknowledged point is damaged, naming file and byte:
    /// [`verify`](crate::verify) then names all damage, [`plan_repair`](crate::plan_repair) what can be done about it;
    /// [`Io`](crate::ErrorKind::Io) with the path that failed.
    pub fn open(self) -> Result<Engine> {
        let (shared, lock) = open::open(Parts {
            #[cfg(feature = "object-store")]
            storage: self.storage.map(OpenStorage::new).transpose()?,
            root: self.root,
            options: self.options,
            vfs: self.vfs,
            clock: self.clock,
            random: self.random,
        })?;
        let threads = Mutex::new(open::start(&shared)?);
        let lock = Mutex::new(Some(lock));
        let inner = Inner {
            shared,
            #[cfg(feature = "query")]
            query: Mutex::default(),
            threads,
            lock,
        };
        Ok(Engine { inner: Arc::new(inner) })
    }
}
