//! What is remembered of data files: the newest row of each key, by the columns that make the key.
//!
//! A data file never changes, so what was once read of it stays true. Equal sets of keys are held
//! once: whether two files have the same series shows in a pointer.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    datatypes::{DataType, Field, Schema, SchemaRef},
    error::ArrowError,
};
use parking_lot::Mutex;

use super::{
    super::lru::Lru,
    index::{Index, KeySet},
};
use crate::model::DataFile;

/// Which file, and the columns that make the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    path: String,
    crc32c: u32,
    keys: Vec<(String, DataType)>,
}

impl FileKey {
    /// A file in a table of this schema, where the key is made of columns at these keys in it.
    pub(super) fn new(file: &DataFile, schema: &Schema, keys: &[usize]) -> Self {
        let key =
            |key: &usize| schema.fields().get(*key).map(|field| (field.name().clone(), field.data_type().clone()));
        Self { path: file.path.clone(), crc32c: file.crc32c, keys: keys.iter().filter_map(key).collect() }
    }
}

/// What is known of one file.
#[derive(Debug)]
pub(super) struct KnownFile {
    pub(super) index: Index,
    /// The keys as columns, and the times, once a caller asked for them.
    decoded: OnceLock<RecordBatch>,
    /// Other columns of the rows of the index, in its order, as far as a caller asked for them: of
    /// each type that their table had then.
    columns: Mutex<HashMap<(String, DataType), ArrayRef>>,
}

impl KnownFile {
    pub(super) fn new(index: Index) -> Self {
        Self { index, decoded: OnceLock::new(), columns: Mutex::default() }
    }

    /// Returns keys and times, with the columns of `schema`.
    pub(super) fn decoded(&self, schema: &SchemaRef) -> Result<&RecordBatch, ArrowError> {
        match self.decoded.get() {
            Some(decoded) => Ok(decoded),
            None => {
                let decoded = self.index.to_batch(schema)?;
                Ok(self.decoded.get_or_init(|| decoded))
            }
        }
    }

    pub(super) fn column(&self, field: &Field) -> Option<ArrayRef> {
        self.columns.lock().get(&(field.name().clone(), field.data_type().clone())).cloned()
    }

    fn size(&self) -> usize {
        let columns = self.columns.lock();
        let decoded = self.decoded.get().map_or(0, RecordBatch::get_array_memory_size);
        self.index.size() + decoded + columns.values().map(|column| column.get_array_memory_size()).sum::<usize>()
    }
}

/// The cache of all queries.
#[derive(Debug)]
pub(in crate::query) struct NewestRowsCache {
    files: Lru<FileKey, KnownFile>,
    /// The sets of keys that a caller holds, by their hash.
    sets: Mutex<HashMap<u64, Weak<KeySet>>>,
}

impl NewestRowsCache {
    /// Returns an empty cache that holds at most so many bytes.
    pub(in crate::query) fn new(limit_bytes: usize) -> Self {
        Self { files: Lru::new(limit_bytes), sets: Mutex::default() }
    }

    pub(super) fn get(&self, key: &FileKey) -> Option<Arc<KnownFile>> {
        self.files.get(key)
    }

    /// Remembers the index of a file; one that is too large is only returned.
    pub(super) fn put(&self, key: FileKey, mut index: Index) -> Arc<KnownFile> {
        index.keys = self.shared(index.keys);
        let known = Arc::new(KnownFile::new(index));
        self.files.hold(key, &known, known.size());
        known
    }

    /// Remembers a column of the rows of an index.
    pub(super) fn put_column(&self, key: &FileKey, known: &Arc<KnownFile>, name: &str, column: ArrayRef) {
        known.columns.lock().insert((name.to_owned(), column.data_type().clone()), column);
        if self.holds(key, known) {
            self.files.hold(key.clone(), known, known.size());
        }
    }

    /// Returns whether this is what is held for `key`, so that adding to it is of use.
    pub(super) fn holds(&self, key: &FileKey, known: &Arc<KnownFile>) -> bool {
        self.files.holds(key, known)
    }

    /// Returns the equal set of keys that another index has, or this one.
    fn shared(&self, keys: Arc<KeySet>) -> Arc<KeySet> {
        let hash = keys.hash();
        let mut sets = self.sets.lock();
        let known = sets.get(&hash).and_then(Weak::upgrade).filter(|known| **known == *keys);
        if let Some(known) = known {
            return known;
        }
        sets.retain(|_, set| set.strong_count() > 0);
        sets.insert(hash, Arc::downgrade(&keys));
        keys
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringArray};

    use super::{super::index::Indexing, *};

    fn index(keys: &[&str]) -> Index {
        let mut indexing = Indexing::new(&[DataType::Utf8]).unwrap();
        let column: ArrayRef = Arc::new(keys.iter().map(|key| Some(*key)).collect::<StringArray>());
        indexing.push(&[column], &vec![1; keys.len()], |row| row as u64).unwrap();
        indexing.finish()
    }

    fn key(path: &str, crc32c: u32) -> FileKey {
        FileKey { path: path.to_owned(), crc32c, keys: vec![("host".to_owned(), DataType::Utf8)] }
    }

    #[test]
    fn equal_keys_are_held_once() {
        let cache = NewestRowsCache::new(1 << 20);
        let (one, other) = (cache.put(key("1", 0), index(&["a", "b"])), cache.put(key("2", 0), index(&["b", "a"])));
        assert!(Arc::ptr_eq(&one.index.keys, &other.index.keys));
        assert!(!Arc::ptr_eq(&one.index.keys, &cache.put(key("3", 0), index(&["a"])).index.keys));
        assert!(cache.get(&key("1", 0)).is_some() && cache.get(&key("1", 1)).is_none());
    }

    #[test]
    fn what_grows_past_what_one_file_may_take_is_held_no_more() {
        let limit_bytes = 1 << 16;
        let cache = NewestRowsCache::new(limit_bytes);
        let known = cache.put(key("1", 0), index(&["a"]));
        cache.put_column(&key("1", 0), &known, "narrow", Arc::new(Int64Array::from(vec![1; 10])));
        assert!(cache.holds(&key("1", 0), &known));
        cache.put_column(&key("1", 0), &known, "wide", Arc::new(Int64Array::from(vec![1; limit_bytes])));
        assert!(
            !cache.holds(&key("1", 0), &known) && known.column(&Field::new("wide", DataType::Int64, true)).is_some()
        );
    }
}
