//! Where whole objects are put under names: a folder of the file system, or any object store.
//!
//! Owns how an object is put so that it is there whole and durable or not at all, and what an error
//! in between means. Never looks into an object, never replaces one, never decides which are still
//! needed. The manifest is written through [`ObjectLocation`], with the same code for both
//! locations; `DurableLocal` makes a local folder an object store that syncs.

#[cfg(feature = "object-store")]
mod blocks;
#[cfg(feature = "object-store")]
mod client;
#[cfg(feature = "object-store")]
mod copies;
mod data_files;
#[cfg(feature = "object-store")]
mod durable;
mod folder;
#[cfg(feature = "object-store")]
mod log_mount;
#[cfg(feature = "object-store")]
mod mount;
#[cfg(feature = "object-store")]
mod options;
#[cfg(feature = "object-store")]
mod owner_log;
#[cfg(feature = "query")]
mod packed;
#[cfg(feature = "object-store")]
mod patience;
#[cfg(feature = "object-store")]
mod probe;
mod publish;
#[cfg(feature = "query")]
mod reads;
#[cfg(feature = "object-store")]
mod remote;
#[cfg(feature = "object-store")]
mod s3;
#[cfg(feature = "object-store")]
mod spool;
#[cfg(feature = "object-store")]
mod storage;

use std::{fmt::Debug, io, path::PathBuf};

pub(crate) use data_files::{FoundFiles, data_files, file_name, find_data_files};
#[cfg(feature = "object-store")]
pub use durable::DurableLocal;
pub(crate) use folder::FolderLocation;
#[cfg(feature = "object-store")]
pub(crate) use patience::Patience;
pub(crate) use publish::object_of_temporary;
#[cfg(test)]
#[cfg(feature = "object-store-aws")]
pub(crate) use s3::test_bucket;
#[cfg(feature = "object-store")]
pub(crate) use {
    copies::StoredObject,
    log_mount::{LogMount, carried},
    storage::OpenStorage,
};
#[cfg(feature = "object-store")]
pub use {
    options::StoreOptions,
    owner_log::{LogSegment, LogState, OwnerLog},
    probe::{KeptPromise, ProbeReport, probe},
    remote::StoreLocation,
    storage::ObjectStorage,
};
#[cfg(feature = "query")]
pub(crate) use {
    packed::{EXPIRED, PackedReads},
    reads::UNANSWERED,
};

use crate::{Error, Result};

/// A location for immutable objects, each put once under its own name.
pub trait ObjectLocation: Debug + Send + Sync {
    /// Returns the object's path, as errors name it.
    fn path(&self, name: &str) -> PathBuf;

    /// Creates the place where it is missing, and makes durable what is in it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    fn prepare(&self) -> Result<()>;

    /// Returns whether a lock keeps other writers away, for as long as any caller has the location.
    fn is_locked(&self) -> bool;

    /// Puts an object unless its name is taken. After `Ok` it is durable, and whole for every
    /// reader.
    ///
    /// # Errors
    ///
    /// A [`PutError`], which says whether it is there all the same.
    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), PutError>;

    /// Returns an object's bytes, all of them.
    ///
    /// # Errors
    ///
    /// Of the kind [`io::ErrorKind::NotFound`] where there is none.
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Returns whether there is such an object.
    ///
    /// # Errors
    ///
    /// Those of the file system or store.
    fn has(&self, name: &str) -> io::Result<bool> {
        match self.get(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            got => got.map(|_| true),
        }
    }

    /// Returns what is in the place, sorted by name; nothing if there is no such location.
    ///
    /// # Errors
    ///
    /// Those of the file system or store.
    fn list(&self) -> io::Result<Vec<FoundObject>>;

    /// Removes an object.
    ///
    /// # Errors
    ///
    /// Those of the file system or store.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Removes objects, with as few requests as the location can. Asks once.
    ///
    /// # Errors
    ///
    /// Those of the file system or store: some may be removed then.
    fn remove_all(&self, names: &[String]) -> io::Result<()> {
        names.iter().try_for_each(|name| self.remove(name))
    }
}

/// A name in an [`ObjectLocation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundObject {
    /// The name.
    pub name: String,
    /// Whether it may be removed once it is not needed: a writer that stalled before it put the
    /// same name has had the time to run into it.
    pub settled: bool,
    /// Its size.
    pub bytes: u64,
}

/// Why an object was not put, and whether it may be there all the same.
#[derive(Debug)]
pub enum PutError {
    /// It is not there, and will not be.
    NotThere(Error),
    /// Another object has the name.
    Taken,
    /// It may be there, now or later, durable or not.
    Unknown(Error),
}
