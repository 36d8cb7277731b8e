//! One value of a row.

use std::borrow::Cow;

/// A value of a row, as [`ParquetWriter::push_row`](super::ParquetWriter::push_row) takes it.
///
/// A column takes a value that it can hold exactly: an integer also goes into a column of floats if
/// no digit of it is lost, a float into one of integers if it has no fraction. Into a column of
/// timestamps goes an integer, in the column's unit.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A signed integer, or a timestamp.
    Integer(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// A float.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// Says what kind of value it is, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "no value",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) | Self::Unsigned(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a text",
        }
    }

    /// Returns the integer that it is, if it is one exactly.
    pub(super) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Unsigned(value) => i64::try_from(*value).ok(),
            Self::Float(value) => whole(*value),
            _ => None,
        }
    }

    /// Returns the unsigned integer that it is, if it is one exactly.
    pub(super) fn as_unsigned(&self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(*value),
            _ => self.as_integer().and_then(|value| u64::try_from(value).ok()),
        }
    }

    /// Returns the float that it is, if it is one exactly.
    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Integer(value) if value.unsigned_abs() <= EXACT => Some(*value as f64),
            Self::Unsigned(value) if *value <= EXACT => Some(*value as f64),
            _ => None,
        }
    }
}

/// Up to here every integer is a float.
const EXACT: u64 = 1 << 53;

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit")]
fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() <= EXACT as f64).then_some(value as i64)
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i32> for Value<'_> {
    fn from(value: i32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u64> for Value<'_> {
    fn from(value: u64) -> Self {
        Self::Unsigned(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Cow::Owned(value))
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_types_another_kind_only_where_it_is_the_same_number() {
        let cases = [
            (Value::Integer(-1), Some(-1), None, Some(-1.0)),
            (Value::Unsigned(u64::MAX), None, Some(u64::MAX), None),
            (Value::Integer(i64::MAX), Some(i64::MAX), Some(i64::MAX.cast_unsigned()), None),
            (Value::Integer(1 << 53), Some(1 << 53), Some(1 << 53), Some(9_007_199_254_740_992.0)),
            (Value::Integer((1 << 53) + 1), Some((1 << 53) + 1), Some((1 << 53) + 1), None),
            (Value::Float(200.0), Some(200), Some(200), Some(200.0)),
            (Value::Float(0.5), None, None, Some(0.5)),
            (Value::Float(1e300), None, None, Some(1e300)),
            (Value::Float(f64::INFINITY), None, None, Some(f64::INFINITY)),
            (Value::Text("1".into()), None, None, None),
            (Value::Boolean(true), None, None, None),
            (Value::Null, None, None, None),
        ];
        for (value, integer, unsigned, float) in cases {
            assert_eq!(
                (value.as_integer(), value.as_unsigned(), value.as_float()),
                (integer, unsigned, float),
                "{value:?}"
            );
        }
        assert_eq!(Value::Float(f64::NAN).as_integer(), None);
    }
}
