//! Requests to an object store, made by threads that wait for the answer.
//!
//! Owns the threads on which requests run, their time limit, and the pauses between tries. What
//! failed or took too long may still be carried out: only what does no harm when it is done twice,
//! or late, may be asked for through here. Never decides what an answer means.

use std::{
    error::Error as StdError,
    fmt,
    future::Future,
    io,
    sync::{Arc, mpsc},
    time::Duration,
};

use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, path::Path as StorePath,
};
use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Runtime};

use super::{Patience, StoreOptions};
use crate::{Error, Result};

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Threads for requests: they wait for the network, and decrypt.
const THREADS: usize = 2;

/// How often a request is tried once waits are aborted: one failure is no outage.
const HURRIED_TRIES: u32 = 2;

/// A store, and how patient its users are. Its calls block; they may be made from anywhere.
pub(super) struct StoreClient {
    store: Arc<dyn ObjectStore>,
    pub(super) options: StoreOptions,
    /// The requests run here, on threads of their own, so that a caller may be on a thread of
    /// another runtime.
    runtime: Option<Runtime>,
    /// Whether no caller is to wait for a store that fails any more.
    aborted: Mutex<bool>,
    abort: Condvar,
}

/// Why an object was not put, and whether it may be there all the same.
#[derive(Debug)]
pub(super) enum PutFailure {
    /// It is not there, and will not be.
    NotThere(StoreError),
    /// Another object has the name.
    Taken,
    /// It may be there, now or later.
    Unknown(StoreError),
}

impl fmt::Debug for StoreClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreClient")
            .field("store", &self.store.to_string())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl StoreClient {
    /// Starts threads, asks nothing yet.
    pub(super) fn new(store: Arc<dyn ObjectStore>, options: StoreOptions) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_name("arc-store").enable_all().build();
        let runtime = runtime.map_err(|e| Error::io("start a thread for", store.to_string(), e))?;
        Ok(Self { store, options, runtime: Some(runtime), aborted: Mutex::new(false), abort: Condvar::new() })
    }

    pub(super) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// From now on a request is tried twice at most, and no caller pauses.
    pub(super) fn abort_waits(&self) {
        *self.aborted.lock() = true;
        self.abort.notify_all();
    }

    pub(super) fn is_hurried(&self) -> bool {
        *self.aborted.lock()
    }

    /// Starts a request; its answer comes to `sender`, no later than a request may take.
    fn start<T, F>(&self, request: F, sender: impl FnOnce(Result<T, StoreError>) + Send + 'static)
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let Some(runtime) = self.runtime.as_ref() else { return };
        let after = self.options.request_timeout;
        runtime.spawn(async move {
            let answer = tokio::time::timeout(after, request).await;
            sender(answer.unwrap_or_else(|_| Err(generic(io::ErrorKind::TimedOut.into()))));
        });
    }

    /// Waits for one request, no longer than it may take.
    pub(super) fn once<T, F>(&self, request: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.start(request, move |answer| {
            // The receiver waits below for as long as this takes.
            let _ = sender.send(answer);
        });
        receiver.recv().unwrap_or_else(|_| Err(stopped()))
    }

    /// Asks until there is an answer that asking again would not change.
    pub(super) fn ask<T, F>(&self, request: impl Fn() -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let mut tried = 0;
        loop {
            match self.once(request()) {
                Ok(answer) => return Ok(answer),
                Err(error) if is_final(&error) || self.is_last(tried) => return Err(error),
                Err(error) => tracing::debug!(store = %self.store, %error, "the object store failed; asking again"),
            }
            self.pause(tried);
            tried += 1;
        }
    }

    /// As [`Self::ask`], for a caller that must not be blocked.
    #[cfg(feature = "query")]
    pub(super) async fn ask_later<T, F>(&self, request: impl Fn() -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let mut tried = 0;
        loop {
            let (sender, receiver) = futures::channel::oneshot::channel();
            self.start(request(), |answer| {
                // Who no longer waits has dropped its query.
                let _ = sender.send(answer);
            });
            match receiver.await.unwrap_or_else(|_| Err(stopped())) {
                Ok(answer) => return Ok(answer),
                Err(error) if is_final(&error) || self.is_last(tried) => return Err(error),
                Err(error) => tracing::debug!(store = %self.store, %error, "the object store failed; asking again"),
            }
            tokio::time::sleep(self.pause_after(tried)).await;
            tried += 1;
        }
    }

    /// Puts an object unless its name is taken, and finds out what became of it.
    ///
    /// It may have been put by any try, or within the store's own client, though the answer was an
    /// error: `is_ours` then looks at what is there. If nothing is there, that says nothing, for a
    /// request may still be under way: the same bytes are put again, for as long as `patience` says.
    pub(super) fn put_new(
        &self,
        key: &StorePath,
        payload: &PutPayload,
        patience: Patience,
        is_ours: impl Fn() -> Result<bool, StoreError>,
    ) -> Result<(), PutFailure> {
        let mut tried = 0;
        loop {
            let (store, location, bytes) = (self.store(), key.clone(), payload.clone());
            let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            let error = match self.once(async move { store.put_opts(&location, bytes, create).await }) {
                Ok(_) => return Ok(()),
                // Only of the first try: an earlier one may be on its way.
                Err(error) if tried == 0 && is_refusal(&error) => return Err(PutFailure::NotThere(error)),
                Err(error) => error,
            };
            let gives_up = match patience {
                Patience::Once => true,
                Patience::Tries => self.is_last(tried),
                Patience::Forever => self.is_last(tried) && self.is_hurried(),
            };
            match is_ours() {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(PutFailure::Taken),
                Err(_) if gives_up => return Err(PutFailure::Unknown(error)),
                Err(_) if self.is_last(tried) => {
                    tracing::warn!(%key, %error, "the object store fails; putting again until it answers");
                }
                Err(_) => tracing::debug!(%key, %error, "the object store failed; putting again"),
            }
            self.pause(tried);
            tried += 1;
        }
    }

    /// Returns the size of an object.
    pub(super) fn size(&self, key: &StorePath) -> Result<u64, StoreError> {
        self.ask(|| {
            let (store, key) = (self.store(), key.clone());
            async move { Ok(store.head(&key).await?.size) }
        })
    }

    pub(super) fn is_last(&self, tried: u32) -> bool {
        let tries = if self.is_hurried() { self.options.tries.min(HURRIED_TRIES) } else { self.options.tries };
        tried.saturating_add(1) >= tries
    }

    fn pause_after(&self, tried: u32) -> Duration {
        self.options.first_pause.saturating_mul(2_u32.saturating_pow(tried)).min(LONGEST_PAUSE)
    }

    pub(super) fn pause(&self, tried: u32) {
        let mut aborted = self.aborted.lock();
        if !*aborted {
            self.abort.wait_for(&mut aborted, self.pause_after(tried));
        }
    }
}

