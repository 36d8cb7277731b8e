//! Rows as the log stores them: by table, in columns, with the tags of each series once.
//!
//! Owns these bytes (docs/format.md, "Rows in columns"), and the choice whether a request is logged
//! so or as it was received. The bytes need nothing of the process that wrote them; what they come
//! to is what the request came to. Never decides what a value is, nor changes one: that was done
//! when the request was decoded. Written by `engine` for live writes, read back by replay.

mod decode;
mod encode;
mod integers;
mod numbering;
mod reader;

use arrow::datatypes::DataType;

pub(crate) use decode::decode;
pub(crate) use encode::Encoders;

/// Types of columns as they are on disk. Never change one, only add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Tag = 0,
    Float = 1,
    Integer = 2,
    Unsigned = 3,
    Boolean = 4,
    Text = 5,
}

impl Type {
    fn from_byte(byte: u8) -> Option<Self> {
        let all = [Self::Tag, Self::Float, Self::Integer, Self::Unsigned, Self::Boolean, Self::Text];
        all.into_iter().find(|known| *known as u8 == byte)
    }

    /// Returns the type of a field, if it is one that can be stored.
    fn of_field(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Float64 => Self::Float,
            DataType::Int64 => Self::Integer,
            DataType::UInt64 => Self::Unsigned,
            DataType::Boolean => Self::Boolean,
            DataType::Utf8 => Self::Text,
            _ => return None,
        })
    }
}

/// Returns how many bytes a number below `count` takes.
fn index_bytes(count: usize) -> usize {
    match count {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests;
