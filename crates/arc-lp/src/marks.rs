//! Finds the parts of a checked record again, one by one.
//!
//! For the pull face, whose points hold no more than where they are. Classifies the 64 bytes ahead
//! when they are needed, so that a point costs nothing for what no caller asks of it. Trusts that
//! the record is good: there is no error here, only an end.

use core::hint::cold_path;

use crate::block::{self, BLOCK};
use crate::text::{Escapes, Span};

/// A position in a checked record.
#[derive(Clone)]
pub(crate) struct Marks<'a> {
    input: &'a [u8],
    /// Where the 64 bytes that `rest` is about begin.
    base: usize,
    /// The structural bytes among those 64 that were not taken yet.
    rest: u64,
    names: Escapes,
}

impl<'a> Marks<'a> {
    /// The structural bytes of `input` from `at` on; `names` are the escapes of all but strings.
    #[inline(always)]
    pub(crate) fn new(input: &'a [u8], at: usize, names: Escapes) -> Self {
        Self { input, base: at, rest: block::structural(input, at), names }
    }

    #[inline(always)]
    pub(crate) const fn input(&self) -> &'a [u8] {
        self.input
    }

    #[inline(always)]
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.input.get(at).copied().unwrap_or(b'\n')
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
            self.rest = block::structural(self.input, base);
        }
        let at = self.base + self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        at
    }

    /// Takes the name from `start` to the first `end`, or space, that has no escape in front.
    #[inline(always)]
    pub(crate) fn name(&mut self, start: usize, end: u8) -> Span {
        let at = self.next();
        if matches!(self.byte(at), byte if byte == end || byte == b' ') {
            return Span { start, end: at, escapes: None };
        }
        cold_path();
        self.text(start, at, self.names, end)
    }

    /// Takes the string whose quote stands in front of `start`, and the quote after it.
    #[inline(always)]
    pub(crate) fn string(&mut self, start: usize) -> Span {
        self.next();
        let at = self.next();
        if self.byte(at) == b'"' {
            return Span { start, end: at, escapes: None };
        }
        cold_path();
        self.text(start, at, Escapes::String, b'"')
    }

    /// Takes the rest of a text in which `at` is the first structural byte.
    fn text(&mut self, start: usize, mut at: usize, kind: Escapes, end: u8) -> Span {
        let mut escapes = None;
        while at < self.input.len() {
            let byte = self.byte(at);
            if byte == end || (byte == b' ' && kind != Escapes::String) {
                break;
            }
            if byte == b'\\' && kind.covers(self.byte(at + 1)) {
                escapes = Some(kind);
                self.next();
            }
            at = self.next();
        }
        Span { start, end: at, escapes }
    }
}
