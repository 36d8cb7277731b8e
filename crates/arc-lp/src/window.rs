//! The masks of a part of the input, and where names may hold more than plain ASCII.
//!
//! Owns the window (4 KiB) and moves it; reads each byte about once. Never knows what a byte means,
//! nor where the parser is: that is the cursor's part.

use core::ops::Range;

use crate::block::{self, BLOCK, Masks};
use crate::dialect::Dialect;
use crate::utf8;

/// Blocks in a window. Larger ones save nothing: the masks already cost less than the walk.
const BLOCKS: usize = 64;

/// The masks of some blocks of an input.
#[derive(Clone)]
pub(crate) struct Window<'a> {
    input: &'a [u8],
    /// Here because it is rarely needed: the cursor stays small.
    dialect: Dialect,
    /// Masks of the blocks from `start` on, and of the one after the last. Of the odd bytes only
    /// those are left that are bad somewhere.
    masks: [Masks; BLOCKS + 1],
    /// A multiple of [`BLOCK`].
    start: usize,
    /// How many blocks are in the window.
    blocks: usize,
    /// The end of the last block, among all seen so far, with a tab, a NUL or bad UTF-8 in it.
    suspect_end: usize,
    /// The end of the last block, among all seen so far, with bad UTF-8 in it.
    bad_utf8_end: usize,
    /// Where the last UTF-8 sequence that begins in the window ends.
    border: usize,
    /// How often the window was moved: the work done, without a clock.
    #[cfg(test)]
    pub(crate) loads: usize,
}

impl<'a> Window<'a> {
    /// A window on no block yet.
    #[inline]
    pub(crate) const fn new(input: &'a [u8], dialect: Dialect) -> Self {
        let none = Masks { structural: 0, ends: 0, odd: 0 };
        let masks = [none; BLOCKS + 1];
        Self {
            input,
            dialect,
            masks,
            start: 0,
            blocks: 0,
            suspect_end: 0,
            bad_utf8_end: 0,
            border: 0,
            #[cfg(test)]
            loads: 0,
        }
    }

    #[inline(always)]
    pub(crate) const fn input(&self) -> &'a [u8] {
        self.input
    }

    #[inline(always)]
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Which of the 64 bytes from `at` on, which is inside the input, are structural.
    #[inline(always)]
    pub(crate) fn structural(&mut self, at: usize) -> u64 {
        self.structural_and_ends(at).0
    }

    /// The same, and which may end a series key.
    #[inline(always)]
    pub(crate) fn structural_and_ends(&mut self, at: usize) -> (u64, u64) {
        let [low, high] = self.masks(at);
        (join(low.structural, high.structural, at), join(low.ends, high.ends, at))
    }

    /// The masks of the block of `at` and the one after; moves the window there if need be.
    #[inline(always)]
    fn masks(&mut self, at: usize) -> [&Masks; 2] {
        // A span in front of the window wraps to a large number.
        let mut block = at.wrapping_sub(self.start) / BLOCK;
        if block >= self.blocks {
            self.load(at);
            block = 0;
        }
        // The remainder changes nothing but spares the checks of the bound.
        block %= BLOCKS;
        #[expect(clippy::indexing_slicing, reason = "at most `BLOCKS`, which the compiler sees")]
        [&self.masks[block], &self.masks[block + 1]]
    }

    /// Whether the bytes from `start` on, as far as windows went, may hold a tab, a NUL or bad
    /// UTF-8. `false` is certain, `true` is a reason to look.
    #[inline(always)]
    pub(crate) const fn is_suspect(&self, start: usize) -> bool {
        start < self.suspect_end
    }

    /// The same for bad UTF-8 alone.
    #[inline(always)]
    pub(crate) const fn is_utf8_suspect(&self, start: usize) -> bool {
        start < self.bad_utf8_end
    }

    /// Whether a tab, a NUL or bad UTF-8 may stand in these bytes: what to ask next where there is
    /// suspicion, and nearly exact.
    #[cold]
    pub(crate) fn may_be_bad(&self, span: Range<usize>) -> bool {
        let Some(first) = span.start.checked_sub(self.start) else {
            return true;
        };
        let (first, last) = (first / BLOCK, (span.end - self.start) / BLOCK);
        let mut bits = u64::MAX << (span.start % BLOCK);
        for block in first..last {
            let Some(masks) = self.masks.get(block) else {
                return true;
            };
            if masks.odd & bits != 0 {
                return true;
            }
            bits = u64::MAX;
        }
        let bits = bits & !(u64::MAX << (span.end % BLOCK));
        self.masks.get(last).is_none_or(|masks| masks.odd & bits != 0)
    }

    /// Moves the window so that its first block is that of `at`.
    #[cold]
    #[inline(never)]
    fn load(&mut self, at: usize) {
        #[cfg(test)]
        {
            self.loads += 1;
        }
        let is_next = at / BLOCK == self.start / BLOCK + self.blocks;
        self.start = at - at % BLOCK;
        let end = self.input.len().min(self.start + self.masks.len() * BLOCK);
        let bytes = self.input.get(self.start..end).unwrap_or_default();
        block::classify(bytes, &mut self.masks);
        let classified = bytes.len().div_ceil(BLOCK);
        if let Some(behind) = self.masks.get_mut(classified) {
            *behind = Masks::default();
        }
        self.blocks = classified.min(BLOCKS);
        // Elsewhere a sequence may lie across the start: what is left of it raises false suspicion.
        let mut sequence_end = if is_next { self.border } else { 0 };
        for (block, masks) in self.masks.iter_mut().enumerate().take(classified) {
            if block == BLOCKS {
                // Will be the first of the next window.
                self.border = sequence_end;
            }
            if masks.odd != 0 {
                let start = self.start + block * BLOCK;
                let found = check_block(self.input, start, masks.odd, sequence_end);
                masks.odd = found.bad;
                sequence_end = found.sequence_end;
                if found.bad != 0 {
                    self.suspect_end = self.suspect_end.max(start + BLOCK);
                }
                if found.is_bad_utf8 {
                    self.bad_utf8_end = self.bad_utf8_end.max(start + BLOCK);
                }
            }
        }
    }
}

