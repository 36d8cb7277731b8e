//! Field values: as written ([`RawValue`]) and as read ([`FieldValue`]).

use core::fmt;

use crate::error::ErrorKind;
use crate::number;
use crate::text::{Escapes, Text};

/// A field value of its type.
#[derive(Copy, Clone, Debug, PartialEq)]
#[non_exhaustive]
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

/// Whether the quotes are there, and a backslash that means something.
#[derive(Copy, Clone)]
enum Form {
    Bare,
    String,
    EscapedString,
}

/// A field value as written, not yet read.
///
/// A string is complete and checked already; of the others only the place is known, so whoever
/// takes the bytes as they are must call [`parse`](Self::parse) to learn whether they are a value.
#[derive(Copy, Clone)]
pub struct RawValue<'a> {
    form: Form,
    /// The input up to the end of the value: numbers are read from there in whole words.
    to_end: &'a [u8],
    length: usize,
}

impl<'a> RawValue<'a> {
    /// The last `length` bytes of `to_end`.
    #[inline(always)]
    pub(crate) const fn bare(to_end: &'a [u8], length: usize) -> Self {
        Self { form: Form::Bare, to_end, length }
    }

    #[inline(always)]
    pub(crate) const fn string(text: Text<'a>) -> Self {
        let form = if text.is_escaped() { Form::EscapedString } else { Form::String };
        Self { form, to_end: text.raw(), length: text.raw().len() }
    }

    /// Returns the type that the value has if it is one.
    #[inline(always)]
    #[must_use]
    pub const fn kind(&self) -> ValueKind {
        match (self.form, self.to_end.last()) {
            (Form::String | Form::EscapedString, _) => ValueKind::String,
            (Form::Bare, Some(b'0'..=b'9' | b'.')) => ValueKind::Float,
            (Form::Bare, Some(b'i')) => ValueKind::Integer,
            (Form::Bare, Some(b'u')) => ValueKind::Unsigned,
            (Form::Bare, _) => ValueKind::Boolean,
        }
    }

    /// Returns the bytes as they stand in the input: a string without its quotes but with its
    /// escapes, an integer with its suffix.
    #[inline(always)]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        let start = self.to_end.len().wrapping_sub(self.length);
        self.to_end.get(start..).unwrap_or_default()
    }

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ValueInvalid`] where the bytes are no value, [`ErrorKind::ValueOutOfRange`]
    /// where they are a number that does not fit.
    #[inline(always)]
    pub fn parse(&self) -> Result<FieldValue<'a>, ErrorKind> {
        match self.kind() {
            ValueKind::Float => Ok(FieldValue::Float(number::float(self.to_end, self.length)?)),
            ValueKind::Integer => {
                let (digits, length) = self.without_suffix();
                Ok(FieldValue::Integer(number::signed(digits, length)?))
            }
            ValueKind::Unsigned => {
                let (digits, length) = self.without_suffix();
                Ok(FieldValue::Unsigned(number::unsigned(digits, length)?))
            }
            ValueKind::String => {
                let is_escaped = matches!(self.form, Form::EscapedString);
                let text = Text::new(self.to_end, Escapes::String, is_escaped);
                Ok(FieldValue::String(text))
            }
            ValueKind::Boolean => Ok(FieldValue::Boolean(boolean(self.bytes())?)),
        }
    }

    /// The bytes up to the suffix, and how many of them are the number.
    #[inline(always)]
    fn without_suffix(&self) -> (&'a [u8], usize) {
        let digits = self.to_end.split_last().map_or(self.to_end, |(_, digits)| digits);
        (digits, self.length.saturating_sub(1))
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
            assert_eq!(RawValue::bare(written.as_bytes(), written.len()).parse(), expected, "{written}");
        }
    }
}
