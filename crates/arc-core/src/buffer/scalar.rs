//! One value, before it is in a column.

use arrow::datatypes::DataType;

use crate::{
    arrays::numbers_as_text::{push_boolean, push_integer, push_plain_float},
    model::EXACT_FLOATS,
};

/// One value on its way into a column. The column's type has been checked to fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scalar<'a> {
    Float(f64),
    Integer(i64),
    Unsigned(u64),
    Boolean(bool),
    Text(&'a str),
    /// Text as bytes that are known to be UTF-8. They are checked once more, all together, when the
    /// column is made an array.
    Bytes(&'a [u8]),
}

impl Scalar<'_> {
    /// Returns the number as a float, if a float can hold it exactly.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "checked by converting back")]
    pub(crate) fn exact_float(&self) -> Option<f64> {
        match *self {
            Self::Float(x) => Some(x),
            Self::Integer(x) => Some(x as f64).filter(|float| *float as i128 == i128::from(x)),
            Self::Unsigned(x) => Some(x as f64).filter(|float| *float as i128 == i128::from(x)),
            Self::Boolean(_) | Self::Text(_) | Self::Bytes(_) => None,
        }
    }

    /// Returns whether it is a float, or an integer that is no larger than all are floats, too.
    pub(crate) fn is_small(&self) -> bool {
        match *self {
            Self::Float(_) => true,
            Self::Integer(value) => value.unsigned_abs() <= EXACT_FLOATS,
            Self::Unsigned(value) => value <= EXACT_FLOATS,
            Self::Boolean(_) | Self::Text(_) | Self::Bytes(_) => false,
        }
    }

    /// Returns it as text.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        match *self {
            Self::Float(value) => push_plain_float(value, &mut text),
            Self::Integer(value) => push_integer(value, &mut text),
            Self::Unsigned(value) => push_integer(value, &mut text),
            Self::Boolean(value) => push_boolean(value, &mut text),
            Self::Text(value) => text.extend_from_slice(value.as_bytes()),
            Self::Bytes(value) => text.extend_from_slice(value),
        }
        text
    }

    /// Returns whether that is the type of a column.
    #[inline(always)]
    pub(crate) fn is_of(&self, data_type: &DataType) -> bool {
        matches!(
            (self, data_type),
            (Self::Float(_), DataType::Float64)
                | (Self::Integer(_), DataType::Int64)
                | (Self::Unsigned(_), DataType::UInt64)
                | (Self::Boolean(_), DataType::Boolean)
                | (Self::Text(_) | Self::Bytes(_), DataType::Utf8)
        )
    }

    /// Returns the type that a column decided by this value has.
    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Self::Float(_) => DataType::Float64,
            Self::Integer(_) => DataType::Int64,
            Self::Unsigned(_) => DataType::UInt64,
            Self::Boolean(_) => DataType::Boolean,
            Self::Text(_) | Self::Bytes(_) => DataType::Utf8,
        }
    }
}
