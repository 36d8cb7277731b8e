//! Walks from one structural byte to the next.
//!
//! Small enough to stay in registers while a record is parsed: what is large, and what is rarely
//! needed, is in the [`Window`] it refers to. Never knows what a byte means.

use core::hint::cold_path;
use core::ops::Range;

use crate::block::BLOCK;
use crate::dialect::Dialect;
use crate::window::Window;

/// A position in an input.
pub(crate) struct Cursor<'w, 'a> {
    input: &'a [u8],
    window: &'w mut Window<'a>,
    /// Where the 64 bytes that `rest` is about begin. They begin where a record does, not where the
    /// window's blocks do: so records of one shape meet their borders in the same places, and the
    /// processor learns when to expect them.
    base: usize,
    /// The structural bytes among those 64 that were not taken yet.
    rest: u64,
}

impl<'w, 'a> Cursor<'w, 'a> {
    /// A cursor that must [`seek`](Self::seek) first.
    #[inline(always)]
    pub(crate) const fn new(window: &'w mut Window<'a>) -> Self {
        Self { input: window.input(), window, base: 0, rest: 0 }
    }

    #[inline(always)]
    pub(crate) const fn input(&self) -> &'a [u8] {
        self.input
    }

    #[inline(always)]
    pub(crate) const fn dialect(&self) -> Dialect {
        self.window.dialect()
    }

    /// The byte at `at`; after the end there is a line feed, since the end of the input ends a
    /// record like one.
    #[inline(always)]
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.input.get(at).copied().unwrap_or(b'\n')
    }

    /// The bytes from `start` to `end`.
    #[inline(always)]
    pub(crate) fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        match self.input.get(start..end) {
            Some(bytes) => bytes,
            // Cannot be; saying that it is rare keeps it out of the way.
            None => {
                cold_path();
                &[]
            }
        }
    }

    /// Takes the next structural byte and returns its position, or the end of the input.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> usize {
        while self.rest == 0 {
            let base = self.base + BLOCK;
            if base >= self.input.len() {
                return self.input.len();
            }
            self.base = base;
            self.rest = self.window.structural(base);
        }
        let at = self.base + self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        at
    }

    /// Goes to `at`, so that [`next`](Self::next) takes the first structural byte from there on.
    #[inline(always)]
    pub(crate) fn seek(&mut self, at: usize) {
        self.base = at;
        self.rest = if at < self.input.len() { self.window.structural(at) } else { 0 };
    }

    /// Goes to `at` and returns the first line feed, space or backslash from there on, or the end
    /// of the input.
    #[inline(always)]
    pub(crate) fn seek_and_find_end(&mut self, at: usize) -> usize {
        if at >= self.input.len() {
            self.seek(at);
            return self.input.len();
        }
        let (structural, ends) = self.window.structural_and_ends(at);
        (self.base, self.rest) = (at, structural);
        if ends == 0 { self.find_end(at + BLOCK) } else { at + ends.trailing_zeros() as usize }
    }

    /// The first line feed, space or backslash from `at` on, or the end of the input.
    #[inline(always)]
    pub(crate) fn find_end(&mut self, at: usize) -> usize {
        let mut base = at;
        while base < self.input.len() {
            let (_, ends) = self.window.structural_and_ends(base);
            if ends != 0 {
                return base + ends.trailing_zeros() as usize;
            }
            base += BLOCK;
        }
        self.input.len()
    }

    /// Goes on to `at`, which is not in front of where the cursor is.
    #[inline(always)]
    pub(crate) fn skip_to(&mut self, at: usize) {
        let passed = at.wrapping_sub(self.base);
        if passed < BLOCK {
            self.rest &= u64::MAX << passed;
        } else {
            self.seek(at);
        }
    }

    /// Whether a name from `start` to a structural byte already taken may hold a tab, a NUL or bad
    /// UTF-8.
    #[inline(always)]
    pub(crate) const fn is_suspect(&self, start: usize) -> bool {
        self.window.is_suspect(start)
    }

    /// Whether a string from `start` to a structural byte already taken may hold bad UTF-8.
    #[inline(always)]
    pub(crate) const fn is_utf8_suspect(&self, start: usize) -> bool {
        self.window.is_utf8_suspect(start)
    }

    /// The same as [`is_suspect`](Self::is_suspect), and nearly certain.
    #[inline(always)]
    pub(crate) fn may_be_bad(&self, position: Range<usize>) -> bool {
        self.window.may_be_bad(position)
    }
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
        (0..3 * 64 * BLOCK).map(|at| if at % 7 == 0 || at % 61 < 3 { b',' } else { b'x' }).collect()
    }

    #[test]
    fn next_finds_every_structural_byte_from_any_place() {
        let input = input();
        for from in [0, 1, 63, 64, 65, 4095, 4096, 5000, input.len() - 1, input.len()] {
            let mut window = Window::new(&input, Dialect::new());
            let mut cursor = Cursor::new(&mut window);
            cursor.seek(from);
            let found: Vec<usize> =
                core::iter::from_fn(|| Some(cursor.next()).filter(|&at| at < input.len())).collect();
            let expected: Vec<usize> = (from..input.len()).filter(|&at| is_structural(input[at])).collect();
            assert_eq!(found, expected, "from {from}");
            assert_eq!(cursor.next(), input.len());
        }
    }

    #[test]
    fn the_window_goes_back_too() {
        let input = input();
        let mut window = Window::new(&input, Dialect::new());
        let mut cursor = Cursor::new(&mut window);
        for at in [12_000, 3, 4097, 4095, 0] {
            cursor.seek(at);
            let expected = (at..).find(|&at| is_structural(input[at])).unwrap();
            assert_eq!(cursor.next(), expected);
        }
    }

    #[test]
    fn find_end_passes_all_but_spaces_line_feeds_and_backslashes() {
        let mut input = std::vec![b','; 10_000];
        for (at, byte) in [(5, b' '), (64, b'\n'), (4095, b'\\'), (9000, b' ')] {
            input[at] = byte;
        }
        let mut window = Window::new(&input, Dialect::new());
        let mut cursor = Cursor::new(&mut window);
        let mut at = 0;
        for expected in [5, 64, 4095, 9000, 10_000] {
            assert_eq!(cursor.find_end(at), expected);
            at = expected + 1;
        }
    }
}
