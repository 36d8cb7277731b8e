//! What the columns of a file are that nothing has said: the narrowest type that all values fit.
//!
//! Digits are never lost for it: `007` is text, and so is a column of integers of which some fit no
//! 64 bits.

use csv::ByteRecord;

use super::{
    CsvReader,
    column::{CellType, boolean, float, integer, unsigned},
    next,
};
use crate::{
    Result,
    import::{ImportOptions, source::ImportSource},
};

/// Which kinds of values a column has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct InferredKinds {
    negative: bool,
    integer: bool,
    /// Above what a signed integer can be.
    large: bool,
    float: bool,
    boolean: bool,
    text: bool,
}

impl InferredKinds {
    fn add(&mut self, text: &str) {
        if self.text {
            return;
        }
        if let Some(value) = integer(text) {
            self.integer = true;
            self.negative |= value < 0;
        } else if unsigned(text).is_some() {
            self.large = true;
        } else if float(text).is_some() && text.parse::<i128>().is_err() {
            self.float = true;
        } else if boolean(text).is_some() && text.len() > 1 {
            self.boolean = true;
        } else {
            self.text = true;
        }
    }

    /// Returns the type that fits all of them, if there are any.
    fn cell_type(self) -> Option<CellType> {
        let number = self.integer || self.large || self.float;
        Some(match self {
            Self { text: true, .. } => CellType::Text,
            Self { boolean: true, .. } if number => CellType::Text,
            Self { boolean: true, .. } => CellType::Boolean,
            Self { float: true, .. } => CellType::Float,
            Self { large: true, negative: true, .. } => CellType::Text,
            Self { large: true, .. } => CellType::Unsigned,
            Self { integer: true, .. } => CellType::Integer,
            _ => return None,
        })
    }
}

/// Finds the types that are missing in `types`; one stays missing where a column has no value at
/// all.
pub(super) fn infer(
    source: &ImportSource,
    reader: &mut CsvReader,
    types: &mut [Option<CellType>],
    options: &ImportOptions,
) -> Result<()> {
    let mut kinds = vec![InferredKinds::default(); types.len()];
    let mut record = ByteRecord::new();
    while next(source, reader, &mut record)? {
        // Rows that will be refused do not decide.
        if record.len() != types.len() {
            continue;
        }
        for ((cell, kinds), known) in record.iter().zip(&mut kinds).zip(types.iter()) {
            if known.is_none()
                && let Ok(text) = std::str::from_utf8(cell)
                && !text.is_empty()
                && !options.nulls.iter().any(|null| null == text)
            {
                kinds.add(text);
            }
        }
    }
    for (cell, kinds) in types.iter_mut().zip(kinds).filter(|(cell, _)| cell.is_none()) {
        *cell = kinds.cell_type();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_type_that_fits_all_values_is_taken() {
        use CellType::{Boolean, Float, Integer, Text, Unsigned};
        let cases = [
            (&["1", "-2"][..], Some(Integer)),
            (&["1", "18446744073709551615"], Some(Unsigned)),
            (&["-1", "18446744073709551615"], Some(Text)),
            (&["1", "2.5"], Some(Float)),
            (&["2.5", "18446744073709551615"], Some(Float)),
            (&["99999999999999999999"], Some(Text)),
            (&["true", "FALSE"], Some(Boolean)),
            (&["t", "f"], Some(Text)),
            (&["true", "1"], Some(Text)),
            (&["1", "x"], Some(Text)),
            (&["007"], Some(Text)),
            (&["1e999"], Some(Text)),
            (&["nan", "1"], Some(Float)),
            (&[], None),
        ];
        for (values, expected) in cases {
            let mut kinds = InferredKinds::default();
            values.iter().for_each(|value| kinds.add(value));
            assert_eq!(kinds.cell_type(), expected, "{values:?}");
        }
    }
}