impl Drop for StoreClient {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it would panic on a thread of another runtime. What runs here no caller
            // waits for.
            runtime.shutdown_background();
        }
    }
}

/// Reads an object, and checks that it is all of it: a connection may break within the body.
pub(super) async fn read(store: Arc<dyn ObjectStore>, key: StorePath) -> Result<Vec<u8>, StoreError> {
    let got = store.get(&key).await?;
    let size = got.meta.size;
    let bytes = got.bytes().await?;
    check_length(bytes.len(), size)?;
    Ok(bytes.into())
}

pub(super) fn check_length(came: usize, expected: u64) -> Result<(), StoreError> {
    if came as u64 == expected {
        return Ok(());
    }
    Err(generic(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{came} of {expected} bytes came"))))
}

pub(super) fn generic(source: io::Error) -> StoreError {
    StoreError::Generic { store: "object store", source: source.into() }
}

fn stopped() -> StoreError {
    generic(io::Error::other("the threads for requests have stopped"))
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

/// Returns the error with the text of its first and its last cause: each one in between says the
/// same again.
#[expect(clippy::needless_pass_by_value, reason = "it stands in for the error")]
pub(super) fn io_error(error: StoreError) -> io::Error {
    let kind = match &error {
        StoreError::NotFound { .. } => io::ErrorKind::NotFound,
        StoreError::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => io::ErrorKind::Unsupported,
        other => source_kind(other),
    };
    let text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause.and_then(StdError::source) {
        cause = Some(next);
    }
    let cause = cause.map(ToString::to_string).filter(|cause| !text.contains(cause.as_str()));
    io::Error::new(kind, cause.map_or(text.clone(), |cause| format!("{text}: {cause}")))
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