/// What is wrong in a block.
struct Checked {
    /// Tabs, NULs, and the bytes above ASCII that are in no sequence.
    bad: u64,
    is_bad_utf8: bool,
    /// Where the last sequence that begins in the block ends.
    sequence_end: usize,
}

/// Goes over the odd bytes of the block at `start`, of which those in front of `sequence_end`
/// belong to a sequence that was checked before.
#[inline(always)]
fn check_block(input: &[u8], start: usize, odd: u64, sequence_end: usize) -> Checked {
    let bytes = input.get(start..).unwrap_or_default();
    let mut done = sequence_end.saturating_sub(start);
    let (mut bad, mut bad_utf8) = (0, 0);
    while let Some(rest) = bits_from(odd, done) {
        let at = rest.trailing_zeros() as usize;
        let bytes = bytes.get(at..).unwrap_or_default();
        let length = match utf8::sequence_len(bytes) {
            Some(length) => length,
            None => {
                let bit = 1 << at;
                match bytes.first() {
                    Some(b'\t' | 0) => bad |= bit,
                    Some(0x80..) => bad_utf8 |= bit,
                    _ => {}
                }
                1
            }
        };
        done = at + length;
    }
    Checked { bad: bad | bad_utf8, is_bad_utf8: bad_utf8 != 0, sequence_end: start + done }
}

/// The 64 bits from that of `at` in its block on: those of `low`, then those of `high`.
#[inline(always)]
const fn join(low: u64, high: u64, at: usize) -> u64 {
    let shift = at % BLOCK;
    // In two steps, since at the start of a block nothing of `high` is left over.
    low >> shift | high << 1 << (BLOCK - 1 - shift)
}

/// The bits of `mask` from `from` on, if there are any.
#[inline(always)]
fn bits_from(mask: u64, from: usize) -> Option<u64> {
    let bits = if from < BLOCK { mask & (u64::MAX << from) } else { 0 };
    (bits != 0).then_some(bits)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// Whether the bytes raise suspicion, and whether as bad UTF-8; asked of every byte, too.
    fn is_suspect(input: &[u8]) -> (bool, bool) {
        let mut window = Window::new(input, Dialect::new());
        let bad = (0..input.len()).filter(|&at| {
            _ = window.structural(at);
            window.may_be_bad(at..at + 1)
        });
        assert_eq!(bad.count() > 0, window.is_suspect(0));
        (window.is_suspect(0), window.is_utf8_suspect(0))
    }

    #[test]
    fn only_tabs_nuls_and_bad_utf8_raise_suspicion() {
        for (bytes, is_bad, is_bad_utf8) in [
            ("plain, ASCII".as_bytes(), false, false),
            ("größer €, 🦀".as_bytes(), false, false),
            (b"a\x01\x09b", true, false),
            (b"a\0b", true, false),
            (b"a\x01b\x7f", false, false),
            (b"a\xffb", true, true),
            (b"a\xe2\x82", true, true),
        ] {
            assert_eq!(is_suspect(bytes), (is_bad, is_bad_utf8), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_bad_is_known_to_the_byte() {
        for length in [10, 64, 65, 200, 4096, 4100, 4200] {
            for bad in [0, length / 2, length - 1] {
                let mut input = std::vec![b'x'; length];
                input[bad] = b'\t';
                let mut window = Window::new(&input, Dialect::new());
                for at in 0..length {
                    _ = window.structural(at);
                }
                let last = window.start;
                assert!(window.may_be_bad(bad..length));
                assert!(window.may_be_bad(0..bad + 1));
                // What the window has passed is not known any more.
                assert_eq!(window.may_be_bad(0..bad), last > 0 || bad == length);
                assert!(!window.may_be_bad((bad + 1).max(last)..length) || bad + 1 < last);
            }
        }
    }

    #[test]
    fn a_sequence_may_lie_across_the_border_of_blocks_and_windows() {
        for border in [BLOCK, BLOCKS * BLOCK] {
            for in_front in 1..4 {
                let mut input = std::vec![b'x'; border - in_front];
                input.extend("🦀".as_bytes());
                assert_eq!(is_suspect(&input), (false, false));
                input.pop();
                assert_eq!(is_suspect(&input), (true, true));
            }
        }
    }
}
