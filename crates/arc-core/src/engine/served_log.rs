//! What the process that writes answers to processes on other machines that read its store: how far its
//! log is acknowledged, the log's bytes, and leases that hold files for them.
//!
//! Only reads the log. A lease is written as a reader on this machine would, by this machine's clock.

use std::time::Duration;

use bytes::Bytes;

use super::{Engine, shared::Shared};
use crate::{
    Error, Result,
    catalog::ReadLease,
    model::WAL_DIR,
    store::{LogSegment, LogState, OwnerLog},
    wal::{self, LogIdentity},
};

/// Most bytes of the log that are read at once.
const LONGEST_READ: usize = 4 << 20;

/// An engine that writes to an object store answers for its own log.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use std::sync::Arc;
///
/// use arc_core::{Engine, store::{ObjectStorage, OwnerLog}};
/// use object_store::memory::InMemory;
///
/// let store = Arc::new(InMemory::new());
/// let storage = || ObjectStorage::new(Arc::clone(&store) as _, "plants");
/// let owner = Engine::builder(dir.path().join("owner")).object_store(storage()).open()?;
/// // As on another machine, through a client that asks this one.
/// let log: Arc<dyn OwnerLog> = Arc::new(owner.clone());
/// let builder = Engine::builder(dir.path().join("node")).object_store(storage());
/// let reader = builder.owner_log(log).open_reader()?;
/// let _ = owner.write_lp("plant", b"pump,id=7 rpm=1450i 1700000000000000000")?;
/// assert_eq!(reader.tables("plant")?[0].buffered_rows, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl OwnerLog for Engine {
    fn state(&self, directory: Option<&str>) -> Result<LogState> {
        let shared = self.log_owner()?;
        let state = shared.log_state()?;
        match directory {
            Some(asked) if asked != state.directory => Err(Error::OwnerUnreachable {
                reason: format!("it has the data directory {}, and not {asked}", state.directory),
            }),
            _ => Ok(state),
        }
    }

    fn segments(&self) -> Result<Vec<LogSegment>> {
        let shared = self.log_owner()?;
        let files = wal::segment_files(shared.vfs.as_ref(), &shared.root.join(WAL_DIR))?;
        Ok(files.into_iter().map(|(name, bytes)| LogSegment { name, bytes }).collect())
    }

    fn read(&self, segment: &str, offset: u64, len: usize) -> Result<Option<Bytes>> {
        let shared = self.log_owner()?;
        wal::read_segment((shared.vfs.as_ref(), &shared.root.join(WAL_DIR)), segment, offset, len.min(LONGEST_READ))
    }

    fn hold(&self, reader: u64, commit: u64, time: Duration) -> Result<()> {
        let shared = self.log_owner()?;
        ReadLease::write_for(&shared.vfs, &shared.root, (reader, commit), (shared.clock.now_ns(), time))
    }

    fn release(&self, reader: u64) {
        if let Ok(shared) = self.log_owner() {
            ReadLease::remove_for(shared.vfs.as_ref(), &shared.root, reader);
        }
    }
}

impl Engine {
    /// Returns what writes, while it may.
    fn log_owner(&self) -> Result<&Shared> {
        self.check_open()?;
        Ok(self.writer()?)
    }
}

impl Shared {
    fn log_state(&self) -> Result<LogState> {
        let LogIdentity { directory, opening } = self.log.identity();
        let unnamed = || Error::internal("a directory without an object store has no name");
        Ok(LogState {
            directory: directory.clone().ok_or_else(unnamed)?,
            opening: *opening,
            acknowledged: self.log.last_acknowledged(),
            committed: self.retired.committed(),
        })
    }
}

#[cfg(test)]
mod tests;
