//! Columns of a table by name, as fast as lines need it.
//!
//! A field of a line is nearly always in a column that can be guessed, so the first question is
//! whether a name is that of a certain column: two words and a length answer it, for names of up to
//! 16 bytes without looking at the text. Where the guess is wrong, the same words are the hash.
//! Knows nothing of columns but their names and order.

use std::sync::Arc;

/// Finds columns by name; see the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnIndex {
    marks: Vec<Mark>,
    names: Vec<Arc<str>>,
    /// Open addressing: a column plus one, or 0 where nothing is. A power of two, at least half of
    /// it empty.
    slots: Vec<u32>,
}

/// The first and the last eight bytes of a name (of a shorter one, overlapping parts that make up
/// all of it), and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    first: u64,
    last: u64,
    len: usize,
}

impl Mark {
    #[inline(always)]
    fn of(name: &[u8]) -> Self {
        let (first, last) = match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => match (name.first_chunk(), name.last_chunk()) {
                (Some(first), Some(last)) => {
                    (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
                }
                _ => (name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
            },
        };
        Self { first, last, len: name.len() }
    }

    /// Returns whether the mark says all about its name.
    #[inline(always)]
    const fn is_whole(self) -> bool {
        self.len <= 16
    }

    #[inline(always)]
    fn hash(self, name: &[u8]) -> u64 {
        let mut hash = fold(self.first ^ 0x9e37_79b9_7f4a_7c15, self.last ^ 0xd1b5_4a32_d192_ed03 ^ self.len as u64);
        if !self.is_whole() {
            // Names of one kind often differ in the middle alone.
            let middle = name.get(8..name.len() - 8).unwrap_or_default();
            let (words, rest) = middle.as_chunks();
            for word in words {
                hash = fold(hash, u64::from_le_bytes(*word) ^ 0xd1b5_4a32_d192_ed03);
            }
            hash = rest.iter().fold(hash, |hash, byte| fold(hash ^ u64::from(*byte), 0x9e37_79b9_7f4a_7c15));
        }
        hash
    }
}

/// Multiplies to 128 bits and folds the halves.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product as u64) ^ ((product >> 64) as u64)
}

impl ColumnIndex {
    /// Returns the number of columns.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Adds a column after the last one.
    pub(crate) fn push(&mut self, name: Arc<str>) {
        let mark = Mark::of(name.as_bytes());
        self.marks.push(mark);
        self.names.push(name);
        if self.slots.len() < 2 * self.names.len() {
            self.rebuild();
        } else if let (Some(name), Ok(slot)) = (self.names.last(), u32::try_from(self.names.len())) {
            insert(&mut self.slots, mark.hash(name.as_bytes()), slot);
        }
    }

    /// Forgets all columns from `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.marks.truncate(len);
            self.names.truncate(len);
            self.rebuild();
        }
    }

    fn rebuild(&mut self) {
        self.slots.clear();
        self.slots.resize((4 * self.names.len()).next_power_of_two(), 0);
        for ((mark, name), slot) in self.marks.iter().zip(&self.names).zip(1..) {
            insert(&mut self.slots, mark.hash(name.as_bytes()), slot);
        }
    }

    /// Returns whether `name` is that of column `index`.
    #[inline(always)]
    pub(crate) fn is(&self, index: usize, name: &[u8]) -> bool {
        self.matches(index, Mark::of(name), name)
    }

    #[inline(always)]
    fn matches(&self, index: usize, mark: Mark, name: &[u8]) -> bool {
        self.marks.get(index) == Some(&mark)
            && (mark.is_whole() || self.names.get(index).is_some_and(|known| known.as_bytes() == name))
    }

    /// Returns the column called `name`.
    #[inline]
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        let mark = Mark::of(name);
        let mut at = start(&self.slots, mark.hash(name));
        loop {
            let index = (*self.slots.get(at)? as usize).checked_sub(1)?;
            if self.matches(index, mark, name) {
                return Some(index);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }
}

impl FromIterator<Arc<str>> for ColumnIndex {
    fn from_iter<T: IntoIterator<Item = Arc<str>>>(names: T) -> Self {
        let names: Vec<Arc<str>> = names.into_iter().collect();
        let marks = names.iter().map(|name| Mark::of(name.as_bytes())).collect();
        let mut index = Self { marks, names, slots: Vec::new() };
        index.rebuild();
        index
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lower bits are wanted")]
fn start(slots: &[u32], hash: u64) -> usize {
    hash as usize & slots.len().wrapping_sub(1)
}

/// Puts a slot into the first empty insert.
fn insert(slots: &mut [u32], hash: u64, slot: u32) {
    let (start, mask) = (start(slots, hash), slots.len().wrapping_sub(1));
    let empty = (0..slots.len()).map(|step| (start + step) & mask).find(|at| slots.get(*at) == Some(&0));
    if let Some(insert) = empty.and_then(|at| slots.get_mut(at)) {
        *insert = slot;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_differ_anywhere_are_told_apart() {
        let names: Vec<String> = (0..40).map(|len| "x".repeat(len)).collect();
        let index: ColumnIndex = names.iter().map(|name| Arc::from(name.as_str())).collect();
        for (at, name) in names.iter().enumerate() {
            assert_eq!(index.find(name.as_bytes()), Some(at));
            for changed in 0..name.len() {
                let mut other = name.clone().into_bytes();
                other[changed] = b'y';
                assert_eq!(index.find(&other), None, "{name} at {changed}");
                assert!(!index.is(at, &other));
            }
        }
        assert_eq!(ColumnIndex::default().find(b"x"), None);
    }

    proptest! {
        #[test]
        fn it_finds_what_a_map_finds(names in prop::collection::vec("[ab]{0,3}(sensor_[0-9]{1,2}_reading)?", 0..200), cut in 0usize..200) {
            let mut index = ColumnIndex::default();
            let mut map = HashMap::new();
            for name in &names {
                if !map.contains_key(name) {
                    map.insert(name.clone(), index.len());
                    index.push(Arc::from(name.as_str()));
                }
            }
            index.truncate(cut);
            map.retain(|_, at| *at < cut);
            for name in names.iter().map(String::as_str).chain(["", "c", "sensor_100_reading"]) {
                prop_assert_eq!(index.find(name.as_bytes()), map.get(name).copied());
            }
        }
    }
}
