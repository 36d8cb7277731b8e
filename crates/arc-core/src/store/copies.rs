//! Objects that begin as copies of others: made by the store itself, and what a store says of an object,
//! by which a copy is compared with what it is a copy of.
//!
//! Never decides what is copied, and never believes a copy that it was only told of.

use std::{collections::HashMap, io, path::PathBuf, sync::Arc};

use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStoreExt, path::Path as StorePath};

use super::{OpenStorage, client::io_error};

/// What a store says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredObject {
    pub(crate) bytes: u64,
    e_tag: Option<String>,
}

impl StoredObject {
    /// Returns whether two objects have the same bytes as far as the store tells; `None` if it does not.
    ///
    /// Tags that differ say nothing: those of an object that was put in parts, or under another key of
    /// encryption, are not made of its bytes alone.
    pub(crate) fn has_bytes_of(&self, other: &Self) -> Option<bool> {
        if self.bytes != other.bytes {
            return Some(false);
        }
        (self.e_tag.is_some() && self.e_tag == other.e_tag).then_some(true)
    }
}

impl OpenStorage {
    /// Returns the location of a path below the prefix, as errors name it.
    pub(crate) fn named(&self, path: &str) -> PathBuf {
        self.key_below(path).map_or_else(|_| path.into(), |key| key.as_ref().into())
    }

    /// Returns whether objects of `other` can be copied here by the store itself.
    pub(crate) fn is_same_store(&self, other: &Self) -> bool {
        let is_named_alike = self.identity.is_some() && self.identity == other.identity;
        is_named_alike || Arc::ptr_eq(&self.client.store(), &other.client.store())
    }

    /// Returns whether what is here would lie in the folder `folder` of `other`, which is in the same store.
    pub(crate) fn is_inside(&self, other: &Self, folder: &str) -> bool {
        self.prefix.prefix_matches(&other.prefix.clone().join(folder))
    }

    /// Returns all objects below the prefix, by their paths below it.
    pub(crate) fn list_below(&self) -> io::Result<HashMap<String, StoredObject>> {
        let list = || {
            let (store, prefix) = (self.client.store(), self.prefix.clone());
            async move { store.list(Some(&prefix)).try_collect::<Vec<_>>().await }
        };
        let listed = self.client.ask(list).map_err(io_error)?;
        let below = |ObjectMeta { location, size, e_tag, .. }: ObjectMeta| {
            let path = match self.prefix.as_ref() {
                "" => location.as_ref(),
                prefix => location.as_ref().strip_prefix(prefix)?.strip_prefix('/')?,
            };
            Some((path.to_owned(), StoredObject { bytes: size, e_tag }))
        };
        Ok(listed.into_iter().filter_map(below).collect())
    }

    /// Has the store copy the object at `path` below the prefix of `other` to the same path here. It may
    /// be copied twice, or later than this returns; the bytes under one path never differ.
    pub(crate) fn copy_from(&self, other: &Self, path: &str) -> io::Result<()> {
        let (from, to) = (other.key_below(path)?, self.key_below(path)?);
        let copy = || {
            let (store, from, to) = (self.client.store(), from.clone(), to.clone());
            async move { store.copy(&from, &to).await }
        };
        self.client.ask(copy).map_err(io_error)
    }

    /// Removes an object; asks once.
    pub(crate) fn remove_below(&self, path: &str) -> io::Result<()> {
        let (store, key) = (self.client.store(), self.key_below(path)?);
        self.client.once(async move { store.delete(&key).await }).map_err(io_error)
    }

    fn key_below(&self, path: &str) -> io::Result<StorePath> {
        let unusable = |_| io::Error::new(io::ErrorKind::InvalidInput, "the path cannot be that of an object");
        // `parse` takes the path as it is on disk; `join` would encode the encoded names once more.
        StorePath::parse(format!("{}/{path}", self.prefix)).map_err(unusable)
    }
}
