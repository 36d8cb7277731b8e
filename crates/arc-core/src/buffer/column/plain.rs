//! The values of a column as they lie in memory, for those who write them somewhere and read them
//! back.

use super::{Bits, BufferedValues, ColumnValues};

/// The values of a column of one of the five plain types, those of nulls included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Plain<'a> {
    Float(&'a [f64]),
    Integer(&'a [i64]),
    Unsigned(&'a [u64]),
    /// Bits from the lowest of the first word on.
    Boolean(&'a [u64]),
    /// Where each text ends; it starts where the one before ends.
    Text(&'a [i32], &'a [u8]),
}

impl ColumnValues {
    /// Returns the values as they lie in memory; `None` where the type is another, or texts are
    /// codes.
    pub(crate) fn plain(&self) -> Option<Plain<'_>> {
        Some(match &self.values {
            BufferedValues::Float(v) => Plain::Float(v),
            BufferedValues::Integer(v) => Plain::Integer(v),
            BufferedValues::Unsigned(v) => Plain::Unsigned(v),
            BufferedValues::Boolean(v) => Plain::Boolean(v.words()),
            BufferedValues::Text(texts) => {
                let (ends, bytes) = texts.ends_and_bytes()?;
                Plain::Text(ends, bytes)
            }
            BufferedValues::Arrow { .. } => return None,
        })
    }

    /// Returns which values are there, as bits from the lowest of the first word on, if some may
    /// not be.
    pub(crate) fn present(&self) -> Option<&[u64]> {
        self.valid.as_ref().map(Bits::words)
    }

    /// Takes `len` booleans; what the words have beyond them is left out.
    pub(crate) fn from_booleans(words: Vec<u64>, len: usize) -> Self {
        let bits = Bits::from_words(words, len);
        Self { len: bits.len(), values: BufferedValues::Boolean(bits), valid: None }
    }

    /// Makes those of the values null whose bits are not set; there is a bit for each.
    pub(crate) fn with_present(self, words: Vec<u64>) -> Self {
        Self { valid: Some(Bits::from_words(words, self.len)), ..self }
    }
}
