//! The masks of a part of the input, and where names may hold more than plain ASCII.
//!
//! Owns the window (4 KiB) and moves it; reads each byte about once. Never knows what a byte means,
//! nor where the parser is: that is the cursor's part.

use crate::block::{self, BLOCK, Masks};
use crate::utf8;

/// Blocks in a window. Larger ones save nothing: the masks already cost less than the walk.
const BLOCKS: usize = 64;

/// The masks of some blocks of an input.
#[derive(Clone)]
pub(crate) struct Window<'a> {
    input: &'a [u8],
    /// Masks of the blocks from `start` on, and of the one behind the last.
    masks: [Masks; BLOCKS + 1],
    /// A multiple of [`BLOCK`].
    start: usize,
    /// How many blocks are in the window.
    blocks: usize,
    /// The end of the last block, among all seen so far, with a tab, a NUL or bad UTF-8 in it.
    suspect_end: usize,
    /// Sequences that begin before this place were checked for UTF-8.
    utf8_end: usize,
}

impl<'a> Window<'a> {
    /// A window on no block yet.
    #[inline]
    pub(crate) const fn new(input: &'a [u8]) -> Self {
        let none = Masks { structural: 0, ends: 0, odd: 0 };
        let masks = [none; BLOCKS + 1];
        Self { input, masks, start: 0, blocks: 0, suspect_end: 0, utf8_end: 0 }
    }

    #[inline(always)]
    pub(crate) const fn input(&self) -> &'a [u8] {
        self.input
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

    /// The masks of the block of `at` and the one behind; moves the window there if need be.
    #[inline(always)]
    fn masks(&mut self, at: usize) -> [&Masks; 2] {
        // A place in front of the window wraps to a large number.
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

    /// Whether the bytes from `start` on, as far as windows went, may hold a tab, a NUL or bad UTF-8.
    /// `false` is certain, `true` is a reason to look.
    #[inline(always)]
    pub(crate) const fn is_suspect(&self, start: usize) -> bool {
        start < self.suspect_end
    }

    /// Moves the window so that its first block is that of `at`.
    #[cold]
    #[inline(never)]
    fn load(&mut self, at: usize) {
        self.start = at - at % BLOCK;
        let end = self.input.len().min(self.start + self.masks.len() * BLOCK);
        let bytes = self.input.get(self.start..end).unwrap_or_default();
        block::classify(bytes, &mut self.masks);
        let classified = bytes.len().div_ceil(BLOCK);
        if let Some(behind) = self.masks.get_mut(classified) {
            *behind = Masks::default();
        }
        self.blocks = classified.min(BLOCKS);
        for block in 0..classified {
            let odd = self.masks.get(block).map_or(0, |masks| masks.odd);
            if odd != 0 {
                self.check_block(self.start + block * BLOCK, odd);
            }
        }
    }

    /// Goes over the UTF-8 sequences that begin in a block, and raises suspicion where an odd byte
    /// begins none.
    #[inline(always)]
    fn check_block(&mut self, start: usize, odd: u64) {
        let bytes = self.input.get(start..).unwrap_or_default();
        // Where the last sequence of the block in front ended.
        let mut done = self.utf8_end.saturating_sub(start);
        while let Some(rest) = bits_from(odd, done) {
            let at = rest.trailing_zeros() as usize;
            let length = utf8::sequence_len(bytes.get(at..).unwrap_or_default());
            if length.is_none() {
                self.suspect_end = self.suspect_end.max(start + BLOCK);
            }
            done = at + length.unwrap_or(1);
        }
        self.utf8_end = self.utf8_end.max(start + done);
    }
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

    fn is_suspect(input: &[u8]) -> bool {
        let mut window = Window::new(input);
        (0..input.len()).for_each(|at| _ = window.structural(at));
        window.is_suspect(0)
    }

    #[test]
    fn only_tabs_nuls_and_bad_utf8_raise_suspicion() {
        for (bytes, suspect) in [
            ("plain, ASCII".as_bytes(), false),
            ("größer €, 🦀".as_bytes(), false),
            (b"a\tb", true),
            (b"a\0b", true),
            (b"a\xffb", true),
            (b"a\xe2\x82", true),
        ] {
            assert_eq!(is_suspect(bytes), suspect, "{bytes:?}");
        }
    }

    #[test]
    fn a_sequence_may_lie_across_the_border_of_blocks_and_windows() {
        for border in [BLOCK, BLOCKS * BLOCK] {
            for in_front in 1..4 {
                let mut input = std::vec![b'x'; border - in_front];
                input.extend("🦀".as_bytes());
                assert!(!is_suspect(&input));
                input.pop();
                assert!(is_suspect(&input));
            }
        }
    }
}
