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
    /// Masks of the blocks from `start` on.
    masks: [Masks; BLOCKS],
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
        let masks = [none; BLOCKS];
        Self { input, masks, start: 0, blocks: 0, suspect_end: 0, utf8_end: 0 }
    }

    #[inline(always)]
    pub(crate) const fn input(&self) -> &'a [u8] {
        self.input
    }

    /// The masks of the block of `at`, which is inside the input; moves the window there if need be.
    #[inline(always)]
    pub(crate) fn masks(&mut self, at: usize) -> Masks {
        // A place in front of the window wraps to a large number.
        let mut block = at.wrapping_sub(self.start) / BLOCK;
        if block >= self.blocks {
            self.load(at);
            block = 0;
        }
        // The remainder changes nothing but spares the check of the bound.
        self.masks.get(block % BLOCKS).copied().unwrap_or_default()
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
        let end = self.input.len().min(self.start + BLOCKS * BLOCK);
        let bytes = self.input.get(self.start..end).unwrap_or_default();
        self.blocks = bytes.len().div_ceil(BLOCK);
        block::classify(bytes, &mut self.masks);
        self.check_odd();
    }

    /// Finds the blocks of a new window in which names could be bad.
    fn check_odd(&mut self) {
        for block in 0..self.blocks {
            let start = self.start + block * BLOCK;
            let mut odd = self.masks.get(block).map_or(0, |masks| masks.odd);
            while odd != 0 {
                let at = start + odd.trailing_zeros() as usize;
                odd &= odd - 1;
                if at >= self.utf8_end && !self.skip_sequence(at) {
                    self.suspect_end = self.suspect_end.max(start + BLOCK);
                }
            }
        }
    }

    /// Goes over the UTF-8 sequence at `at`; `false` where the byte is a tab, a NUL or begins none.
    #[inline]
    fn skip_sequence(&mut self, at: usize) -> bool {
        let bytes = self.input.get(at..).unwrap_or_default();
        let length = utf8::sequence_len(bytes);
        self.utf8_end = at + length.unwrap_or(1);
        length.is_some()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    fn is_suspect(input: &[u8]) -> bool {
        let mut window = Window::new(input);
        (0..input.len()).for_each(|at| _ = window.masks(at));
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
