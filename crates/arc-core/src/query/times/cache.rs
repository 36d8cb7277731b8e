//! What is remembered of data files: where the times of their rows lie.
//!
//! A data file never changes, so what was once read of it stays true. Bounded in bytes; what was not used for longest goes
//! first.

use std::{collections::HashMap, sync::Arc};

use object_store::ObjectMeta;
use parking_lot::Mutex;

use super::pieces::Times;

/// One row group: the path of the file, what tells its bytes from others of that path, and the number in the file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    path: object_store::path::Path,
    modified: i64,
    row_group: usize,
}

impl Place {
    pub(super) fn new(file: &ObjectMeta, row_group: usize) -> Self {
        Self { path: file.location.clone(), modified: file.last_modified.timestamp(), row_group }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.path.as_ref().len()
    }
}

/// The cache of all queries.
#[derive(Debug)]
pub(in crate::query) struct Cache {
    limit_bytes: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    entries: HashMap<Place, Entry>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    times: Arc<Times>,
    used: u64,
}

impl Entry {
    fn size(&self, place: &Place) -> usize {
        self.times.size() + place.size() + size_of::<Self>()
    }
}

impl Cache {
    /// Returns an empty cache that holds at most so many bytes.
    pub(in crate::query) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, held: Mutex::default() }
    }

    pub(super) fn get(&self, place: &Place) -> Option<Arc<Times>> {
        let mut held = self.held.lock();
        held.uses += 1;
        let uses = held.uses;
        let entry = held.entries.get_mut(place)?;
        entry.used = uses;
        Some(Arc::clone(&entry.times))
    }

    pub(super) fn put(&self, place: Place, times: &Arc<Times>) {
        let mut held = self.held.lock();
        held.uses += 1;
        let entry = Entry { times: Arc::clone(times), used: held.uses };
        held.bytes += entry.size(&place);
        if let Some(before) = held.entries.insert(place.clone(), entry) {
            held.bytes = held.bytes.saturating_sub(before.size(&place));
        }
        if held.bytes > self.limit_bytes {
            held.shrink(self.limit_bytes - self.limit_bytes / 4);
        }
    }
}

impl Held {
    /// Lets go of what was not used for longest. Some at a time, so that a full cache is not sorted for each new entry.
    fn shrink(&mut self, bytes: usize) {
        let mut places: Vec<(u64, Place)> =
            self.entries.iter().map(|(place, entry)| (entry.used, place.clone())).collect();
        places.sort_unstable_by_key(|(used, _)| *used);
        for (_, place) in places {
            if self.bytes <= bytes {
                break;
            }
            if let Some(entry) = self.entries.remove(&place) {
                self.bytes = self.bytes.saturating_sub(entry.size(&place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::pieces::Noting, *};

    fn place(row_group: usize) -> Place {
        Place { path: "a/b.parquet".into(), modified: 7, row_group }
    }

    #[test]
    fn the_bytes_are_bounded_and_what_was_not_used_goes_first() {
        let mut noting = Noting::default();
        noting.push(&[1, 2, 3]);
        let times = Arc::new(noting.finish());
        let one = Entry { times: Arc::clone(&times), used: 0 }.size(&place(0));
        let cache = Cache::new(8 * one);
        (0..8).for_each(|row_group| cache.put(place(row_group), &times));
        assert!((0..8).all(|row_group| cache.get(&place(row_group)).is_some()));
        assert!(cache.get(&place(0)).is_some() && cache.get(&Place { modified: 8, ..place(0) }).is_none());
        cache.put(place(0), &times);
        cache.put(place(8), &times);
        let held: Vec<usize> = (0..9).filter(|row_group| cache.get(&place(*row_group)).is_some()).collect();
        assert_eq!(held, [0, 4, 5, 6, 7, 8]);
        assert_eq!(cache.held.lock().bytes, 6 * one);
    }
}
