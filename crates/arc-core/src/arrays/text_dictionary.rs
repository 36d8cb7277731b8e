//! The distinct texts of a column, each with its number.
//!
//! Texts of up to 16 bytes, which tags and states mostly are, are told apart by two words that hold
//! all of their bytes: no call to compare memory, no hashing of lengths and bytes.

use std::{
    cmp::Ordering,
    hash::{BuildHasher as _, Hasher as _},
};

use foldhash::fast::FixedState;

const MIN_SLOTS: usize = 64;

/// Texts in order of their first use, found through an open table of numbers.
#[derive(Debug, Default)]
pub(crate) struct TextDictionary {
    bytes: Vec<u8>,
    entries: Vec<DictionaryEntry>,
    /// Numbers of entries plus one; 0 where there is none. A power of two of them, or none as long
    /// as each text was greater than the one before: those of a tag by which rows are sorted are.
    slots: Vec<u32>,
    shift: u32,
}

#[derive(Debug, Clone, Copy)]
struct DictionaryEntry {
    digest: Digest,
    start: usize,
}

/// What is compared first, and all that is compared of a short text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest {
    length: usize,
    words: [u64; 2],
}

impl TextDictionary {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the size of the dictionary page.
    pub(crate) fn page_bytes(&self) -> usize {
        self.bytes.len() + 4 * self.entries.len()
    }

    /// Returns the text at a number, or an empty one where there is none.
    pub(crate) fn text(&self, index: u32) -> &[u8] {
        self.entries.get(index as usize).map_or(&[], |entry| self.entry_text(entry))
    }

