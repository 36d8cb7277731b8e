//! The parts of one record as plain numbers, and the room for them.

use crate::text::{Escapes, Span, Text};
use crate::value::FieldValue;

/// Where a tag or field of a record stands, and the value of a field that is no string.
///
/// Borrows nothing, so that one buffer serves input after input.
#[derive(Copy, Clone, Debug, Default)]
pub struct Token {
    key_start: usize,
    key_end: usize,
    /// The bits of a number, or the end of a text in the input.
    bits: u64,
    kind: Kind,
    key_escapes: Option<Escapes>,
    text_escapes: Option<Escapes>,
}

/// What the bits of a token are: the types of [`FieldValue`] in its order, so that the compiler
/// need not tell numbers apart.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Float,
    Integer,
    Unsigned,
    Boolean,
    #[default]
    Text,
}

impl Token {
    #[inline(always)]
    pub(super) const fn new(key: Span, kind: Kind, bits: u64, text_escapes: Option<Escapes>) -> Self {
        let Span { start: key_start, end: key_end, escapes: key_escapes } = key;
        Self { key_start, key_end, bits, kind, key_escapes, text_escapes }
    }

    #[inline(always)]
    fn key<'a>(&self, input: &'a [u8]) -> Text<'a> {
        Span { start: self.key_start, end: self.key_end, escapes: self.key_escapes }.text(input)
    }

    /// The text that begins `gap` bytes after the key.
    #[inline(always)]
    fn text<'a>(&self, input: &'a [u8], gap: usize) -> Text<'a> {
        let end = usize::try_from(self.bits).unwrap_or_default();
        Span { start: self.key_end + gap, end, escapes: self.text_escapes }.text(input)
    }

    #[inline(always)]
    pub(super) fn tag<'a>(&self, input: &'a [u8]) -> (Text<'a>, Text<'a>) {
        // After the equals sign.
        (self.key(input), self.text(input, 1))
    }

    #[inline(always)]
    pub(super) fn field<'a>(&self, input: &'a [u8]) -> (Text<'a>, FieldValue<'a>) {
        let value = match self.kind {
            Kind::Float => FieldValue::Float(f64::from_bits(self.bits)),
            Kind::Integer => FieldValue::Integer(self.bits.cast_signed()),
            Kind::Unsigned => FieldValue::Unsigned(self.bits),
            Kind::Boolean => FieldValue::Boolean(self.bits != 0),
            // After the equals sign and the quote.
            Kind::Text => FieldValue::String(self.text(input, 2)),
        };
        (self.key(input), value)
    }
}

/// Room for the tokens of one record: `[Token]`, an array of them, or (feature `alloc`) a
/// `Vec<Token>`, which grows as needed.
///
/// What it holds before matters no more than what it holds after. A `Vec` does not get shorter.
pub trait Scratch: sealed::Room {}

mod sealed {
    use super::Token;

    pub trait Room {
        /// Keeps `token` as number `at`, one after the last; `false` where there is no room.
        fn put(&mut self, at: usize, token: Token) -> bool;
        fn tokens(&self) -> &[Token];
    }

    impl Room for [Token] {
        #[inline(always)]
        fn put(&mut self, at: usize, token: Token) -> bool {
            match self.get_mut(at) {
                Some(room) => *room = token,
                None => return false,
            }
            true
        }

        #[inline(always)]
        fn tokens(&self) -> &[Token] {
            self
        }
    }

    impl<const N: usize> Room for [Token; N] {
        #[inline(always)]
        fn put(&mut self, at: usize, token: Token) -> bool {
            self.as_mut_slice().put(at, token)
        }

        #[inline(always)]
        fn tokens(&self) -> &[Token] {
            self
        }
    }

    #[cfg(feature = "alloc")]
    impl Room for alloc::vec::Vec<Token> {
        #[inline(always)]
        fn put(&mut self, at: usize, token: Token) -> bool {
            if !self.as_mut_slice().put(at, token) {
                self.push(token);
            }
            true
        }

        #[inline(always)]
        fn tokens(&self) -> &[Token] {
            self
        }
    }
}

impl Scratch for [Token] {}
impl<const N: usize> Scratch for [Token; N] {}
#[cfg(feature = "alloc")]
impl Scratch for alloc::vec::Vec<Token> {}
