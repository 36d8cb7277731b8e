//! One column of CSV: text into values of its type, exactly or not at all.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, StringArray, StringBuilder,
        StringDictionaryBuilder, UInt64Builder,
    },
    compute::{can_cast_types, cast},
    datatypes::{DataType, Int32Type},
};

use crate::{Error, Result};

/// Words for no value in a column of anything but text.
const NULL_WORDS: [&str; 15] =
    ["NA", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL", "Null", "None", "none", "nil", "-", "--", "?", "."];

/// Returns whether a value of anything but text is none.
pub(super) fn is_null(text: &str) -> bool {
    NULL_WORDS.contains(&text)
}

/// What the values of a column are.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CellType {
    Integer,
    Unsigned,
    Float,
    /// Floats with a comma where others have a point. Of three digits behind it one cannot tell, unless other values show it.
    DecimalComma {
        is_clear: bool,
    },
    Boolean,
    Text,
    Tag,
    /// What Arrow makes of text, in a table that was written as Arrow.
    Other(DataType),
}

impl CellType {
    /// Returns what the cells of a field of a table are; the error says why there can be none.
    pub(super) fn of(data_type: &DataType) -> Result<Self, String> {
        Ok(match data_type {
            DataType::Int64 => Self::Integer,
            DataType::UInt64 => Self::Unsigned,
            DataType::Float64 => Self::Float,
            DataType::Boolean => Self::Boolean,
            DataType::Utf8 => Self::Text,
            other if can_cast_types(&DataType::Utf8, other) => Self::Other(other.clone()),
            other => return Err(format!("is {other} in the table, which no text can be read as")),
        })
    }

    /// Reads a value; the error says what was expected. An empty one is null, but in a column of
    /// text, and so is a word for none in one of numbers or truths, where blanks do not count.
    pub(super) fn read<'r>(&self, text: &'r str) -> Result<CsvCell<'r>, String> {
        let is_text = matches!(self, Self::Text | Self::Tag | Self::Other(_));
        let text = if is_text { text } else { text.trim() };
        if text.is_empty() && !matches!(self, Self::Text) {
            return Ok(CsvCell::Null);
        }
        let cell = match self {
            Self::Integer => integer(text).map(CsvCell::Integer),
            Self::Unsigned => unsigned(text).map(CsvCell::Unsigned),
            Self::Float => float(text).map(CsvCell::Float),
            Self::DecimalComma { is_clear } => {
                let comma = decimal_comma(text).filter(|(_, clear)| *is_clear || *clear);
                comma.map(|(value, _)| value).or_else(|| float(text)).map(CsvCell::Float)
            }
            Self::Boolean => boolean(text).map(CsvCell::Boolean),
            Self::Text | Self::Tag => Some(CsvCell::Text(text)),
            Self::Other(data_type) => {
                let cast = cast(&StringArray::from(vec![text]), data_type);
                cast.is_ok_and(|value| value.null_count() == 0).then_some(CsvCell::Text(text))
            }
        };
        let cell = cell.or_else(|| (!is_text && is_null(text)).then_some(CsvCell::Null));
        cell.ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            format!("{shown:?} is not {}", self.name())
        })
    }

    fn name(&self) -> String {
        match self {
            Self::Integer => "a 64-bit integer".to_owned(),
            Self::Unsigned => "an unsigned 64-bit integer".to_owned(),
            Self::Float | Self::DecimalComma { .. } => "a number that a float can hold".to_owned(),
            Self::Boolean => "true or false".to_owned(),
            Self::Text | Self::Tag => "text".to_owned(),
            Self::Other(data_type) => format!("of the type {data_type}, which the table has"),
        }
    }

    /// Returns what a report calls it.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Integer => "integer".to_owned(),
            Self::Unsigned => "unsigned".to_owned(),
            Self::Float | Self::DecimalComma { .. } => "float".to_owned(),
            Self::Boolean => "boolean".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Tag => "tag".to_owned(),
            Self::Other(data_type) => data_type.to_string(),
        }
    }
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum CsvCell<'r> {
    Null,
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Boolean(bool),
    Text(&'r str),
}

/// Returns whether a number begins with zeros that reading it as a number would lose.
fn is_padded(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text).as_bytes();
    matches!(digits, [b'0', next, ..] if next.is_ascii_digit())
}

pub(super) fn integer(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| !is_padded(text) && text != "-0")
}

pub(super) fn unsigned(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !is_padded(text))
}

/// Reads a float. An integer has to be exact, and only words are infinite.
pub(super) fn float(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok().filter(|_| !is_padded(text))?;
    #[expect(clippy::cast_possible_truncation, reason = "compared with the integer itself")]
    let is_exact = text.parse::<i128>().map_or(true, |integer| value as i128 == integer);
    let overflows = value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (is_exact && !overflows).then_some(value)
}

/// Reads a number with a comma where others have a point, and returns whether the comma can be nothing else: `1,234` may be more
/// than a thousand.
pub(super) fn decimal_comma(text: &str) -> Option<(f64, bool)> {
    let (whole, fraction) = text.split_once(',')?;
    let is_plain = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()) && !whole.contains('.');
    let value = float(&format!("{whole}.{fraction}")).filter(|_| is_plain)?;
    Some((value, fraction.len() != 3))
}

pub(super) fn boolean(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") || is("t") { Some(true) } else { (is("false") || is("f")).then_some(false) }
}

/// The values of a column that make the next piece.
pub(super) struct CellColumn {
    cell: CellType,
    values: CsvValues,
}

enum CsvValues {
    Integer(Int64Builder),
    Unsigned(UInt64Builder),
    Float(Float64Builder),
    Boolean(BooleanBuilder),
    Text(StringBuilder),
    Tag(StringDictionaryBuilder<Int32Type>),
}

