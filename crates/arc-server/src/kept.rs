//! A small file of the server's own in the data directory: JSON that is read at the start, and replaced as a whole by each change.
//!
//! One change is made at a time, and it is on disk before anybody sees it. Never looks at what it keeps.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    app::StartError,
    auth::write_private,
    errors::{Failure, chain},
};

/// Those that a backup has. Tokens are not among them: a copy is for others, who are not to come in by it.
const IN_BACKUPS: [&str; 3] = ["console.json", "continuous_queries.json", "retention.json"];

/// What such a file has in it.
pub(crate) trait KeptContent: Clone + Serialize + DeserializeOwned {
    /// Name of the file below the data directory.
    const FILE: &'static str;
    /// What it is a file of, in words.
    const CONTENT: &'static str;
    /// The form of the file that is written; another one is not read.
    const VERSION: u32;
    /// Most bytes of the file.
    const MAX_BYTES: usize = usize::MAX;

    /// Returns what there is before the first change.
    fn empty() -> Self;

    /// Returns the form that the file says it has.
    fn version(&self) -> u32;
}

/// Such a file, and what it says.
#[derive(Debug)]
pub(crate) struct KeptFile<T> {
    path: PathBuf,
    value: ArcSwap<T>,
    changing: Mutex<()>,
}

impl<T: KeptContent> KeptFile<T> {
    /// Reads the file of a data directory, which may have none; `amend` makes up for what a crash has left in it.
    pub(crate) fn open(data_dir: &Path, amend: impl FnOnce(&mut T)) -> Result<Self, StartError> {
        let path = data_dir.join(T::FILE);
        let unreadable = |reason| StartError::Kept { path: path.clone(), content: T::CONTENT, reason };
        let mut value: T = read(&path).map_err(unreadable)?;
        amend(&mut value);
        Ok(Self { path, value: ArcSwap::from_pointee(value), changing: Mutex::default() })
    }

    /// Returns what there is now.
    pub(crate) fn load(&self) -> Arc<T> {
        self.value.load_full()
    }

    /// Waits until nobody else changes anything.
    pub(crate) fn lock(&self) -> Changing<'_, T> {
        Changing { kept: self, _lock: self.changing.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Makes a change; nothing is kept of one that fails.
    pub(crate) fn change<R>(&self, edit: impl FnOnce(&mut T) -> Result<R, Failure>) -> Result<R, Failure> {
        let changing = self.lock();
        let mut value = self.load().as_ref().clone();
        let made = edit(&mut value)?;
        changing.keep(Arc::new(value))?;
        Ok(made)
    }
}

/// The right to change such a file, while it lives.
#[derive(Debug)]
pub(crate) struct Changing<'a, T> {
    kept: &'a KeptFile<T>,
    _lock: MutexGuard<'a, ()>,
}

impl<T: KeptContent> Changing<'_, T> {
    /// Puts a value on disk, and then where others see it.
    pub(crate) fn keep(&self, value: Arc<T>) -> Result<(), Failure> {
        let written = serde_json::to_vec_pretty(value.as_ref()).map_err(|_| Failure::bug())?;
        if written.len() > T::MAX_BYTES {
            let text = format!("{} together may have {} bytes; delete some first", T::CONTENT, T::MAX_BYTES);
            return Err(Failure::bad_request(text));
        }
        if let Err(error) = write_private(&self.kept.path, &written) {
            tracing::error!(error = chain(&error), "cannot keep a change of {}", T::CONTENT);
            return Err(error.failure());
        }
        self.kept.value.store(value);
        Ok(())
    }
}

/// Copies what a data directory has of such files to a backup of it, or from one; what it has not is removed there.
#[expect(clippy::disallowed_methods, reason = "they are the server's own files, beside those of the engine")]
pub(crate) fn copy_all(from: &Path, to: &Path) -> arc_core::Result<()> {
    for name in IN_BACKUPS {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| arc_core::Error::Io { action, path, source }
        };
        let (from, to) = (from.join(name), to.join(name));
        match fs::read(&from) {
            Ok(bytes) => write_private(&to, &bytes).map_err(io::Error::other).map_err(failed("write", &to))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::remove_file(&to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &to)(error)),
                _ => {}
            },
            Err(error) => return Err(failed("read", &from)(error)),
        }
    }
    Ok(())
}

/// Such files by their names, as they are.
pub(crate) type KeptFiles = BTreeMap<String, String>;

/// Returns what a data directory has of such files.
#[expect(clippy::disallowed_methods, reason = "they are the server's own files, beside those of the engine")]
pub(crate) fn read_all(data_dir: &Path) -> arc_core::Result<KeptFiles> {
    let mut files = KeptFiles::new();
    for name in IN_BACKUPS {
        let path = data_dir.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => drop(files.insert(name.to_owned(), text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(arc_core::Error::Io { action: "read", path, source }),
        }
    }
    Ok(files)
}

/// Makes such files of a data directory what they are elsewhere. Those that are not JSON, or have other names, are refused
/// before any is written.
#[expect(clippy::disallowed_methods, reason = "they are the server's own files, beside those of the engine")]
pub(crate) fn write_all(data_dir: &Path, files: &KeptFiles) -> Result<(), String> {
    for (name, text) in files {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if !IN_BACKUPS.contains(&name.as_str()) || !is_json {
            return Err(format!("{name:?} is none of {IN_BACKUPS:?}, or no JSON"));
        }
    }
    fs::create_dir_all(data_dir).map_err(|error| error.to_string())?;
    for name in IN_BACKUPS {
        let path = data_dir.join(name);
        match files.get(name) {
            Some(text) => write_private(&path, text.as_bytes()).map_err(|error| chain(&error))?,
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.to_string()),
                _ => {}
            },
        }
    }
    Ok(())
}

/// Returns the names of such files that a data directory has.
pub(crate) fn found(data_dir: &Path) -> impl Iterator<Item = &'static str> {
    IN_BACKUPS.into_iter().filter(|name| data_dir.join(name).exists())
}

#[expect(clippy::disallowed_methods, reason = "it is the server's own file, beside those of the engine")]
fn read<T: KeptContent>(path: &Path) -> Result<T, String> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::empty()),
        read => read.map_err(|error| error.to_string())?,
    };
    let value: T = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    match value.version() {
        version if version == T::VERSION => Ok(value),
        other => Err(format!("it has version {other}, and this program reads {}", T::VERSION)),
    }
}
