//! Options by name: what they are when they are read, and the errors for those that are not known.

use adbc_core::{
    error::{Error, Result, Status},
    options::OptionValue,
};

use crate::errors::invalid;

/// `r` or `rw`.
pub(crate) const MODE: &str = "arc.mode";
/// `disk`, `process` or `memory`.
pub(crate) const DURABILITY: &str = "arc.durability";
/// Database of a statement that names none.
pub(crate) const DATABASE: &str = "arc.database";
/// Tags of a table that is written: names with commas between them.
pub(crate) const TAGS: &str = "arc.tags";
/// Column of the rows that is the time.
pub(crate) const TIME: &str = "arc.time_column";
/// Unit of integers in that column.
pub(crate) const PRECISION: &str = "arc.precision";
/// Whether tags come as dictionaries.
pub(crate) const DICTIONARIES: &str = "arc.dictionaries";

/// Whether values belong to placeholders by their names.
pub(crate) const BY_NAME: &str = "adbc.statement.bind_by_name";

/// Returns the text of a value.
pub(crate) fn text(key: &str, value: OptionValue) -> Result<String> {
    match value {
        OptionValue::String(text) => Ok(text),
        other => Err(invalid(format!("option {key:?} takes a text, not {other:?}"))),
    }
}

/// Returns what a text stands for.
pub(crate) fn parsed<T>(key: &str, text: &str, expected: &str) -> Result<T>
where
    T: std::str::FromStr,
{
    text.parse().map_err(|_| invalid(format!("option {key:?}: {text:?} is not valid; expected {expected}")))
}

/// Returns the flag that a value stands for.
pub(crate) fn flag(key: &str, value: &OptionValue) -> Result<bool> {
    value.try_into().map_err(|error: Error| invalid(format!("option {key:?}: {}", error.message)))
}

/// Returns the error for an option that is not there.
pub(crate) fn unknown(key: &str) -> Error {
    Error::with_message_and_status(format!("there is no option {key:?}"), Status::NotFound)
}

/// Returns the error for setting an option that is not there.
pub(crate) fn unknown_to_set(key: &str) -> Error {
    Error::with_message_and_status(format!("there is no option {key:?}"), Status::NotImplemented)
}

/// The getters for values of other types than text, of which there are none.
macro_rules! only_texts {
    ($option:ty) => {
        fn get_option_bytes(&self, key: $option) -> Result<Vec<u8>> {
            Err($crate::options::unknown(key.as_ref()))
        }

        fn get_option_int(&self, key: $option) -> Result<i64> {
            Err($crate::options::unknown(key.as_ref()))
        }

        fn get_option_double(&self, key: $option) -> Result<f64> {
            Err($crate::options::unknown(key.as_ref()))
        }
    };
}

pub(crate) use only_texts;
