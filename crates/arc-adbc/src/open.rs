//! Engines that are open in this process: two databases of one folder share one.

use std::{
    collections::HashMap,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

use adbc_core::error::{Error, Result, Status};
use arc_core::{Engine, store::ObjectStorage};
use tempfile::TempDir;

use crate::{
    errors::{OrAdbc as _, invalid, unsupported},
    forks,
};

type Key = (PathBuf, Mode);

/// Engines of folders, until they are closed: one that nothing uses any more may be on its way there.
static OPEN: LazyLock<Mutex<HashMap<Key, Weak<OpenEngine>>>> = LazyLock::new(Mutex::default);
static CLOSED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, HashMap<Key, Weak<OpenEngine>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an engine writes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    #[default]
    ReadWrite,
    Read,
}

/// Where data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Folder(PathBuf),
    /// The URL of a bucket, and what is below it.
    Bucket(String),
}

/// An engine that is closed when the last object that uses it is gone.
#[derive(Debug)]
pub(crate) struct OpenEngine {
    engine: Engine,
    /// Its place among those of folders.
    key: Option<Key>,
    /// What a reader of a bucket has for itself.
    own: Option<TempDir>,
    process: u32,
}

/// Lets others open the folder of this key again, once it is dropped.
struct Closing<'a>(&'a Key);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        lock().remove(self.0);
        CLOSED.notify_all();
    }
}

impl Deref for OpenEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Drop for OpenEngine {
    fn drop(&mut self) {
        if forks::is_fork(self.process) {
            // Its threads are in the process that opened it, and so is whoever removes its folder.
            std::mem::forget((self.engine.clone(), self.own.take()));
            return;
        }
        let _closing = self.key.as_ref().map(Closing);
        // Every acknowledged row is in the log: what is not flushed now the next opening brings back.
        let _ = self.engine.close();
    }
}

/// Returns the engine of a place, opened if it is not.
pub(crate) fn open(place: &Place, mode: Mode) -> Result<Arc<OpenEngine>> {
    match place {
        Place::Folder(path) => open_folder(path, mode),
        Place::Bucket(url) if mode == Mode::Read => open_bucket(url),
        Place::Bucket(url) => Err(invalid(format!(
            "option \"uri\": {url:?} is a bucket, which a server writes to; set the option \"arc.mode\" to \"r\" to read it"
        ))),
    }
}

/// Opens what a server keeps in a bucket, as far as it was flushed there.
fn open_bucket(url: &str) -> Result<Arc<OpenEngine>> {
    let storage = ObjectStorage::from_url(url, None).or_adbc()?;
    let own = TempDir::with_prefix("arc-reader-")
        .map_err(|error| Error::with_message_and_status(format!("cannot make a folder: {error}"), Status::IO))?;
    let engine = Engine::builder(own.path()).object_store(storage).open_reader().or_adbc()?;
    Ok(Arc::new(OpenEngine { engine, key: None, own: Some(own), process: std::process::id() }))
}

fn open_folder(path: &Path, mode: Mode) -> Result<Arc<OpenEngine>> {
    let path = std::path::absolute(path).map_err(|error| invalid(format!("option \"uri\": {error}")))?;
    // A folder has one key, by whichever link it is named.
    let key = (path.canonicalize().unwrap_or_else(|_| path.clone()), mode);
    let mut open = lock();
    while let Some(known) = open.get(&key) {
        match known.upgrade() {
            Some(engine) => return Ok(engine),
            None => open = CLOSED.wait(open).unwrap_or_else(PoisonError::into_inner),
        }
    }
    let builder = Engine::builder(&path);
    let engine = match mode {
        Mode::ReadWrite => builder.open(),
        Mode::Read => builder.open_reader(),
    };
    let engine = engine.or_adbc()?;
    let key = (path.canonicalize().unwrap_or(path), mode);
    let process = std::process::id();
    let engine = Arc::new(OpenEngine { engine, key: Some(key.clone()), own: None, process });
    open.insert(key, Arc::downgrade(&engine));
    Ok(engine)
}

/// Returns the place that an URI names.
pub(crate) fn place(uri: &str) -> Result<Place> {
    let Some((scheme, rest)) = uri.split_once("://") else { return Ok(Place::Folder(uri.into())) };
    match scheme {
        "file" | "arc" if rest.starts_with('/') => Ok(Place::Folder(rest.into())),
        "file" | "arc" => {
            Err(invalid(format!("option \"uri\": {uri:?} names a host; write file:///folder, or the folder alone")))
        }
        "s3" => Ok(Place::Bucket(uri.to_owned())),
        "grpc" | "grpc+tls" | "http" | "https" => Err(unsupported(format!(
            "option \"uri\": {uri:?} is a server, and this driver is the engine itself: use the driver adbc_driver_flightsql for it"
        ))),
        _ => Err(invalid(format!("option \"uri\": {uri:?} is no folder; expected a path or file:///path"))),
    }
}
