//! The distinct values of a column of eight-byte values, each with its number.

use crate::arrays::width_of;

/// Slots of a new table; it has four times as many as there are values, so that most are found at
/// first sight.
const MIN_SLOTS: usize = 256;

/// Values in order of their first use, found through an open table of numbers.
#[derive(Debug)]
pub(super) struct WordDictionary {
    values: Vec<u64>,
    /// Numbers of values plus one; 0 where there is none. A power of two of them.
    slots: Vec<u32>,
    shift: u32,
}

impl Default for WordDictionary {
    fn default() -> Self {
        let mut dictionary = Self { values: Vec::new(), slots: Vec::new(), shift: 0 };
        dictionary.resize(MIN_SLOTS);
        dictionary
    }
}

impl WordDictionary {
    pub(super) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns how many values there is space for.
    pub(super) fn capacity(&self) -> usize {
        self.values.capacity()
    }

    pub(super) fn into_values(self) -> Vec<u64> {
        self.values
    }

    /// Forgets all values and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.resize(MIN_SLOTS);
    }

    /// Makes `indices` the numbers of `words`, adding those that are new.
    pub(super) fn indices(&mut self, words: &[u64], indices: &mut Vec<u32>) {
        indices.clear();
        indices.extend(words.iter().map(|word| self.index(*word)));
    }

    #[inline(always)]
    fn index(&mut self, word: u64) -> u32 {
        let mut slot = self.slot(word);
        loop {
            match self.slots.get(slot) {
                Some(0) | None => return self.add(word, slot),
                Some(number) => {
                    let index = number - 1;
                    if self.values.get(index as usize) == Some(&word) {
                        return index;
                    }
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Fibonacci hashing: the highest bits of a product depend on all bits of the word.
    #[inline(always)]
    fn slot(&self, word: u64) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "shifted to fewer bits than a table has slots")]
        let slot = ((word ^ (word >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        slot
    }

    #[inline(never)]
    fn add(&mut self, word: u64, slot: usize) -> u32 {
        let index = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(word);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = index + 1;
        }
        if self.values.len() * 4 > self.slots.len() {
            self.resize(self.slots.len() * 2);
        }
        index
    }

    fn resize(&mut self, slots: usize) {
        if self.slots.capacity() < slots {
            // Not grown: what there was would be copied.
            self.slots = vec![0; slots];
        } else {
            self.slots.clear();
            self.slots.resize(slots, 0);
        }
        self.shift = u64::BITS + 1 - width_of(slots as u64);
        for (number, word) in (1..).zip(&self.values) {
            let mut slot = self.slot(*word);
            while self.slots.get(slot).is_some_and(|number| *number != 0) {
                slot = (slot + 1) & (slots - 1);
            }
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_words_have_one_place_and_places_count_up() {
        let words: Vec<u64> = (0..20_000_u64).map(|i| ((i * i) % 7_919) << (i % 3 * 20)).collect();
        let mut dictionary = WordDictionary::default();
        let mut indices = Vec::new();
        for half in words.chunks(10_000) {
            dictionary.indices(half, &mut indices);
            let found: Vec<u64> = indices.iter().map(|index| dictionary.values()[*index as usize]).collect();
            assert_eq!(found, half);
        }
        let mut distinct = words.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let mut values = dictionary.into_values();
        values.sort_unstable();
        assert_eq!(values, distinct);
    }

    #[test]
    fn a_cleared_dictionary_is_as_good_as_a_new_one() {
        let words: Vec<u64> = (0..5_000_u64).map(|i| i * i % 3_001).collect();
        let (mut new, mut used, mut indices) = (WordDictionary::default(), WordDictionary::default(), Vec::new());
        used.indices(&(0..100_000).collect::<Vec<_>>(), &mut indices);
        used.clear();
        let [one, two] = [&mut new, &mut used].map(|dictionary| {
            dictionary.indices(&words, &mut indices);
            (indices.clone(), dictionary.values().to_vec())
        });
        assert!(one == two);
    }
}