    /// Returns all texts in the order of their numbers.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.iter().map(|entry| self.entry_text(entry))
    }

    /// Returns where each text begins and the last one ends, in the bytes of all of them.
    pub(crate) fn to_offsets_and_bytes(&self) -> (Vec<i32>, Vec<u8>) {
        let starts = self.entries.iter().map(|entry| entry.start).chain([self.bytes.len()]);
        (starts.map(|start| i32::try_from(start).unwrap_or(i32::MAX)).collect(), self.bytes.clone())
    }

    /// Returns the bytes that the texts and what finds them take.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.entries.as_slice()) + size_of_val(self.slots.as_slice())
    }

    /// Returns the place of a text, which is added if it is new.
    #[inline(always)]
    pub(crate) fn index(&mut self, text: &[u8]) -> u32 {
        let digest = Digest::of(text);
        if self.slots.is_empty()
            && let Some(index) = self.index_in_order(text, digest)
        {
            return index;
        }
        match self.look_up(text, digest) {
            Ok(index) => index,
            Err(slot) => {
                let index = self.add(text, digest);
                self.enter(index, slot);
                index
            }
        }
    }

    /// Returns the place of a text, if it is there.
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        if self.slots.is_empty() {
            let number = self.entries.binary_search_by(|entry| self.entry_text(entry).cmp(text)).ok()?;
            return u32::try_from(number).ok();
        }
        self.look_up(text, Digest::of(text)).ok()
    }

    /// Returns the place of a text, or the slot that it would have.
    #[inline(always)]
    fn look_up(&self, text: &[u8], digest: Digest) -> Result<u32, usize> {
        let mut slot = digest.slot(self.shift);
        loop {
            match self.slots.get(slot) {
                Some(0) | None => return Err(slot),
                Some(number) => {
                    let index = number - 1;
                    if self.entries.get(index as usize).is_some_and(|entry| self.is(entry, digest, text)) {
                        return Ok(index);
                    }
                }
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Appends all texts as `PLAIN` has them: each after its length.
    pub(crate) fn write_page(&self, out: &mut Vec<u8>) {
        out.reserve(self.page_bytes());
        for entry in &self.entries {
            out.extend(entry.digest.length.to_le_bytes().into_iter().take(4));
            out.extend_from_slice(self.entry_text(entry));
        }
    }

    #[inline(always)]
    fn is(&self, entry: &DictionaryEntry, digest: Digest, text: &[u8]) -> bool {
        entry.digest == digest && (text.len() <= 16 || self.entry_text(entry) == text)
    }

    fn entry_text(&self, entry: &DictionaryEntry) -> &[u8] {
        self.bytes.get(entry.start..entry.start + entry.digest.length).unwrap_or_default()
    }

    /// Returns the place of a text that is the last one or comes after it; otherwise texts have to
    /// be found from now on.
    #[inline(always)]
    fn index_in_order(&mut self, text: &[u8], digest: Digest) -> Option<u32> {
        match self.entries.last().map_or(Ordering::Greater, |last| text.cmp(self.entry_text(last))) {
            Ordering::Greater => Some(self.add(text, digest)),
            Ordering::Equal => u32::try_from(self.entries.len() - 1).ok(),
            Ordering::Less => {
                self.resize((self.entries.len() * 2).next_power_of_two().max(MIN_SLOTS));
                None
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, text: &[u8], digest: Digest) -> u32 {
        let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(DictionaryEntry { digest, start: self.bytes.len() });
        self.bytes.extend_from_slice(text);
        index
    }

    #[inline(never)]
    fn enter(&mut self, index: u32, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = index + 1;
        }
        if self.entries.len() * 2 > self.slots.len() {
            self.resize(self.slots.len() * 2);
        }
    }

    fn resize(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, 0);
        self.shift = u64::BITS + 1 - width_of(slots as u64);
        for (number, entry) in (1..).zip(&self.entries) {
            let mut slot = entry.digest.slot(self.shift);
            while self.slots.get(slot).is_some_and(|number| *number != 0) {
                slot = (slot + 1) & (slots - 1);
            }
            if let Some(slot) = self.slots.get_mut(slot) {
                *slot = number;
            }
        }
    }
}

impl Digest {
    /// Two words that overlap hold a short text; of a longer one they are hashes.
    #[inline(always)]
    fn of(text: &[u8]) -> Self {
        let words = match text.len() {
            8..=16 => [text.first_chunk().copied(), text.last_chunk().copied()]
                .map(|bytes: Option<[u8; 8]>| u64::from_le_bytes(bytes.unwrap_or_default())),
            4..=7 => [text.first_chunk().copied(), text.last_chunk().copied()]
                .map(|bytes: Option<[u8; 4]>| u64::from(u32::from_le_bytes(bytes.unwrap_or_default()))),
            // Of three bytes each is the first, the middle or the last one.
            0..=3 => [
                [text.first(), text.get(text.len() / 2), text.last()]
                    .iter()
                    .fold(0, |word, byte| word << 8 | byte.map_or(0, |byte| u64::from(*byte))),
                0,
            ],
            _ => {
                let mut hasher = FixedState::default().build_hasher();
                hasher.write(text);
                [hasher.finish(), 0]
            }
        };
        Self { length: text.len(), words }
    }

    #[inline(always)]
    fn slot(self, shift: u32) -> usize {
        let [first, last] = self.words;
        let product =
            u128::from(first ^ 0x9e37_79b9_7f4a_7c15) * u128::from(last.rotate_left(32) ^ 0xd1b5_4a32_d192_ed03);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are wanted")]
        let folded = (product >> 64) as u64 ^ product as u64 ^ self.length as u64;
        #[expect(clippy::cast_possible_truncation, reason = "shifted to fewer bits than a table has slots")]
        let slot = (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize;
        slot
    }
}

/// Returns how many bits a value needs.
pub(crate) fn width_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_texts_have_one_place(texts in prop::collection::vec("[ab\0]{0,20}", 0..200)) {
            let mut dictionary = TextDictionary::default();
            let mut known = HashMap::new();
            for text in &texts {
                let next = u32::try_from(known.len()).unwrap();
                let expected = *known.entry(text.as_str()).or_insert(next);
                prop_assert_eq!(dictionary.index(text.as_bytes()), expected);
                prop_assert_eq!(dictionary.text(expected), text.as_bytes());
                prop_assert_eq!(dictionary.find(text.as_bytes()), Some(expected));
            }
            prop_assert_eq!(dictionary.len(), known.len());
            prop_assert_eq!(dictionary.find(b"c"), None);
        }
    }

    #[test]
    fn texts_of_all_short_lengths_differ_by_any_byte() {
        let mut dictionary = TextDictionary::default();
        let mut count = 0;
        for length in 0..20 {
            for changed in 0..=length {
                let mut text = vec![b'x'; length];
                if let Some(byte) = text.get_mut(changed) {
                    *byte = b'y';
                }
                assert_eq!(dictionary.index(&text), count, "{length} {changed}");
                count += 1;
            }
        }
        let mut page = Vec::new();
        dictionary.write_page(&mut page);
        assert_eq!((page.len(), &page[..9]), (dictionary.page_bytes(), &[0, 0, 0, 0, 1, 0, 0, 0, b'y'][..]));
    }
}
