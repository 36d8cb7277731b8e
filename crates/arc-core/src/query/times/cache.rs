//! What is remembered of data files: where the times of their rows lie.
//!
//! A data file never changes, so what was once read of it stays true.

use std::sync::Arc;

use object_store::ObjectMeta;

use super::{super::lru::Lru, pieces::PackedTimes};

/// One row group: the path of the file, what tells its bytes from others of that path, and the
/// number in the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    path: object_store::path::Path,
    modified: i64,
    row_group: usize,
}

impl GroupKey {
    pub(super) fn new(file: &ObjectMeta, row_group: usize) -> Self {
        Self { path: file.location.clone(), modified: file.last_modified.timestamp(), row_group }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.path.as_ref().len()
    }
}

/// The cache of all queries.
#[derive(Debug)]
pub(in crate::query) struct TimesCache(Lru<GroupKey, PackedTimes>);

impl TimesCache {
    /// Returns an empty cache that holds at most so many bytes.
    pub(in crate::query) fn new(limit_bytes: usize) -> Self {
        Self(Lru::new(limit_bytes))
    }

    pub(super) fn get(&self, key: &GroupKey) -> Option<Arc<PackedTimes>> {
        self.0.get(key)
    }

    pub(super) fn put(&self, key: GroupKey, times: &Arc<PackedTimes>) {
        let bytes = key.size() + times.size();
        self.0.hold(key, times, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::pieces::Noting, *};

    #[test]
    fn a_row_group_is_known_by_its_file_its_bytes_and_its_number() {
        let key = |modified, row_group| GroupKey { path: "a/b.parquet".into(), modified, row_group };
        let mut noting = Noting::default();
        noting.push(&[1, 2, 3]);
        let times = Arc::new(noting.finish());
        let cache = TimesCache::new(1 << 20);
        cache.put(key(7, 0), &times);
        assert!(cache.get(&key(7, 0)).is_some_and(|known| Arc::ptr_eq(&known, &times)));
        assert!(cache.get(&key(8, 0)).is_none() && cache.get(&key(7, 1)).is_none());
    }
}
