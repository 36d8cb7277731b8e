//! A growing bitmap: which rows have a value, and what booleans are.
//!
//! Arrow's own builder looks at its capacity in bytes for every bit and calls out to grow; lines
//! that leave fields out spent a tenth of their time there. Here a bit is a shift into the last
//! word.

use arrow::buffer::{BooleanBuffer, Buffer};

/// Bits in order of arrival. Those of the last word beyond the length are zero.
#[derive(Debug, Clone, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    pub(super) fn with_capacity(bits: usize) -> Self {
        Self { words: Vec::with_capacity(bits.div_ceil(64)), len: 0 }
    }

    /// So many ones.
    pub(super) fn ones(count: usize) -> Self {
        let mut bits = Self::default();
        bits.append_n(true, count);
        bits
    }

    /// The first `len` bits of words, or as many as there are.
    pub(super) fn from_words(words: Vec<u64>, len: usize) -> Self {
        let mut bits = Self { len: words.len() * 64, words };
        bits.truncate(len);
        bits
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    #[inline(always)]
    pub(super) fn push(&mut self, bit: bool) {
        let shift = self.len % 64;
        let word = u64::from(bit) << shift;
        match self.words.last_mut() {
            Some(last) if shift > 0 => *last |= word,
            _ => self.words.push(word),
        }
        self.len += 1;
    }

    pub(super) fn append_n(&mut self, bit: bool, count: usize) {
        if bit {
            for at in (0..count).step_by(64) {
                self.append_word(u64::MAX, (count - at).min(64));
            }
        } else {
            self.len += count;
            self.words.resize(self.len.div_ceil(64), 0);
        }
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.append_words(other.words.iter().copied(), other.len);
    }

    pub(super) fn append_buffer(&mut self, other: &BooleanBuffer) {
        self.append_words(other.bit_chunks().iter_padded(), other.len());
    }

    fn append_words(&mut self, words: impl Iterator<Item = u64>, mut count: usize) {
        for word in words {
            self.append_word(word, count.min(64));
            count = count.saturating_sub(64);
        }
    }

    /// Appends the lowest `count` bits of a word, 64 at most.
    fn append_word(&mut self, word: u64, count: usize) {
        if count == 0 {
            return;
        }
        let word = word & (u64::MAX >> (64 - count));
        let shift = self.len % 64;
        self.len += count;
        match self.words.last_mut() {
            Some(last) if shift > 0 => {
                *last |= word << shift;
                if shift + count > 64 {
                    self.words.push(word >> (64 - shift));
                }
            }
            _ => self.words.push(word),
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            self.words.truncate(len.div_ceil(64));
            if let (Some(last), 1..) = (self.words.last_mut(), len % 64) {
                *last &= u64::MAX >> (64 - len % 64);
            }
        }
    }

    /// Returns the bits as an Arrow buffer, which takes them over.
    pub(super) fn into_buffer(self) -> BooleanBuffer {
        // Arrow's bitmaps are little-endian bytes.
        let words =
            if cfg!(target_endian = "big") { self.words.into_iter().map(u64::to_le).collect() } else { self.words };
        BooleanBuffer::new(Buffer::from_vec(words), 0, self.len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(bool),
        AppendN(bool, usize),
        Append(Vec<bool>),
        AppendSlice(Vec<bool>, usize),
        Truncate(usize),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let bools = || prop::collection::vec(any::<bool>(), 0..200);
        prop_oneof![
            any::<bool>().prop_map(Step::Push),
            (any::<bool>(), 0usize..200).prop_map(|(bit, count)| Step::AppendN(bit, count)),
            bools().prop_map(Step::Append),
            (bools(), 0usize..70).prop_map(|(bits, from)| Step::AppendSlice(bits, from)),
            (0usize..300).prop_map(Step::Truncate),
        ]
    }

    proptest! {
        #[test]
        fn bits_are_what_a_vector_of_them_is(steps in prop::collection::vec(any_step(), 0..20)) {
            let (mut bits, mut expected) = (Bits::default(), Vec::new());
            for step in steps {
                match step {
                    Step::Push(bit) => {
                        bits.push(bit);
                        expected.push(bit);
                    }
                    Step::AppendN(bit, count) => {
                        bits.append_n(bit, count);
                        expected.resize(expected.len() + count, bit);
                    }
                    Step::Append(more) => {
                        let mut other = Bits::default();
                        more.iter().for_each(|bit| other.push(*bit));
                        bits.append(&other);
                        expected.extend(more);
                    }
                    Step::AppendSlice(more, from) => {
                        let from = from.min(more.len());
                        let buffer = BooleanBuffer::from(more.as_slice());
                        bits.append_buffer(&buffer.slice(from, more.len() - from));
                        expected.extend_from_slice(&more[from..]);
                    }
                    Step::Truncate(len) => {
                        bits.truncate(len);
                        expected.truncate(len);
                    }
                }
            }
            prop_assert_eq!(bits.into_buffer().iter().collect::<Vec<_>>(), expected);
        }
    }
}
