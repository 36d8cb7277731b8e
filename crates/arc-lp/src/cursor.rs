//! Walks from one structural byte to the next.
//!
//! Small enough to stay in registers while a record is parsed: what is large, and what is rarely
//! needed, is in the [`Window`] it refers to. Never knows what a byte means.

use core::hint::cold_path;

use crate::block::BLOCK;
use crate::window::Window;

/// Where a cursor is: all that must be kept to go on from there later.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Place {
    /// The first byte of the current block.
    block: usize,
    /// The structural bytes of that block that were not taken yet.
    rest: u64,
}

/// A place in an input.
pub(crate) struct Cursor<'w, 'a> {
    input: &'a [u8],
    window: &'w mut Window<'a>,
    place: Place,
}

impl<'w, 'a> Cursor<'w, 'a> {
    /// A cursor where another one was.
    #[inline(always)]
    pub(crate) const fn at(window: &'w mut Window<'a>, place: Place) -> Self {
        Self { input: window.input(), window, place }
    }

    #[inline(always)]
    pub(crate) const fn place(&self) -> Place {
        self.place
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
        match self.input.get(start..end) {
            Some(bytes) => bytes,
            // Cannot be; saying that it is rare keeps it out of the way.
            None => {
                cold_path();
                &[]
            }
        }
    }

    /// Takes the next structural byte and returns its place, or the end of the input.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> usize {
        while self.place.rest == 0 {
            let block = self.place.block + BLOCK;
            if block >= self.input.len() {
                return self.input.len();
            }
            self.place = Place { block, rest: self.window.masks(block).structural };
        }
        let at = self.place.block + self.place.rest.trailing_zeros() as usize;
        self.place.rest &= self.place.rest - 1;
        at
    }

    /// Goes to `at`, so that [`next`](Self::next) takes the first structural byte from there on.
    #[inline(always)]
    pub(crate) fn seek(&mut self, at: usize) {
        let block = at - at % BLOCK;
        let rest = if at < self.input.len() { self.window.masks(at).structural } else { 0 };
        self.place = Place { block, rest: rest & (u64::MAX << (at % BLOCK)) };
    }

    /// Returns the first line feed, space or backslash from `at` on, or the end of the input, and
    /// goes behind it.
    #[inline(always)]
    pub(crate) fn seek_end(&mut self, at: usize) -> usize {
        let mut block = at - at % BLOCK;
        let mut above = u64::MAX << (at % BLOCK);
        while block < self.input.len() {
            let masks = self.window.masks(block);
            let ends = masks.ends & above;
            if ends != 0 {
                // The lowest bit and all below it are passed.
                let rest = masks.structural & !(ends ^ (ends - 1));
                self.place = Place { block, rest };
                return block + ends.trailing_zeros() as usize;
            }
            block += BLOCK;
            above = u64::MAX;
        }
        self.place = Place { block, rest: 0 };
        self.input.len()
    }

    /// Whether a name or string from `start` to a structural byte already taken may hold a tab, a
    /// NUL or bad UTF-8.
    #[inline(always)]
    pub(crate) const fn is_suspect(&self, start: usize) -> bool {
        self.window.is_suspect(start)
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
            let mut window = Window::new(&input);
            let mut cursor = Cursor::at(&mut window, Place::default());
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
        let mut window = Window::new(&input);
        let mut cursor = Cursor::at(&mut window, Place::default());
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
        let mut window = Window::new(&input);
        let mut cursor = Cursor::at(&mut window, Place::default());
        let mut at = 0;
        for expected in [5, 64, 4095, 9000, 10_000] {
            assert_eq!(cursor.seek_end(at), expected);
            at = expected + 1;
        }
        cursor.seek_end(0);
        assert_eq!(cursor.next(), 6);
    }
}
