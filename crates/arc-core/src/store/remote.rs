//! Any object store as a place for objects.
//!
//! Owns the thread that waits for the store, and what an unclear answer means: a request that failed or took too long may
//! still be carried out, so an object is put again, with the same bytes under the same name, until the store says what it
//! has there. Never puts other bytes under a name whose fate is unknown.

use std::{
    error::Error as StdError,
    future::Future,
    io,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, path::Path as StorePath,
};
use tokio::runtime::{Builder, Runtime};

use super::{ObjectPlace, PlacedObject, PutError};
use crate::{Error, Result};

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How patient a [`StorePlace`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// How long one request may take before it counts as failed; 30 s. Longer bears slower stores, shorter notices a hanging
    /// one sooner.
    pub request_timeout: Duration,
    /// How often a request is tried, at least once; 10. More tries bear longer outages, while the caller waits.
    pub tries: u32,
    /// Pause after the first try, twice as long after each further one, up to 15 s; 250 ms.
    pub first_pause: Duration,
    /// How much older than the newest object one has to be to be removed; a day. It must be longer than any writer can
    /// stall between deciding to put an object and putting it: the object stops that writer. Longer keeps more objects.
    pub settled_after: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(30),
            tries: 10,
            first_pause: Duration::from_millis(250),
            settled_after: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// [`ObjectPlace`] below a prefix of an object store that can put if absent. Its calls block; they may be made from
/// anywhere.
#[derive(Debug)]
pub struct StorePlace {
    store: Arc<dyn ObjectStore>,
    prefix: StorePath,
    options: StoreOptions,
    /// The requests run here, on a thread of their own, so that a caller may be on a thread of another runtime.
    runtime: Option<Runtime>,
}

impl StorePlace {
    /// Returns the place below `prefix` of `store`. Starts a thread, asks nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the thread cannot be started.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: StorePath, options: StoreOptions) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("arc-store").enable_all().build();
        let runtime = runtime.map_err(|e| Error::io("start a thread for", prefix.as_ref(), e))?;
        Ok(Self { store, prefix, options, runtime: Some(runtime) })
    }

    fn key(&self, name: &str) -> StorePath {
        self.prefix.clone().join(name)
    }

    /// Waits for one request, no longer than it may take.
    fn once<T, F>(&self, request: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let generic = |source: io::Error| StoreError::Generic { store: "StorePlace", source: source.into() };
        let stopped = || generic(io::Error::other("the thread for requests has stopped"));
        let runtime = self.runtime.as_ref().ok_or_else(stopped)?;
        let after = self.options.request_timeout;
        let (sender, receiver) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            let answer = tokio::time::timeout(after, request).await;
            // The receiver waits below for as long as this takes.
            let _ = sender.send(answer);
        });
        let answer = receiver.recv().map_err(|_| stopped())?;
        answer.unwrap_or_else(|_| Err(generic(io::ErrorKind::TimedOut.into())))
    }

    /// Asks until there is an answer that asking again would not change.
    fn ask<T, F>(&self, request: impl Fn() -> F) -> io::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let mut tried = 0;
        loop {
            match self.once(request()) {
                Ok(answer) => return Ok(answer),
                Err(error) if is_final(&error) || tried + 1 >= self.options.tries => return Err(io_error(error)),
                Err(error) => tracing::debug!(prefix = %self.prefix, %error, "the object store failed; asking again"),
            }
            self.pause(tried);
            tried += 1;
        }
    }

    fn pause(&self, tried: u32) {
        let pause = self.options.first_pause.saturating_mul(2_u32.saturating_pow(tried));
        thread::sleep(pause.min(LONGEST_PAUSE));
    }

    fn put_once(&self, key: &StorePath, payload: &PutPayload) -> Result<(), StoreError> {
        let (store, key, payload) = (Arc::clone(&self.store), key.clone(), payload.clone());
        let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.once(async move { store.put_opts(&key, payload, create).await.map(|_| ()) })
    }
}

impl Drop for StorePlace {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it would panic on a thread of another runtime. Nothing runs here: every call has had its answer.
            runtime.shutdown_background();
        }
    }
}

impl ObjectPlace for StorePlace {
    fn path(&self, name: &str) -> PathBuf {
        self.key(name).as_ref().into()
    }

