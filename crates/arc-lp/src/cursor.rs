//! Walks from one structural byte to the next.
//!
//! Owns the masks of a window of the input (4 KiB) and moves that window; reads each byte about
//! once. Also knows up to where names may hold something other than plain ASCII, so that the walker
//! need not look. Never knows what a byte means.

use crate::block::{self, BLOCK, Masks};
use crate::utf8;

/// Blocks in a window. Larger ones save nothing: the masks already cost less than the walk.
const WINDOW: usize = 64;

/// A place in the input and the structural bytes from there on.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    input: &'a [u8],
    /// Masks of the blocks from `window_start` on.
    masks: [Masks; WINDOW],
    /// A multiple of [`BLOCK`].
    window_start: usize,
    /// How many blocks of the window are inside the input.
    blocks: usize,
    /// The block that `rest` belongs to, counted from the window's first.
    block: usize,
    /// The structural bytes of that block which were not taken yet.
    rest: u64,
    /// The end of the last block, among all seen so far, with a tab, a NUL or bad UTF-8 in it.
    suspect_end: usize,
    /// Sequences that begin before this place were checked for UTF-8.
    utf8_end: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn new(input: &'a [u8]) -> Self {
        let mut cursor = Self {
            input,
            masks: [Masks::default(); WINDOW],
            window_start: 0,
            blocks: 0,
            block: 0,
            rest: 0,
            suspect_end: 0,
            utf8_end: 0,
        };
        cursor.seek(0);
        cursor
    }

    #[inline(always)]
    pub(crate) const fn input(&self) -> &'a [u8] {
        self.input
    }

    /// The byte at `at`; behind the end there is a line feed, since the end of the input ends a
    /// record like one.
    #[inline(always)]
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.input.get(at).copied().unwrap_or(b'\n')
    }

    /// The bytes from `start` to `end`.
    #[inline(always)]
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        self.input.get(start..end).unwrap_or_default()
    }

    /// Takes the next structural byte and returns its place, or the end of the input.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> usize {
        while self.rest == 0 {
            self.block += 1;
            if self.block >= self.blocks {
                let end = self.window_start + self.block * BLOCK;
                if end >= self.input.len() {
                    self.block = self.blocks;
                    return self.input.len();
                }
                self.load(end);
            }
            self.rest = self.mask().structural;
        }
        let at = self.window_start + self.block * BLOCK + self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        at
    }

    /// Goes to `at`, so that [`next`](Self::next) takes the first structural byte from there on.
    #[inline]
    pub(crate) fn seek(&mut self, at: usize) {
        self.enter(at);
        self.rest = self.mask().structural & from_bit(at);
    }

    /// Returns the first line feed, space or backslash from `at` on, or the end of the input, and
    /// goes behind it.
    #[inline(always)]
    pub(crate) fn seek_end(&mut self, at: usize) -> usize {
        self.enter(at);
        let mut ends = self.mask().ends & from_bit(at);
        while ends == 0 {
            let next = self.window_start + (self.block + 1) * BLOCK;
            if next >= self.input.len() {
                self.rest = 0;
                return self.input.len();
            }
            self.enter(next);
            ends = self.mask().ends;
        }
        // The lowest bit and all below it are passed.
        self.rest = self.mask().structural & !(ends ^ (ends - 1));
        self.window_start + self.block * BLOCK + ends.trailing_zeros() as usize
    }

    /// Whether the bytes from `start` on, as far as the window goes, may hold a tab, a NUL or bad
    /// UTF-8. `false` is certain, `true` is a reason to look.
    #[inline(always)]
    pub(crate) const fn is_suspect(&self, start: usize) -> bool {
        start < self.suspect_end
    }

    /// Makes the block of `at` the current one.
    #[inline(always)]
    fn enter(&mut self, at: usize) {
        // A place in front of the window wraps to a large number.
        let block = at.wrapping_sub(self.window_start) / BLOCK;
        if block < self.blocks {
            self.block = block;
        } else {
            self.load(at);
        }
    }

    #[inline(always)]
    fn mask(&self) -> Masks {
        // The remainder changes nothing but spares the check of the bound.
        self.masks
            .get(self.block % WINDOW)
            .copied()
            .unwrap_or_default()
    }

    /// Moves the window so that its first block is that of `at`.
    #[cold]
    fn load(&mut self, at: usize) {
        self.window_start = at - at % BLOCK;
        self.block = 0;
        let end = self.input.len().min(self.window_start + WINDOW * BLOCK);
        let bytes = self.slice(self.window_start, end);
        self.blocks = bytes.len().div_ceil(BLOCK);
        block::classify(bytes, &mut self.masks);
        if self.blocks == 0 {
            self.masks = [Masks::default(); WINDOW];
        }
        self.check_odd();
    }

    /// Finds the blocks of a new window in which names could be bad.
    fn check_odd(&mut self) {
        for block in 0..self.blocks {
            let start = self.window_start + block * BLOCK;
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

/// The bits from that of `at` in its block on.
#[inline(always)]
const fn from_bit(at: usize) -> u64 {
    u64::MAX << (at % BLOCK)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    fn is_structural(byte: u8) -> bool {
        b"\n \",=\\".contains(&byte)
    }

    fn input() -> Vec<u8> {
        (0..3 * WINDOW * BLOCK)
            .map(|at| {
                if at % 7 == 0 || at % 61 < 3 {
                    b','
                } else {
                    b'x'
                }
            })
            .collect()
    }

    #[test]
    fn next_finds_every_structural_byte_from_any_place() {
        let input = input();
        for from in [
            0,
            1,
            63,
            64,
            65,
            4095,
            4096,
            5000,
            input.len() - 1,
            input.len(),
        ] {
            let mut cursor = Cursor::new(&input);
            cursor.seek(from);
            let found: Vec<usize> =
                core::iter::from_fn(|| Some(cursor.next()).filter(|&at| at < input.len()))
                    .collect();
            let expected: Vec<usize> = (from..input.len())
                .filter(|&at| is_structural(input[at]))
                .collect();
            assert_eq!(found, expected, "from {from}");
            assert_eq!(cursor.next(), input.len());
        }
    }

    #[test]
    fn the_window_goes_back_too() {
        let input = input();
        let mut cursor = Cursor::new(&input);
        for at in [12_000, 3, 4097, 4095, 0] {
            cursor.seek(at);
            let expected = (at..).find(|&at| is_structural(input[at])).unwrap();
            assert_eq!(cursor.next(), expected);
        }
    }

    #[test]
    fn seek_end_passes_all_but_spaces_line_feeds_and_backslashes() {
        let mut input = std::vec![b','; 10_000];
        for (at, byte) in [(5, b' '), (64, b'\n'), (4095, b'\\'), (9000, b' ')] {
            input[at] = byte;
        }
        let mut cursor = Cursor::new(&input);
        let mut at = 0;
        for expected in [5, 64, 4095, 9000, 10_000] {
            assert_eq!(cursor.seek_end(at), expected);
            at = expected + 1;
        }
        cursor.seek_end(0);
        assert_eq!(cursor.next(), 6);
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
            assert_eq!(Cursor::new(bytes).is_suspect(0), suspect, "{bytes:?}");
        }
        // A sequence over the border of two blocks.
        let mut input = std::vec![b'x'; 63];
        input.extend("€".as_bytes());
        assert!(!Cursor::new(&input).is_suspect(0));
    }
}
