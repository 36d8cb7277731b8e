//! The engine as a whole, without SQL: tables are read as they lie in files and buffers.

#[cfg(feature = "object-store")]
mod branches;
mod contents;
#[cfg(feature = "object-store")]
mod cut_store;
mod drained;
mod golden;
#[cfg(feature = "object-store")]
mod golden_store;
mod history;
mod pushes;
mod replayed;
mod requests;
mod scenario;

use std::{path::Path, sync::Arc, time::Duration};

use super::{Engine, EngineBuilder};
use crate::vfs::CrashFs;

/// An engine that flushes and merges only when told to.
fn quiet(path: &Path) -> EngineBuilder {
    Engine::builder(path).flush_after(Duration::from_secs(1 << 30)).compaction(false)
}

/// The same in a file system in memory, which a kill is a copy of.
fn quiet_in(fs: &CrashFs) -> EngineBuilder {
    quiet(Path::new("/data")).vfs(Arc::new(fs.clone()))
}
