//! The public handle; wires the parts together, holds no algorithm.

mod adoption;
mod adoption_fit;
mod apply;
mod builder;
mod check;
#[cfg(feature = "object-store")]
mod claim;
#[cfg(feature = "distributed")]
mod cluster;
mod column_types;
mod commit;
mod compaction;
mod compactor;
mod context;
mod create_table;
mod cuts;
mod delete;
mod dropping;
mod durability;
#[cfg(feature = "query")]
mod execute;
#[cfg(feature = "query")]
mod fitting;
mod flush;
mod flush_signal;
mod folders;
mod frame;
#[cfg(any(test, debug_assertions, feature = "check-frames"))]
mod frame_proof;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod history;
mod idempotency;
mod info;
#[cfg(feature = "query")]
mod insert;
#[cfg(feature = "query")]
mod insert_query;
mod leftovers;
mod log;
mod logged;
mod manifest;
mod open;
mod origin;
mod packs;
mod pinned;
mod propose;
#[cfg(feature = "query")]
mod queries;
mod queue;
mod reader;
#[cfg_attr(
    not(feature = "object-store"),
    expect(dead_code, unused_imports, reason = "only an object store is waited for")
)]
mod remote;
mod restore;
mod retention;
mod retired;
mod role;
mod schema;
#[cfg(feature = "object-store")]
mod served_log;
mod shared;
mod small_merges;
mod snapshots;
mod states_at_hand;
mod stats;
mod submit;
#[cfg(feature = "query")]
mod tables;
mod tail;
mod unflushed;
mod widen;
mod write;

use std::{path::Path, sync::Arc};

pub use adoption::{AdoptOutcome, AdoptReport};
pub use builder::EngineBuilder;
pub use compaction::CompactionReport;
pub use delete::Deleted;
#[cfg(feature = "query")]
pub use execute::{Deletion, Executed};
pub use flush::FlushReport;
pub use info::{DatabaseInfo, TableInfo};
pub use stats::EngineStats;
pub use tail::Tail;

#[cfg(test)]
pub(crate) use apply::apply_rows;
pub(crate) use check::{FrameChecker, GIVEN_UP, SchemaChange};
pub(crate) use cuts::CutFiles;
pub(crate) use open::{Lock, lock};
pub(crate) use origin::Origin;

#[cfg(feature = "query")]
use self::context::EngineContext;
use self::{role::EngineRole, tail::TailEnding};
#[cfg(feature = "query")]
use crate::store::OpenStorage;
use crate::{
    Result,
    sync::{Mutex, thread::JoinHandle},
};

/// A time-series store in one folder.
///
/// Cheap to clone; every clone is the same engine. It runs until [`close`](Self::close), or until
/// the last clone is dropped: points that are acknowledged by then are in the log and come back
/// when the folder is opened again.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("data");
/// use arc_core::Engine;
///
/// let engine = Engine::open(path)?;
/// let written = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
/// assert_eq!(written.points, 1);
/// engine.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    role: EngineRole,
    /// Made by the first statement: who only writes does not pay for it.
    #[cfg(feature = "query")]
    query: Mutex<Option<Arc<crate::query::QueryEngine>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// There while the engine is open; that of a reader locks nothing.
    lock: Mutex<Option<open::Lock>>,
}

impl Inner {
    #[cfg(feature = "query")]
    fn query(&self) -> Result<Arc<crate::query::QueryEngine>> {
        use crate::query::{DataPlace, QueryEngine, QueryTables};

        let mut query = self.query.lock();
        if let Some(query) = query.as_ref() {
            return Ok(Arc::clone(query));
        }
        let engine = match &self.role {
            EngineRole::Writer(shared) => {
                let EngineContext { root, options, memory, storage, .. } = shared.context.as_ref();
                let tables: Arc<dyn QueryTables> = Arc::new(tables::EngineTables::live(shared));
                let place =
                    DataPlace { dir: root, store: storage.as_ref().map(OpenStorage::reads), is_anothers: false };
                QueryEngine::new(tables, place, options, Arc::clone(memory))?
            }
            EngineRole::Reader(reader) => {
                let tables: Arc<dyn QueryTables> = Arc::new(tables::ReaderTables(Arc::clone(reader)));
                let place = DataPlace {
                    dir: &reader.root,
                    store: reader.storage.as_ref().map(OpenStorage::reads),
                    is_anothers: true,
                };
                QueryEngine::new(tables, place, &reader.options, Arc::clone(&reader.memory))?
            }
        };
        Ok(Arc::clone(query.insert(Arc::new(engine))))
    }

