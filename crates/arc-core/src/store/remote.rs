//! A prefix of any object store as a location for objects.
//!
//! Owns what an unclear answer means: a request that failed or took too long may still be carried
//! out, so an object is put again, with the same bytes under the same name, until the store says
//! what it has there. Never puts other bytes under a name whose fate is unknown.

use std::{io, path::PathBuf, sync::Arc};

use chrono::{DateTime, Utc};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt, PutPayload, path::Path as StorePath};

use super::{
    FoundObject, ObjectLocation, Patience, PutError, StoreOptions,
    client::{PutFailure, StoreClient, io_error, read},
};
use crate::{Error, Result};

/// [`ObjectLocation`] below a prefix of an object store that can put if absent. Its calls block;
/// they may be made from anywhere.
#[derive(Debug)]
pub struct StoreLocation {
    client: Arc<StoreClient>,
    prefix: StorePath,
    patience: Patience,
}

impl StoreLocation {
    /// Returns the location below `prefix` of `store`. Starts threads, asks nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the threads cannot be started.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: StorePath, options: StoreOptions) -> Result<Self> {
        Ok(Self { client: Arc::new(StoreClient::new(store, options)?), prefix, patience: Patience::Tries })
    }

    /// Returns a location of a client that others use, too.
    pub(super) fn shared(client: Arc<StoreClient>, prefix: StorePath, patience: Patience) -> Self {
        Self { client, prefix, patience }
    }

    fn key(&self, name: &str) -> StorePath {
        self.prefix.clone().join(name)
    }
}

impl ObjectLocation for StoreLocation {
    fn path(&self, name: &str) -> PathBuf {
        self.key(name).as_ref().into()
    }

    /// There are no folders to create, and what a store has said to have is durable.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn is_locked(&self) -> bool {
        false
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), PutError> {
        let key = self.key(name);
        let payload = PutPayload::from(bytes.to_vec());
        // The bytes tell whose object it is, for no other caller writes the same ones.
        let is_ours = || self.client.once(read(self.client.store(), key.clone())).map(|found| found == bytes);
        let failed = |error| Error::io("put", self.path(name), io_error(error));
        self.client.put_new(&key, &payload, self.patience, is_ours).map_err(|failure| match failure {
            PutFailure::NotThere(error) => PutError::NotThere(failed(error)),
            PutFailure::Taken => PutError::Taken,
            PutFailure::Unknown(error) => PutError::Unknown(failed(error)),
        })
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let key = self.key(name);
        self.client.ask(|| read(self.client.store(), key.clone())).map_err(io_error)
    }

    fn list(&self) -> io::Result<Vec<FoundObject>> {
        let listed = self.client.ask(|| {
            let (store, prefix) = (self.client.store(), self.prefix.clone());
            async move { store.list(Some(&prefix)).try_collect::<Vec<_>>().await }
        });
        let listed = listed.map_err(io_error)?;
        // By the store's own clock, which is the only one that all writers share.
        let newest = listed.iter().map(|object| object.last_modified).max();
        let is_settled = |modified: DateTime<Utc>| {
            let age = newest.and_then(|newest| newest.signed_duration_since(modified).to_std().ok());
            age.is_some_and(|age| age >= self.client.options.settled_after)
        };
        let mut objects: Vec<_> = listed
            .iter()
            .filter_map(|object| {
                let mut below = object.location.prefix_match(&self.prefix)?;
                let name = below.next()?.as_ref().to_owned();
                let settled = is_settled(object.last_modified);
                below.next().is_none().then_some(FoundObject { name, settled, bytes: object.size })
            })
            .collect();
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let key = self.key(name);
        let removed = self.client.ask(|| {
            let (store, key) = (self.client.store(), key.clone());
            async move { store.delete(&key).await }
        });
        match removed.map_err(io_error) {
            // Some stores say so, some do not; an earlier try may have removed it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn remove_all(&self, names: &[String]) -> io::Result<()> {
        let keys: Vec<Result<StorePath, StoreError>> = names.iter().map(|name| Ok(self.key(name))).collect();
        let store = self.client.store();
        let removed = self.client.once(async move {
            let removed = store.delete_stream(stream::iter(keys).boxed()).collect::<Vec<_>>().await;
            // An earlier try may have removed some.
            let is_gone = |error: &StoreError| matches!(error, StoreError::NotFound { .. });
            removed.into_iter().filter_map(Result::err).find(|error| !is_gone(error)).map_or(Ok(()), Err)
        });
        removed.map_err(io_error)
    }
}
