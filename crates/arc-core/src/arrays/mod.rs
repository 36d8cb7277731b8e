//! Tools for values in columns that no folder owns: dictionaries of texts, numbers as texts, the order of floats,
//! arrays in another type, columns handed on by pieces. Knows no table and no file.

mod columns;
pub(crate) mod exact;
pub(crate) mod float_order;
pub(crate) mod numbers_as_text;
mod text_dictionary;

pub(crate) use columns::Columns;
pub(crate) use text_dictionary::{TextDictionary, width_of};