    fn stop(&self) {
        match &self.role {
            EngineRole::Writer(shared) => {
                shared.abort_waits();
                shared.stop_compaction();
                shared.flush_signal.stop();
                shared.queue.stop();
            }
            EngineRole::Reader(reader) => reader.stop(),
        }
        for thread in self.threads.lock().drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the engine has panicked");
            }
        }
        // After those that still acknowledge.
        #[cfg(feature = "object-store")]
        if let EngineRole::Writer(shared) = &self.role {
            shared.stop_remote();
        }
        // After the last write was applied.
        if let EngineRole::Writer(shared) = &self.role {
            shared.tails.lock().close(&TailEnding::Closed("the engine is closed".into()));
        }
        // Only while the directory is this engine's: a second stop comes when nothing is.
        if let Some(_lock) = self.lock.lock().take()
            && let EngineRole::Writer(shared) = &self.role
            && let Err(error) = shared.log.seal()
        {
            tracing::debug!(%error, "the log was not sealed");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Engine {
    /// Opens the data directory at `path` with the default settings; creates it if there is none.
    ///
    /// Replays what is in the log and not yet in data files.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::Engine;
    ///
    /// let engine = Engine::open(&path)?;
    /// let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// drop(engine); // without `close`, as if the process had ended
    /// let engine = Engine::open(&path)?;
    /// assert_eq!(engine.tables("plant")?[0].buffered_rows, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`EngineBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }

    /// Returns a builder for an engine over the data directory at `path`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use std::time::Duration;
    ///
    /// use arc_core::{Durability, Engine};
    ///
    /// let builder = Engine::builder(&path).durability(Durability::Process).flush_after(Duration::from_secs(10));
    /// let engine = builder.open()?;
    /// assert_eq!(engine.path(), path);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(path: impl AsRef<Path>) -> EngineBuilder {
        EngineBuilder::new(path.as_ref())
    }

    fn with(role: EngineRole, threads: Vec<JoinHandle<()>>, lock: open::Lock) -> Self {
        let inner = Inner {
            role,
            #[cfg(feature = "query")]
            query: Mutex::default(),
            threads: Mutex::new(threads),
            lock: Mutex::new(Some(lock)),
        };
        Self { inner: Arc::new(inner) }
    }

    fn check_open(&self) -> Result<()> {
        if self.inner.lock.lock().is_none() {
            return Err(crate::Error::Closed { reason: "the engine is closed".into() });
        }
        Ok(())
    }

    /// Writes all points acknowledged so far to data files.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let report = engine.flush()?;
    /// assert_eq!((report.rows, report.files.len()), (1, 1));
    /// println!("other programs may read {}", engine.path().join(&report.files[0]).display());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the files cannot be written; the points stay in
    /// memory and in the log.
    pub fn flush(&self) -> Result<FlushReport> {
        self.writer()?.flush()
    }

    /// Merges data files as far as there is anything to merge, drops those past their retention,
    /// and removes from disk what nothing needs any more. Waits for a merge that runs already.
    ///
    /// A thread does the same by itself, unless [`Options::compaction`](crate::Options::compaction)
    /// says no.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// # engine.flush()?;
    /// let report = engine.compact()?;
    /// println!("{} files became {}", report.files_in, report.files_out);
    /// # assert_eq!(report.files_in, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first of [`ErrorKind::Io`](crate::ErrorKind::Io), [`Corrupt`](crate::ErrorKind::Corrupt)
    /// with the path of a data file that is damaged, and [`Closed`](crate::ErrorKind::Closed);
    /// whatever could be merged is, all the same, and no point is lost.
    pub fn compact(&self) -> Result<CompactionReport> {
        self.writer()?.compact()
    }

    /// Creates a database. Writes create theirs by themselves.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// engine.create_database("plant")?;
    /// assert!(engine.create_database("plant").is_err());
    /// assert_eq!(engine.databases()[0].tables, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) for a bad name or one that is
    /// taken.
    pub fn create_database(&self, database: &str) -> Result<()> {
        let shared = self.writer()?;
        shared.schema.create_database(database)?;
        shared.settle_change()
    }

    /// Flushes, stops and gives the data directory free; later calls on any clone fail as closed.
    ///
    /// A second call does nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let mut options = arc_core::Options::default();
    /// # options.wal_segment_bytes = 64 << 10;
    /// # let engine = arc_core::Engine::builder(dir.path().join("data")).options(options).open()?;
    /// # let _ = engine.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
    /// let same = engine.clone();
    /// engine.close()?;
    /// assert!(same.write_lp("plant", b"pump,id=7 rpm=1451i").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// That of the last flush; the engine is closed all the same, and the points are in the log.
    pub fn close(&self) -> Result<()> {
        if self.inner.lock.lock().is_none() {
            return Ok(());
        }
        let EngineRole::Writer(shared) = &self.inner.role else {
            self.inner.stop();
            return Ok(());
        };
        shared.queue.close("the engine is closed");
        shared.abort_waits();
        // However long that takes: after it nothing can do it.
        let flushed = shared.flush_with(shared.manifest.lock());
        // That flush may have carried out a drop. What has to stay for now goes on the next open.
        shared.remove_retired(shared.clock.now_ns());
        self.inner.stop();
        flushed.map(drop)
    }

    /// Returns the path of the data directory.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// let engine = arc_core::Engine::open(&path)?;
    /// assert_eq!(engine.path(), path);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.inner.role {
            EngineRole::Writer(shared) => &shared.root,
            EngineRole::Reader(reader) => &reader.root,
        }
    }
}

#[cfg(test)]
mod tests;
