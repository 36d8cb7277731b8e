//! The newest row of each key among several parts.

use std::{hash::BuildHasher, sync::Arc};

use arrow::array::{Array, BooleanArray};
use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::index::{Index, KeySet};

/// What is the newest so far.
#[derive(Debug, Default)]
pub(super) struct Best {
    hasher: FixedState,
    slots: HashTable<usize>,
    found: Vec<Found>,
    /// The slots of key sets that came already: most parts of a table have the same keys.
    mapped: Vec<(Arc<KeySet>, Vec<usize>)>,
}

/// The newest row of one key: in which part, and at which place of its index.
#[derive(Debug)]
struct Found {
    key: (Arc<KeySet>, usize),
    newest: Option<(i64, usize, usize)>,
}

impl Found {
    fn key(&self) -> &[u8] {
        self.key.0.get(self.key.1)
    }
}

impl Best {
    /// Takes the index of a part. `passes` says which of its rows count, all of them where there is none.
    pub(super) fn add(&mut self, part: usize, index: &Index, passes: Option<&BooleanArray>) {
        let slots = self.slots_of(&index.keys);
        for (place, (slot, time)) in slots.iter().zip(&index.times).enumerate() {
            if passes.is_some_and(|passes| passes.is_null(place) || !passes.value(place)) {
                continue;
            }
            if let Some(found) = self.found.get_mut(*slot)
                && found.newest.is_none_or(|(newest, ..)| *time > newest)
            {
                found.newest = Some((*time, part, place));
            }
        }
        self.mapped.push((Arc::clone(&index.keys), slots));
    }

    fn slots_of(&mut self, keys: &Arc<KeySet>) -> Vec<usize> {
        if let Some(known) = self.mapped.iter().position(|(known, _)| Arc::ptr_eq(known, keys)) {
            return self.mapped.swap_remove(known).1;
        }
        (0..keys.len()).map(|place| self.slot(keys, place)).collect()
    }

    fn slot(&mut self, keys: &Arc<KeySet>, place: usize) -> usize {
        let key = keys.get(place);
        let hash = self.hasher.hash_one(key);
        let of = |found: &[Found], slot: usize| found.get(slot).is_some_and(|found| found.key() == key);
        if let Some(slot) = self.slots.find(hash, |slot| of(&self.found, *slot)) {
            return *slot;
        }
        let slot = self.found.len();
        self.found.push(Found { key: (Arc::clone(keys), place), newest: None });
        let (found, hasher) = (&self.found, &self.hasher);
        self.slots.insert_unique(hash, slot, |slot| found.get(*slot).map_or(0, |found| hasher.hash_one(found.key())));
        slot
    }

    /// Returns, for each of `parts` parts, the places of its index that are the newest of their keys, ascending.
    pub(super) fn places(&self, parts: usize) -> Vec<Vec<usize>> {
        let mut places = vec![Vec::new(); parts];
        for (_, part, place) in self.found.iter().filter_map(|found| found.newest) {
            if let Some(places) = places.get_mut(part) {
                places.push(place);
            }
        }
        places.iter_mut().for_each(|places| places.sort_unstable());
        places
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
        let mut best = Best::default();
        parts.iter().enumerate().for_each(|(part, index)| best.add(part, index, None));
        assert_eq!(best.places(3), [vec![0], vec![1], vec![0]]);
    }

    #[test]
    fn rows_that_do_not_count_leave_their_key_to_others() {
        let newest = index(&[("a", 9), ("b", 9)]);
        let older = Index { keys: Arc::clone(&newest.keys), times: vec![1, 1], rows: vec![0, 0] };
        let mut best = Best::default();
        best.add(0, &newest, Some(&BooleanArray::from(vec![Some(false), Some(true)])));
        best.add(1, &older, Some(&BooleanArray::from(vec![Some(true), None])));
        assert_eq!(best.places(2), [vec![1], vec![0]]);
    }
}
