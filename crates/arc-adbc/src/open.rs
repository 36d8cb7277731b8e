//! Engines that are open in this process: two databases of one folder share one.

use std::{
    collections::HashMap,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use adbc_core::error::Result;
use arc_core::{Durability, Engine, Options};

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

/// An engine that is closed when the last object that uses it is gone.
#[derive(Debug)]
pub(crate) struct OpenEngine(Engine);

impl Deref for OpenEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.0
    }
}

impl Drop for OpenEngine {
    fn drop(&mut self) {
        // Every acknowledged row is in the log: what is not flushed now the next opening brings back.
        let _ = self.0.close();
    }
}

/// Returns the engine of a folder, opened if it is not.
pub(crate) fn open(path: &Path, mode: Mode, durability: Option<Durability>) -> Result<Arc<OpenEngine>> {
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
    let engine = Arc::new(OpenEngine(engine.or_adbc()?));
    let key = (path.canonicalize().unwrap_or(path), mode);
    open.insert(key, Arc::downgrade(&engine));
    Ok(engine)
}

/// Returns the folder that an URI names.
pub(crate) fn folder(uri: &str) -> Result<PathBuf> {
    let Some((scheme, rest)) = uri.split_once("://") else { return Ok(uri.into()) };
    match scheme {
        "file" | "arc" if rest.starts_with('/') => Ok(rest.into()),
        "file" | "arc" => {
            Err(invalid(format!("option \"uri\": {uri:?} names a host; write file:///folder, or the folder alone")))
        }
        "grpc" | "grpc+tls" | "http" | "https" => Err(unsupported(format!(
            "option \"uri\": {uri:?} is a server, and this driver is the engine itself: use the driver adbc_driver_flightsql for it"
        ))),
        "s3" => {
            Err(unsupported("option \"uri\": a bucket is read through a server (arc-server with object_store_url)"))
        }
        _ => Err(invalid(format!("option \"uri\": {uri:?} is no folder; expected a path or file:///path"))),
    }
}
