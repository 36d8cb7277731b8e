//! Field values: as written ([`RawValue`]) and as read ([`FieldValue`]).

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
/// A string is complete and checked already; of the others only the place is known, so whoever
/// takes the bytes as they are must call [`parse`](Self::parse) to learn whether they are a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RawValue<'a> {
    kind: ValueKind,
    text: Text<'a>,
}

impl<'a> RawValue<'a> {
    #[inline]
    pub(crate) const fn bare(bytes: &'a [u8]) -> Self {
        let kind = match bytes.last() {
            Some(b'0'..=b'9' | b'.') => ValueKind::Float,
            Some(b'i') => ValueKind::Integer,
            Some(b'u') => ValueKind::Unsigned,
            _ => ValueKind::Boolean,
        };
        Self {
            kind,
            text: Text::new(bytes, Escapes::String, false),
        }
    }

    #[inline]
    pub(crate) const fn string(text: Text<'a>) -> Self {
        Self {
            kind: ValueKind::String,
            text,
        }
    }

    /// Returns the type that the value has if it is one.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> ValueKind {
        self.kind
    }

    /// Returns the bytes as they stand in the input: a string without its quotes but with its
    /// escapes, an integer with its suffix.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.text.raw()
    }

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ValueInvalid`] where the bytes are no value, [`ErrorKind::ValueOutOfRange`]
    /// where they are a number that does not fit.
    #[inline]
    pub fn parse(&self) -> Result<FieldValue<'a>, ErrorKind> {
        let bytes = self.bytes();
        match (self.kind, bytes) {
            (ValueKind::Float, _) => Ok(FieldValue::Float(number::float(bytes)?)),
            (ValueKind::Integer, [digits @ .., _]) => {
                Ok(FieldValue::Integer(number::signed(digits)?))
            }
            (ValueKind::Unsigned, [digits @ .., _]) => {
                Ok(FieldValue::Unsigned(number::unsigned(digits)?))
            }
            (ValueKind::String, _) => Ok(FieldValue::String(self.text)),
            _ => Ok(FieldValue::Boolean(boolean(bytes)?)),
        }
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
            assert_eq!(
                RawValue::bare(written.as_bytes()).parse(),
                expected,
                "{written}"
            );
        }
    }
}
