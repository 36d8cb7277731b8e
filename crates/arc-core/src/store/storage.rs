//! An object store in which an engine keeps its data files and its manifest.

use std::{fmt, future::Future, path::Path, sync::Arc, time::Duration};

use object_store::{Error as StoreError, ObjectStore, path::Path as StorePath};

#[cfg(feature = "query")]
use super::reads::StoreReads;
use super::{
    ObjectLocation, Patience, StoreLocation, StoreOptions, client::StoreClient, mount::StoreMount, probe, spool,
};
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
    /// Which store it is, where two clients may be of one.
    identity: Option<String>,
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
        Self { store, prefix: prefix.into(), options: StoreOptions::default(), take_over: false, identity: None }
    }

    /// Says which store it is: one of the same name can copy objects from here by itself.
    #[cfg(feature = "object-store-aws")]
    pub(super) fn identity(mut self, identity: String) -> Self {
        self.identity = Some(identity);
        self
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
    pub(super) client: Arc<StoreClient>,
    pub(super) prefix: StorePath,
    pub(super) identity: Option<String>,
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
        let ObjectStorage { store, prefix, options, take_over, identity } = storage;
        let prefix = StorePath::parse(&prefix)
            .map_err(|e| Error::InvalidOption { option: "prefix of the object store", reason: e.to_string() })?;
        Ok(Self { client: Arc::new(StoreClient::new(store, options)?), prefix, identity, take_over })
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
        self.location_with(folder, Patience::Forever)
    }

    /// Returns the place of the objects below a folder.
    pub(crate) fn location_with(&self, folder: [&str; 2], patience: Patience) -> Arc<dyn ObjectLocation> {
        let prefix = self.key(folder);
        Arc::new(StoreLocation::shared(Arc::clone(&self.client), prefix, patience))
    }

    /// Returns the name of an object below a folder.
    pub(super) fn key(&self, parts: [&str; 2]) -> StorePath {
        parts.into_iter().fold(self.prefix.clone(), StorePath::join)
    }

    pub(super) fn store(&self) -> Arc<dyn ObjectStore> {
        self.client.store()
    }

    /// Waits for one request, no longer than it may take.
    pub(super) fn ask_once<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.client.once(request)
    }

    /// Tries whether the store puts an object only if there is none: the first engine that comes to
    /// it finds out.
    ///
    /// # Errors
    ///
    /// [`Error::BadStore`] if it does not; [`Error::Io`].
    pub(crate) fn check_create(&self) -> Result<()> {
        probe::check_create(self)
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
