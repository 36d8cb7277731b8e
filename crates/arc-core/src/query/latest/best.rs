//! The newest row of each key among several parts.

use std::{hash::BuildHasher, sync::Arc};

use arrow::array::{Array, BooleanArray};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::index::{Index, KeySet, of_slot};

/// Key sets whose slots are remembered: most parts of a table have the same keys.
const MAPPED: usize = 2;

/// What is the newest so far.
#[derive(Debug, Default)]
pub(super) struct NewestSoFar {
    hasher: FixedState,
    slots: HashTable<usize>,
    /// The key of each slot, one after the other, and where it ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    newest: Vec<Option<NewestRow>>,
    mapped: Vec<(Arc<KeySet>, Vec<usize>)>,
}

/// The newest row of one key: in which part, and at which entry of its index.
#[derive(Debug, Clone, Copy)]
struct NewestRow {
    time: i64,
    part: usize,
    entry: usize,
}

impl NewestSoFar {
    /// Takes the index of a part. `passes` says which of its rows count, all of them where there is
    /// none.
    ///
    /// Returns the entries whose rows are the newest so far, ascending.
    pub(super) fn add(&mut self, part: usize, index: &Index, passes: Option<&BooleanArray>) -> Vec<usize> {
        let mut won = Vec::new();
        let slots = self.slots_of(&index.keys);
        for (entry, (slot, time)) in slots.iter().zip(&index.times).enumerate() {
            if passes.is_some_and(|passes| passes.is_null(entry) || !passes.value(entry)) {
                continue;
            }
            if let Some(newest) = self.newest.get_mut(*slot)
                && newest.is_none_or(|newest| *time > newest.time)
            {
                *newest = Some(NewestRow { time: *time, part, entry });
                won.push(entry);
            }
        }
        self.mapped.truncate(MAPPED - 1);
        self.mapped.insert(0, (Arc::clone(&index.keys), slots));
        won
    }

    /// Says that of the index of a part only these entries are kept, as returned by [`Self::add`]
    /// just before.
    pub(super) fn keep_only(&mut self, part: usize, entries: &[usize]) {
        let Some((_, slots)) = self.mapped.first() else { return };
        for (kept, entry) in entries.iter().enumerate() {
            let slot = slots.get(*entry).and_then(|slot| self.newest.get_mut(*slot));
            if let Some(Some(newest)) = slot.filter(|newest| newest.is_some_and(|newest| newest.part == part)) {
                newest.entry = kept;
            }
        }
    }

    pub(super) fn size(&self) -> usize {
        let slots = self.newest.capacity() * (size_of::<Option<NewestRow>>() + 3 * size_of::<usize>());
        self.bytes.capacity()
            + slots
            + self.mapped.iter().map(|(keys, slots)| keys.size() + 8 * slots.len()).sum::<usize>()
    }

    fn slots_of(&mut self, keys: &Arc<KeySet>) -> Vec<usize> {
        if let Some(known) = self.mapped.iter().position(|(known, _)| Arc::ptr_eq(known, keys)) {
            return self.mapped.swap_remove(known).1;
        }
        keys.iter().map(|key| self.slot(key)).collect()
    }

    fn slot(&mut self, key: &[u8]) -> usize {
        let hash = self.hasher.hash_one(key);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(slot) = self.slots.find(hash, |slot| of_slot(bytes, ends, *slot) == key) {
            return *slot;
        }
        let slot = self.ends.len();
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        self.newest.push(None);
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        self.slots.insert_unique(hash, slot, |slot| hasher.hash_one(of_slot(bytes, ends, *slot)));
        slot
    }

    /// Returns, for each of `parts` parts, the entries of its index that are the newest of their
    /// keys, ascending.
    pub(super) fn entries(&self, parts: usize) -> Vec<Vec<usize>> {
        let mut entries = vec![Vec::new(); parts];
        for newest in self.newest.iter().flatten() {
            if let Some(entries) = entries.get_mut(newest.part) {
                entries.push(newest.entry);
            }
        }
        entries.iter_mut().for_each(|entries| entries.sort_unstable());
        entries
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{ArrayRef, StringArray},
        datatypes::DataType,
    };

    use super::{super::index::Indexing, *};

    fn index(rows: &[(&str, i64)]) -> Index {
        let mut indexing = Indexing::new(&[DataType::Utf8]).unwrap();
        let keys: ArrayRef = Arc::new(rows.iter().map(|(key, _)| Some(*key)).collect::<StringArray>());
        let times: Vec<i64> = rows.iter().map(|(_, time)| *time).collect();
        indexing.push(&[keys], &times, |row| row as u64).unwrap();
        indexing.finish()
    }

    #[test]
    fn each_key_is_taken_from_the_part_that_has_it_newest() {
        let parts = [index(&[("a", 9), ("b", 3)]), index(&[("a", 8), ("c", 1)]), index(&[("b", 4), ("c", 1)])];
        let mut best = NewestSoFar::default();
        let won: Vec<_> = parts.iter().enumerate().map(|(part, index)| best.add(part, index, None)).collect();
        assert_eq!(won, [vec![0, 1], vec![1], vec![0]]);
        assert_eq!(best.entries(3), [vec![0], vec![1], vec![0]]);
    }

    #[test]
    fn what_is_not_the_newest_can_be_given_up() {
        let (newest, older) = (index(&[("a", 9)]), index(&[("a", 1), ("b", 1), ("c", 1)]));
        let mut best = NewestSoFar::default();
        best.add(0, &newest, None);
        let won = best.add(1, &older, None);
        assert_eq!(won, [1, 2]);
        best.keep_only(1, &won);
        let kept = older.only(&won);
        assert_eq!((kept.times.len(), kept.rows.clone()), (2, vec![1, 2]));
        assert_eq!(kept.keys.iter().collect::<Vec<_>>(), older.keys.iter().skip(1).collect::<Vec<_>>());
        assert_eq!(best.entries(2), [vec![0], vec![0, 1]]);
        // A newer row of a key that was found already.
        best.add(2, &index(&[("c", 5)]), None);
        assert_eq!(best.entries(3), [vec![0], vec![0], vec![0]]);
    }

    #[test]
    fn rows_that_do_not_count_leave_their_key_to_others() {
        let newest = index(&[("a", 9), ("b", 9)]);
        let older = Index { keys: Arc::clone(&newest.keys), times: vec![1, 1], rows: vec![0, 0] };
        let mut best = NewestSoFar::default();
        best.add(0, &newest, Some(&BooleanArray::from(vec![Some(false), Some(true)])));
        best.add(1, &older, Some(&BooleanArray::from(vec![Some(true), None])));
        assert_eq!(best.entries(2), [vec![1], vec![0]]);
    }
}
