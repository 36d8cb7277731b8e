//! Field values: as written ([`RawValue`]) and as read ([`FieldValue`]).

use core::fmt;

use crate::error::ErrorKind;
use crate::number;
use crate::text::{Escapes, Span, Text};

/// A field value of its type.
#[derive(Copy, Clone, Debug, PartialEq)]
#[non_exhaustive]
#[repr(u8)]
pub enum FieldValue<'a> {
    /// A number without suffix: finite, correctly rounded.
    Float(f64),
    /// A number with the suffix `i`.
    Integer(i64),
    /// A number with the suffix `u`.
    Unsigned(u64),
    /// One of `t T true True TRUE f F false False FALSE`.
    Boolean(bool),
    /// A quoted string.
    String(Text<'a>),
}

impl From<f64> for FieldValue<'_> {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<i64> for FieldValue<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u64> for FieldValue<'_> {
    fn from(value: u64) -> Self {
        Self::Unsigned(value)
    }
}

impl From<bool> for FieldValue<'_> {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl<'a> From<&'a str> for FieldValue<'a> {
    fn from(value: &'a str) -> Self {
        Self::String(Text::from(value))
    }
}

/// The type of a field value, known before the value is read.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueKind {
    /// Ends in a digit or a point.
    Float,
    /// Ends in `i`.
    Integer,
    /// Ends in `u`.
    Unsigned,
    /// Anything else: a boolean or no value at all.
    Boolean,
    /// Stands in quotes.
    String,
}

/// A field value as written, not yet read.
///
/// A string is complete and checked already; of the others only the span is known, so the caller
/// that takes the bytes as they are must call [`parse`](Self::parse) to learn whether they are a
/// value.
#[derive(Copy, Clone)]
pub struct RawValue<'a> {
    /// All of it: numbers are read backwards from their end in whole words.
    input: &'a [u8],
    is_string: bool,
    /// Without the quotes of a string.
    span: Span,
}

impl<'a> RawValue<'a> {
    #[inline(always)]
    pub(crate) const fn bare(input: &'a [u8], start: usize, end: usize) -> Self {
        Self { input, is_string: false, span: Span { start, end, escapes: None } }
    }

    #[inline(always)]
    pub(crate) const fn string(input: &'a [u8], span: Span) -> Self {
        Self { input, is_string: true, span }
    }

    #[inline(always)]
    pub(crate) const fn input(&self) -> &'a [u8] {
        self.input
    }

    /// Where the value stands, without the quotes of a string.
    #[inline(always)]
    pub(crate) const fn span(&self) -> Span {
        self.span
    }

    /// Returns the type that the value has if it is one.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        if self.is_string {
            return ValueKind::String;
        }
        match self.last_byte() {
            b'0'..=b'9' | b'.' => ValueKind::Float,
            b'i' => ValueKind::Integer,
            b'u' => ValueKind::Unsigned,
            _ => ValueKind::Boolean,
        }
    }

    #[inline(always)]
    fn last_byte(&self) -> u8 {
        self.input.get(self.span.end.wrapping_sub(1)).copied().unwrap_or_default()
    }

    /// Returns the bytes as they stand in the input: a string without its quotes but with its
    /// escapes, an integer with its suffix.
    #[inline(always)]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.span.text(self.input).raw()
    }

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ValueInvalid`] where the bytes are no value, [`ErrorKind::ValueOutOfRange`]
    /// where they are a number that does not fit.
    #[inline(always)]
    pub fn parse(&self) -> Result<FieldValue<'a>, ErrorKind> {
        let Span { start, end, .. } = self.span;
        let length = end.wrapping_sub(start);
        match self.kind() {
            ValueKind::Float => Ok(FieldValue::Float(number::float(self.up_to(end), length)?)),
            ValueKind::Integer => Ok(FieldValue::Integer(number::signed(self.up_to(end - 1), length - 1)?)),
            ValueKind::Unsigned => Ok(FieldValue::Unsigned(number::unsigned(self.up_to(end - 1), length - 1)?)),
            ValueKind::String => Ok(FieldValue::String(self.span.text(self.input))),
            ValueKind::Boolean => Ok(FieldValue::Boolean(boolean(self.bytes())?)),
        }
    }

    #[inline(always)]
    fn up_to(&self, end: usize) -> &'a [u8] {
        self.input.get(..end).unwrap_or_default()
    }
}

impl fmt::Debug for RawValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Text::new(self.bytes(), Escapes::String, false);
        f.debug_struct("RawValue").field("kind", &self.kind()).field("bytes", &text).finish()
    }
}

/// Reads the ten spellings of a boolean; `trUe` and the like are not among them.
const fn boolean(bytes: &[u8]) -> Result<bool, ErrorKind> {
    match bytes {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => Ok(true),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => Ok(false),
        _ => Err(ErrorKind::ValueInvalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_byte_decides_the_type() {
        let cases: [(&str, Result<FieldValue<'_>, ErrorKind>); 12] = [
            ("1", Ok(FieldValue::Float(1.0))),
            ("1.", Ok(FieldValue::Float(1.0))),
            ("1i", Ok(FieldValue::Integer(1))),
            ("1u", Ok(FieldValue::Unsigned(1))),
            ("t", Ok(FieldValue::Boolean(true))),
            ("FALSE", Ok(FieldValue::Boolean(false))),
            ("trUe", Err(ErrorKind::ValueInvalid)),
            ("i", Err(ErrorKind::ValueInvalid)),
            ("u", Err(ErrorKind::ValueInvalid)),
            ("1.5i", Err(ErrorKind::ValueInvalid)),
            ("NaN", Err(ErrorKind::ValueInvalid)),
            ("9223372036854775808i", Err(ErrorKind::ValueOutOfRange)),
        ];
        for (written, expected) in cases {
            assert_eq!(RawValue::bare(written.as_bytes(), 0, written.len()).parse(), expected, "{written}");
        }
    }
}
