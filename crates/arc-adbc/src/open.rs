//! Engines that are open in this process: two databases of one folder share one.

use std::{
    collections::HashMap,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use adbc_core::error::{Error, Result, Status};
use arc_core::{Durability, Engine, Options, store::ObjectStorage};
use tempfile::TempDir;

use crate::errors::{OrAdbc as _, invalid, unsupported};

type Engines = HashMap<(PathBuf, Mode), Weak<OpenEngine>>;

static OPEN: LazyLock<Mutex<Engines>> = LazyLock::new(Mutex::default);

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
    /// What a reader of a bucket has for itself.
    _own: Option<TempDir>,
}

impl Deref for OpenEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Drop for OpenEngine {
    fn drop(&mut self) {
        // Every acknowledged row is in the log: what is not flushed now the next opening brings back.
        let _ = self.engine.close();
    }
}

/// Returns the engine of a place, opened if it is not.
pub(crate) fn open(place: &Place, mode: Mode, durability: Option<Durability>) -> Result<Arc<OpenEngine>> {
    match place {
        Place::Folder(path) => open_folder(path, mode, durability),
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
    Ok(Arc::new(OpenEngine { engine, _own: Some(own) }))
}

fn open_folder(path: &Path, mode: Mode, durability: Option<Durability>) -> Result<Arc<OpenEngine>> {
    let path = std::path::absolute(path).map_err(|error| invalid(format!("option \"uri\": {error}")))?;
    // A folder has one key, by whichever link it is named.
    let key = (path.canonicalize().unwrap_or_else(|_| path.clone()), mode);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, engine| engine.strong_count() > 0);
    if let Some(engine) = open.get(&key).and_then(Weak::upgrade) {
        return Ok(engine);
    }
    let mut options = Options::default();
    options.durability = durability.unwrap_or(options.durability);
    let builder = Engine::builder(&path).options(options);
    let engine = match mode {
        Mode::ReadWrite => builder.open(),
        Mode::Read => builder.open_reader(),
    };
    let engine = Arc::new(OpenEngine { engine: engine.or_adbc()?, _own: None });
    let key = (path.canonicalize().unwrap_or(path), mode);
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