    /// There are no folders to create, and what a store has said to have is durable.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), PutError> {
        let key = self.key(name);
        let payload = PutPayload::from(bytes.to_vec());
        let failed = |error| Error::io("put", self.path(name), io_error(error));
        let mut tried = 0;
        loop {
            let error = match self.put_once(&key, &payload) {
                Ok(()) => return Ok(()),
                // Only of the first try: an earlier one may be on its way.
                Err(error) if tried == 0 && is_refusal(&error) => return Err(PutError::NotThere(failed(error))),
                Err(error) => error,
            };
            // It may have been put by this try, by one before, or within the client: the bytes tell, for nobody else writes
            // the same ones. If nothing is there, that says nothing: the request may still be under way.
            match self.once(read(Arc::clone(&self.store), key.clone())) {
                Ok(found) if found == bytes => return Ok(()),
                Ok(_) => return Err(PutError::Taken),
                Err(_) if tried + 1 >= self.options.tries => return Err(PutError::Unknown(failed(error))),
                Err(_) => tracing::debug!(%key, %error, "the object store failed; putting again"),
            }
            self.pause(tried);
            tried += 1;
        }
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let key = self.key(name);
        self.ask(|| read(Arc::clone(&self.store), key.clone()))
    }

    fn list(&self) -> io::Result<Vec<PlacedObject>> {
        let listed = self.ask(|| {
            let (store, prefix) = (Arc::clone(&self.store), self.prefix.clone());
            async move { store.list(Some(&prefix)).try_collect::<Vec<_>>().await }
        })?;
        // By the store's own clock, which is the only one that all writers share.
        let newest = listed.iter().map(|object| object.last_modified).max();
        let is_settled = |modified: DateTime<Utc>| {
            let age = newest.and_then(|newest| newest.signed_duration_since(modified).to_std().ok());
            age.is_some_and(|age| age >= self.options.settled_after)
        };
        let mut objects: Vec<_> = listed
            .iter()
            .filter_map(|object| {
                let mut below = object.location.prefix_match(&self.prefix)?;
                let name = below.next()?.as_ref().to_owned();
                below.next().is_none().then(|| PlacedObject { name, settled: is_settled(object.last_modified) })
            })
            .collect();
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(objects)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let key = self.key(name);
        let removed = self.ask(|| {
            let (store, key) = (Arc::clone(&self.store), key.clone());
            async move { store.delete(&key).await }
        });
        match removed {
            // Some stores say so, some do not; an earlier try may have removed it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Reads an object, and checks that it is all of it: a connection may break within the body.
async fn read(store: Arc<dyn ObjectStore>, key: StorePath) -> Result<Vec<u8>, StoreError> {
    let got = store.get(&key).await?;
    let size = got.meta.size;
    let bytes = got.bytes().await?;
    if bytes.len() as u64 == size {
        return Ok(bytes.into());
    }
    let source = io::Error::new(io::ErrorKind::UnexpectedEof, format!("{} of {size} bytes came", bytes.len()));
    Err(StoreError::Generic { store: "StorePlace", source: source.into() })
}

/// Returns whether the store has refused a request for good, without carrying it out.
fn is_refusal(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::InvalidPath { .. }
            | StoreError::NotSupported { .. }
            | StoreError::NotImplemented { .. }
            | StoreError::PermissionDenied { .. }
            | StoreError::Unauthenticated { .. }
    )
}

/// Returns whether asking again is of no use.
fn is_final(error: &StoreError) -> bool {
    is_refusal(error) || matches!(error, StoreError::NotFound { .. })
}

fn io_error(error: StoreError) -> io::Error {
    let kind = match &error {
        StoreError::NotFound { .. } => io::ErrorKind::NotFound,
        StoreError::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => io::ErrorKind::Unsupported,
        other => source_kind(other),
    };
    io::Error::new(kind, error)
}

/// Returns the kind of the innermost error of the operating system.
fn source_kind(error: &StoreError) -> io::ErrorKind {
    let mut kind = io::ErrorKind::Other;
    let mut source = error.source();
    while let Some(error) = source {
        kind = error.downcast_ref::<io::Error>().map_or(kind, io::Error::kind);
        source = error.source();
    }
    kind
}
