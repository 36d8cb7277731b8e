//! What is remembered as long as there is room: a map bounded in bytes. What was not used for
//! longest goes first.
//!
//! Owns what is held and the count of its bytes, as its users tell them. Never computes a value,
//! never waits but for its own lock. Used for what is known of data files, which never change
//! (`times`, `latest`).

use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;

/// Part of the limit that one entry may take: more would push out too much else.
const LARGEST: usize = 4;

#[derive(Debug)]
pub(super) struct Lru<K, V> {
    limit_bytes: usize,
    held: Mutex<LruState<K, V>>,
}

#[derive(Debug)]
struct LruState<K, V> {
    entries: HashMap<K, LruEntry<V>>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct LruEntry<V> {
    value: Arc<V>,
    bytes: usize,
    used: u64,
}

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    /// Returns an empty map that holds at most so many bytes.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, held: Mutex::new(LruState { entries: HashMap::new(), bytes: 0, uses: 0 }) }
    }

    pub(super) fn get(&self, key: &K) -> Option<Arc<V>> {
        let mut held = self.held.lock();
        let used = held.next_use();
        let entry = held.entries.get_mut(key)?;
        entry.used = used;
        Some(Arc::clone(&entry.value))
    }

    /// Remembers `value`, in place of what there was, unless it is too large. `bytes` are those of
    /// the value and its key.
    pub(super) fn hold(&self, key: K, value: &Arc<V>, bytes: usize) {
        let mut held = self.held.lock();
        held.remove(&key);
        let bytes = bytes + size_of::<LruEntry<V>>();
        if bytes > self.limit_bytes / LARGEST {
            return;
        }
        held.bytes += bytes;
        let used = held.next_use();
        held.entries.insert(key, LruEntry { value: Arc::clone(value), bytes, used });
        if held.bytes > self.limit_bytes {
            held.shrink(self.limit_bytes - self.limit_bytes / 4);
        }
    }

    /// Returns whether `value` itself is what is held.
    pub(super) fn holds(&self, key: &K, value: &Arc<V>) -> bool {
        self.held.lock().entries.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.value, value))
    }
}

impl<K: Clone + Eq + Hash, V> LruState<K, V> {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    /// Lets go of what was not used for longest. Some at a time, so that a full map is not sorted
    /// for each new entry.
    fn shrink(&mut self, bytes: usize) {
        let mut keys: Vec<(u64, K)> = self.entries.iter().map(|(key, entry)| (entry.used, key.clone())).collect();
        keys.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in keys {
            if self.bytes <= bytes {
                break;
            }
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 100;

    const ENTRY_BYTES: usize = BYTES + size_of::<LruEntry<usize>>();

    /// Room for eight, of which all is taken.
    fn full() -> Lru<usize, usize> {
        let lru = Lru::new(8 * ENTRY_BYTES);
        (0..8).for_each(|key| lru.hold(key, &Arc::new(key), BYTES));
        assert!((0..8).all(|key| lru.get(&key).as_deref() == Some(&key)));
        lru
    }

    fn held(lru: &Lru<usize, usize>) -> Vec<usize> {
        let held = lru.held.lock();
        assert_eq!(held.bytes, held.entries.values().map(|entry| entry.bytes).sum::<usize>());
        let mut keys: Vec<usize> = held.entries.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn the_bytes_are_bounded_and_what_was_not_used_goes_first() {
        let lru = full();
        assert!(lru.get(&0).is_some() && lru.get(&8).is_none());
        lru.hold(8, &Arc::new(8), BYTES);
        assert_eq!(held(&lru), [0, 4, 5, 6, 7, 8]);
        assert_eq!(lru.held.lock().bytes, 6 * ENTRY_BYTES);
    }

    #[test]
    fn a_value_takes_the_place_of_the_one_before() {
        let lru = full();
        let (before, value) = (lru.get(&3).unwrap(), Arc::new(30));
        lru.hold(3, &value, BYTES);
        assert_eq!((lru.get(&3).as_deref(), held(&lru).len()), (Some(&30), 8));
        assert!(lru.holds(&3, &value) && !lru.holds(&3, &before) && !lru.holds(&4, &value));
    }

    #[test]
    fn what_is_larger_than_its_part_is_not_held_and_takes_nothing_elses_place() {
        let lru = full();
        let value = Arc::new(30);
        lru.hold(3, &value, 2 * ENTRY_BYTES);
        assert!(!lru.holds(&3, &value));
        assert_eq!(held(&lru), [0, 1, 2, 4, 5, 6, 7]);
    }
}
