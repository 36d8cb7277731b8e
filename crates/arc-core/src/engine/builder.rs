//! Settings and parts of an engine before it is opened.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{
    Engine, EngineRole,
    open::{self, Parts},
    reader::Reader,
};
#[cfg(feature = "object-store")]
use crate::store::{ObjectStorage, OpenStorage, OwnerLog};
use crate::{
    ColumnTypes, Durability, Options, Result,
    clock::{Clock, SystemClock},
    random::{RandomSource, SystemRandom},
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
    #[cfg(feature = "object-store")]
    owner: Option<Arc<dyn OwnerLog>>,
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
            #[cfg(feature = "object-store")]
            owner: None,
        }
    }

    /// Sets all settings at once.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::{Engine, Options};
    ///
    /// let mut options = Options::default();
    /// options.compaction = false;
    /// options.max_databases = 10;
    /// let engine = Engine::builder(&path).options(options).open()?;
    /// # engine.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets [`Options::durability`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::{Durability, Engine};
    ///
    /// let engine = Engine::builder(&path).durability(Durability::Process).open()?;
    /// let written = engine.write_lp("plant", b"pump,id=7 rpm=1450i")?;
    /// assert_eq!(written.durability, Durability::Process);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// Sets [`Options::column_types`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::{ColumnTypes, Engine, OnConflict};
    ///
    /// let types = ColumnTypes::new().on_conflict(OnConflict::Widen);
    /// let engine = Engine::builder(&path).column_types(types).open()?;
    /// let written = engine.write_lp("plant", b"pump rpm=1450i\npump rpm=1450.5")?;
    /// assert_eq!(written.points, 2); // `rpm` has become a column of floats
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column_types(mut self, types: ColumnTypes) -> Self {
        self.options.column_types = types;
        self
    }

    /// Sets [`Options::flush_after`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use std::time::Duration;
    ///
    /// let engine = arc_core::Engine::builder(&path).flush_after(Duration::from_secs(5)).open()?;
    /// # engine.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_after(mut self, age: Duration) -> Self {
        self.options.flush_after = age;
        self
    }

    /// Sets [`Options::flush_bytes`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// let engine = arc_core::Engine::builder(&path).flush_bytes(32 << 20).open()?;
    /// # engine.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush_bytes(mut self, bytes: usize) -> Self {
        self.options.flush_bytes = bytes;
        self
    }

    /// Sets [`Options::compaction`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// let engine = arc_core::Engine::builder(&path).compaction(false).open()?;
    /// engine.compact()?; // at a time of the program's own choice
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compaction(mut self, compaction: bool) -> Self {
        self.options.compaction = compaction;
        self
    }

    /// Keeps data files and manifest in an object store. The data directory has the log, and files
    /// on their way.
    ///
    /// Acknowledged points are in the log until they are in the store. If the store fails or hangs,
    /// writes go on until [`Options::max_buffer_bytes`] is full, and fail as busy then; all is made
    /// up for when it answers again. A data directory belongs to one store and prefix, and has
    /// always to be opened with it.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use std::sync::Arc;
    ///
    /// use arc_core::{Engine, store::ObjectStorage};
    /// use object_store::memory::InMemory;
    ///
    /// let storage = ObjectStorage::new(Arc::new(InMemory::new()), "plants/north");
    /// let engine = Engine::builder(&path).object_store(storage).open()?;
    /// # engine.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "object-store")]
    pub fn object_store(mut self, storage: ObjectStorage) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Has [`open_reader`](Self::open_reader) ask the process that writes to the object store, which is
    /// on another machine, for what is in no data file yet.
    ///
    /// The reader then sees all that was acknowledged before each query began, and fails with
    /// [`Error::OwnerUnreachable`](crate::Error::OwnerUnreachable) where the other process does not
    /// answer. [`OwnerLog`] has an example.
    #[cfg(feature = "object-store")]
    pub fn owner_log(mut self, log: Arc<dyn OwnerLog>) -> Self {
        self.owner = Some(log);
        self
    }

    /// Sets the file system under WAL, manifest and data files. Queries read data files from the
    /// real one.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arc_core::{Engine, vfs::CrashFs};
    ///
    /// let disk = CrashFs::new();
    /// let engine = Engine::builder("/data").vfs(Arc::new(disk.clone())).open()?;
    /// let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i")?;
    /// for image in disk.power_cut().images(7, 10) {
    ///     // What may be on the disk if the power fails now has the point.
    ///     let engine = Engine::builder("/data").vfs(Arc::new(CrashFs::from_image(&image))).open()?;
    ///     assert_eq!(engine.tables("plant")?[0].buffered_rows, 1);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn vfs(mut self, vfs: Arc<dyn Vfs>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Sets the clock that points without a timestamp get their time from, and that tells when data
    /// is past its retention and a day is over.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use std::sync::Arc;
    ///
    /// use arc_core::{Engine, clock::Clock};
    ///
    /// #[derive(Debug)]
    /// struct Noon;
    ///
    /// impl Clock for Noon {
    ///     fn now_ns(&self) -> i64 {
    ///         1_700_000_000_000_000_000
    ///     }
    /// }
    ///
    /// let engine = Engine::builder(&path).clock(Arc::new(Noon)).open()?;
    /// let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i")?;
    /// assert_eq!(engine.view("plant", "pump")?.buffers[0].min_time, 1_700_000_000_000_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of random numbers.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    ///
    /// use arc_core::{Engine, random::RandomSource};
    ///
    /// #[derive(Debug, Default)]
    /// struct Counted(AtomicU64);
    ///
    /// impl RandomSource for Counted {
    ///     fn next(&self) -> u64 {
    ///         self.0.fetch_add(1, Ordering::Relaxed)
    ///     }
    /// }
    ///
    /// let engine = Engine::builder(&path).random(Arc::new(Counted::default())).open()?;
    /// # engine.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn random(mut self, random: Arc<dyn RandomSource>) -> Self {
        self.random = random;
        self
    }

    /// Opens the engine.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::{Engine, ErrorKind};
    ///
    /// let engine = Engine::builder(&path).open()?;
    /// let second = Engine::builder(&path).open();
    /// // One engine at a time has a folder open.
    /// assert_eq!(second.unwrap_err().kind(), ErrorKind::Busy);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for an option out of range, a
    /// folder that holds other things, a newer format, or belongs to another object store;
    /// [`Busy`](crate::ErrorKind::Busy) for one in use by another process;
    /// [`Corrupt`](crate::ErrorKind::Corrupt) where an acknowledged point is damaged, naming file
    /// and byte: [`verify`](crate::verify) then names all damage,
    /// [`plan_repair`](crate::plan_repair) what can be done about it; [`Io`](crate::ErrorKind::Io)
    /// with the path that failed.
    pub fn open(self) -> Result<Engine> {
        let (shared, lock) = open::open(self.into_parts()?)?;
        let threads = open::start(&shared)?;
        Ok(Engine::with(EngineRole::Writer(shared), threads, lock))
    }

    /// Opens an engine that only reads: the directory may be open in another process, which goes on
    /// to write, and in any number of others that read.
    ///
    /// Each query sees all that was acknowledged before it began, in data files or not, and no
    /// engine sees less than it has seen before. Points that were written with
    /// [`Durability::Memory`] are seen once they are flushed. What a query reads stays on the disk
    /// while it runs, for a lease in the folder `readers` of the directory tells the other process.
    /// Where nothing can be written, as on a file system that is mounted for reading only, it stays
    /// for [`Options::compaction_grace`] of the other process, and until that is started anew; a
    /// query that takes longer may fail with [`Error::Expired`](crate::Error::Expired). Of an object
    /// store it reads what was flushed there, from any folder that is this process's own; from the data
    /// directory of the process that writes, on the same machine, and with its
    /// [`owner_log`](Self::owner_log) from any other, also what was not. Calls that
    /// would change anything fail with [`Error::ReadOnly`](crate::Error::ReadOnly). Settings that are
    /// about writing mean nothing here.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::Engine;
    ///
    /// let writer = Engine::open(&path)?; // as in another process
    /// let reader = Engine::builder(&path).open_reader()?;
    /// writer.create_database("plant")?;
    /// assert_eq!(reader.databases()[0].name, "plant");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a folder that is no data
    /// directory, a newer format, an object store without a manifest, and a directory of another store
    /// than the one named; [`Corrupt`](crate::ErrorKind::Corrupt) for a manifest or a log that is
    /// damaged; [`Io`](crate::ErrorKind::Io) with the path that failed.
    pub fn open_reader(self) -> Result<Engine> {
        let reader = Reader::open(self.into_parts()?)?;
        let threads = vec![reader.start()?];
        Ok(Engine::with(EngineRole::Reader(reader), threads, Box::new(())))
    }

    fn into_parts(self) -> Result<Parts> {
        Ok(Parts {
            #[cfg(feature = "object-store")]
            storage: self.storage.map(OpenStorage::new).transpose()?,
            #[cfg(feature = "object-store")]
            owner: self.owner,
            root: self.root,
            options: self.options,
            vfs: self.vfs,
            clock: self.clock,
            random: self.random,
        })
    }
}
