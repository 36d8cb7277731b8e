//! An object store in which an engine keeps its data files and its manifest.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use object_store::{ObjectStore, path::Path as StorePath};

#[cfg(feature = "query")]
use super::reads::StoreReads;
use super::{ObjectLocation, StoreLocation, StoreOptions, client::StoreClient, mount::StoreMount, spool};
use crate::{Error, Result, vfs::Vfs};

/// Where in which object store data files and manifest are kept, and how patiently. The log stays
/// in the data directory.
///
/// The store must be able to put an object if there is none (`PutMode::Create`), and show an object
/// to everybody once it is put. One data directory at a time writes below one prefix: it is noted
/// there, and another one is refused.
#[derive(Clone)]
#[must_use = "it does nothing before an engine is opened with it"]
pub struct ObjectStorage {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    options: StoreOptions,
    take_over: bool,
}

impl fmt::Debug for ObjectStorage {
    /// Without the store's settings, which have credentials among them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.store.to_string();
        f.debug_struct("ObjectStorage").field("store", &store).field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl ObjectStorage {
    /// Returns the location below `prefix` of `store`; parts of the prefix are separated by `/`.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: impl Into<String>) -> Self {
        Self { store, prefix: prefix.into(), options: StoreOptions::default(), take_over: false }
    }

    /// Sets how long and how often the store is asked.
    pub fn options(mut self, options: StoreOptions) -> Self {
        self.options = options;
        self
    }

    /// Whether a new, empty data directory takes over what another one has written below the
    /// prefix. Default no.
    ///
    /// What only the log of the other has is not here then, and is never taken from it later: if
    /// the other still runs it is fenced, and it cannot be opened again.
    pub fn take_over(mut self, take_over: bool) -> Self {
        self.take_over = take_over;
        self
    }
}

/// An [`ObjectStorage`] in use.
#[derive(Debug, Clone)]
pub(crate) struct OpenStorage {
    client: Arc<StoreClient>,
    prefix: StorePath,
    pub(crate) take_over: bool,
}

impl OpenStorage {
    /// Starts the threads for requests. Asks nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for a prefix that cannot be one; [`Error::Io`] if the threads
    /// cannot be started.
    pub(crate) fn new(storage: ObjectStorage) -> Result<Self> {
        let ObjectStorage { store, prefix, options, take_over } = storage;
        let prefix = StorePath::parse(&prefix)
            .map_err(|e| Error::InvalidOption { option: "prefix of the object store", reason: e.to_string() })?;
        Ok(Self { client: Arc::new(StoreClient::new(store, options)?), prefix, take_over })
    }

    /// Returns `local` with the data files and the manifest of the data directory `root` in the
    /// store.
    pub(crate) fn mount(&self, local: Arc<dyn Vfs>, root: &Path) -> Arc<dyn Vfs> {
        Arc::new(StoreMount::new(local, root, Arc::clone(&self.client), self.prefix.clone()))
    }

    /// Removes what a process that was killed has left in the data directory on its way to or from
    /// the store.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn clear(local: &dyn Vfs, root: &Path) -> Result<()> {
        spool::clear(local, root).map_err(|e| Error::io("clear", root.join(spool::SPOOL_DIR), e))
    }

    /// Returns the place of one writer's manifest. Its puts wait for the store as long as it takes,
    /// unless its waits are aborted.
    pub(crate) fn location(&self, folder: [&str; 2]) -> Arc<dyn ObjectLocation> {
        let prefix = folder.into_iter().fold(self.prefix.clone(), StorePath::join);
        Arc::new(StoreLocation::patient(Arc::clone(&self.client), prefix))
    }

    /// Returns the store as queries read it, with paths below the data directory.
    #[cfg(feature = "query")]
    pub(crate) fn reads(&self) -> Arc<dyn ObjectStore> {
        Arc::new(StoreReads::new(Arc::clone(&self.client), self.prefix.clone()))
    }

    /// Returns how long a caller waits who could be told to come back later.
    pub(crate) fn patience(&self) -> Duration {
        self.client.options.request_timeout
    }

    /// From now on each request is tried twice at most: the engine closes.
    pub(crate) fn abort_waits(&self) {
        self.client.abort_waits();
    }
}
