//! What the columns of a file are that nothing has said: the narrowest type that all values fit.
//!
//! Digits are never lost for it: `007` is text, and so is a column of integers of which some fit no
//! 64 bits.

use csv::ByteRecord;

use super::{
    CsvFile,
    column::{CellType, boolean, decimal_comma, float, integer, is_null, unsigned},
};
use crate::{Result, import::time::TimeReader};

/// How much of a value is told.
const SHOWN_CHARS: usize = 64;

/// Which kinds of values a column has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct InferredKinds {
    negative: bool,
    integer: bool,
    /// Above what a signed integer can be.
    large: bool,
    float: bool,
    /// With a point.
    point: bool,
    /// With a comma for the point, and one that can be nothing else.
    comma: bool,
    clear_comma: bool,
    boolean: bool,
    /// Blanks, and words for no value.
    word: bool,
    text: bool,
}

impl InferredKinds {
    fn add(&mut self, text: &str, lets_comma: bool) {
        let text = text.trim();
        if let Some(value) = integer(text) {
            self.integer = true;
            self.negative |= value < 0;
        } else if unsigned(text).is_some() {
            self.large = true;
        } else if float(text).is_some() && text.parse::<i128>().is_err() {
            self.float = true;
            self.point |= text.contains('.');
        } else if let Some((_, is_clear)) = decimal_comma(text).filter(|_| lets_comma) {
            self.comma = true;
            self.clear_comma |= is_clear;
        } else if boolean(text).is_some() && text.len() > 1 {
            self.boolean = true;
        } else if text.is_empty() || is_null(text) {
            self.word = true;
        } else {
            self.text = true;
        }
    }

    /// Returns the type that fits all of them, if there are any.
    fn cell_type(self) -> Option<CellType> {
        let number = self.integer || self.large || self.float || self.comma;
        Some(match self {
            Self { text: true, .. } => CellType::Text,
            Self { boolean: true, .. } if number => CellType::Text,
            Self { boolean: true, .. } => CellType::Boolean,
            Self { comma: true, clear_comma, point, .. } if point || !clear_comma => CellType::Text,
            Self { comma: true, .. } => CellType::DecimalComma { is_clear: true },
            Self { float: true, .. } => CellType::Float,
            Self { large: true, negative: true, .. } => CellType::Text,
            Self { large: true, .. } => CellType::Unsigned,
            Self { integer: true, .. } => CellType::Integer,
            // Of words alone nobody can say that they mean nothing.
            Self { word: true, .. } => CellType::Text,
            _ => return None,
        })
    }
}

/// Finds the types that are missing in `types`, one stays missing where a column has no value at all. Returns of each the line and
/// the value that decided.
///
/// Rows that will be refused for their length or their time do not decide.
pub(super) fn infer(
    file: &CsvFile<'_>,
    time: &TimeReader,
    types: &mut [Option<CellType>],
) -> Result<Vec<Option<(u64, String)>>> {
    let lets_comma = file.delimiter != b',';
    let mut found = vec![(InferredKinds::default(), None); types.len()];
    let (mut reader, mut record) = (file.open()?, ByteRecord::new());
    while file.next(&mut reader, &mut record)? {
        if !file.fits(&record) || !file.time(&record).is_ok_and(|text| time.read(&text).is_ok()) {
            continue;
        }
        for ((cell, (kinds, decided)), known) in record.iter().zip(&mut found).zip(types.iter()) {
            if known.is_some() || kinds.text {
                continue;
            }
            let Ok(text) = std::str::from_utf8(cell) else { continue };
            if text.is_empty() || file.options.nulls.iter().any(|null| null == text) {
                continue;
            }
            let before = *kinds;
            kinds.add(text, lets_comma);
            if *kinds != before && (kinds.text || kinds.cell_type() != before.cell_type()) {
                let shown = text.chars().take(SHOWN_CHARS).collect::<String>();
                *decided = Some((file.line_of(&reader, &record), shown));
            }
        }
    }
    let (kinds, decided): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    for (cell, kinds) in types.iter_mut().zip(kinds).filter(|(cell, _)| cell.is_none()) {
        *cell = kinds.cell_type();
    }
    Ok(decided)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_type_that_fits_all_values_is_taken() {
        use CellType::{Boolean, DecimalComma, Float, Integer, Text, Unsigned};
        let cases = [
            (&["1", "NA", "2"][..], Some(Integer)),
            (&["NA", "-"], Some(Text)),
            (&["NA", "Namibia"], Some(Text)),
            (&[" 1", " "], Some(Integer)),
            (&["1,5", "1"], Some(DecimalComma { is_clear: true })),
            (&["1,5", "1,234"], Some(DecimalComma { is_clear: true })),
            (&["1,234", "12,345"], Some(Text)),
            (&["1,5", "2.5"], Some(Text)),
            (&["1", "-2"], Some(Integer)),
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
            values.iter().for_each(|value| kinds.add(value, true));
            assert_eq!(kinds.cell_type(), expected, "{values:?}");
        }
    }
}