impl CellColumn {
    pub(super) fn new(cell: CellType) -> Self {
        let values = match &cell {
            CellType::Integer => CsvValues::Integer(Int64Builder::new()),
            CellType::Unsigned => CsvValues::Unsigned(UInt64Builder::new()),
            CellType::Float | CellType::DecimalComma { .. } => CsvValues::Float(Float64Builder::new()),
            CellType::Boolean => CsvValues::Boolean(BooleanBuilder::new()),
            CellType::Tag => CsvValues::Tag(StringDictionaryBuilder::new()),
            CellType::Text | CellType::Other(_) => CsvValues::Text(StringBuilder::new()),
        };
        Self { cell, values }
    }

    pub(super) fn read<'r>(&self, text: &'r str) -> Result<CsvCell<'r>, String> {
        self.cell.read(text)
    }

    /// Appends a value that [`read`](Self::read) has returned.
    pub(super) fn push(&mut self, cell: CsvCell<'_>) -> Result<()> {
        match (&mut self.values, cell) {
            (CsvValues::Integer(values), CsvCell::Integer(value)) => values.append_value(value),
            (CsvValues::Unsigned(values), CsvCell::Unsigned(value)) => values.append_value(value),
            (CsvValues::Float(values), CsvCell::Float(value)) => values.append_value(value),
            (CsvValues::Boolean(values), CsvCell::Boolean(value)) => values.append_value(value),
            (CsvValues::Text(values), CsvCell::Text(value)) => values.append_value(value),
            (CsvValues::Tag(values), CsvCell::Text(value)) => values.append(value).map(drop)?,
            (CsvValues::Integer(values), CsvCell::Null) => values.append_null(),
            (CsvValues::Unsigned(values), CsvCell::Null) => values.append_null(),
            (CsvValues::Float(values), CsvCell::Null) => values.append_null(),
            (CsvValues::Boolean(values), CsvCell::Null) => values.append_null(),
            (CsvValues::Text(values), CsvCell::Null) => values.append_null(),
            (CsvValues::Tag(values), CsvCell::Null) => values.append_null(),
            (_, cell) => return Err(Error::internal(format!("a column of {} was given {cell:?}", self.cell.name()))),
        }
        Ok(())
    }

    /// Returns the values so far, and begins anew.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let array: ArrayRef = match &mut self.values {
            CsvValues::Integer(values) => Arc::new(values.finish()),
            CsvValues::Unsigned(values) => Arc::new(values.finish()),
            CsvValues::Float(values) => Arc::new(values.finish()),
            CsvValues::Boolean(values) => Arc::new(values.finish()),
            CsvValues::Text(values) => Arc::new(values.finish()),
            CsvValues::Tag(values) => Arc::new(values.finish()),
        };
        match &self.cell {
            CellType::Other(data_type) => Ok(cast(&array, data_type)?),
            _ => Ok(array),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_exactly_or_not_at_all() {
        use CellType::{Boolean, DecimalComma, Float, Integer, Other, Tag, Text, Unsigned};
        let cases = [
            (Integer, " 5 ", Some(CsvCell::Integer(5))),
            (Integer, "NA", Some(CsvCell::Null)),
            (Float, " - ", Some(CsvCell::Null)),
            (Text, "NA", Some(CsvCell::Text("NA"))),
            (Text, " a ", Some(CsvCell::Text(" a "))),
            (Tag, "-", Some(CsvCell::Text("-"))),
            (DecimalComma { is_clear: false }, "1,5", Some(CsvCell::Float(1.5))),
            (DecimalComma { is_clear: false }, "1.5", Some(CsvCell::Float(1.5))),
            (DecimalComma { is_clear: false }, "1,234", None),
            (DecimalComma { is_clear: true }, "-1,234", Some(CsvCell::Float(-1.234))),
            (DecimalComma { is_clear: true }, "1.234,5", None),
            (DecimalComma { is_clear: true }, "1,234,5", None),
            (DecimalComma { is_clear: true }, "1,", None),
            (Integer, "-5", Some(CsvCell::Integer(-5))),
            (Integer, "+5", Some(CsvCell::Integer(5))),
            (Integer, "", Some(CsvCell::Null)),
            (Integer, "007", None),
            (Integer, "-0", None),
            (Integer, "1.0", None),
            (Integer, "9223372036854775808", None),
            (Unsigned, "18446744073709551615", Some(CsvCell::Unsigned(u64::MAX))),
            (Unsigned, "-1", None),
            (Float, "1e3", Some(CsvCell::Float(1_000.0))),
            (Float, "0.5", Some(CsvCell::Float(0.5))),
            (Float, "inf", Some(CsvCell::Float(f64::INFINITY))),
            (Float, "9007199254740993", None),
            (Float, "9007199254740992", Some(CsvCell::Float(9_007_199_254_740_992.0))),
            (Float, "1e999", None),
            (Float, "00.5", None),
            (Float, "1,5", None),
            (Boolean, "TRUE", Some(CsvCell::Boolean(true))),
            (Boolean, "f", Some(CsvCell::Boolean(false))),
            (Boolean, "1", None),
            (Text, "", Some(CsvCell::Text(""))),
            (Tag, "", Some(CsvCell::Null)),
            (Tag, "a", Some(CsvCell::Text("a"))),
            (Other(DataType::Int8), "127", Some(CsvCell::Text("127"))),
            (Other(DataType::Int8), "128", None),
            (Other(DataType::Date32), "2024-02-30", None),
        ];
        for (cell, text, expected) in cases {
            assert_eq!(cell.read(text).ok(), expected, "{cell:?} {text}");
        }
    }
}
