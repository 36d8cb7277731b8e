//! The texts of an array, of whichever form a column of texts has in a chunk.

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, StringArray},
    datatypes::{UInt8Type, UInt16Type},
};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextArray<'a> {
    Plain(&'a StringArray),
    /// Codes of a byte or two, and the distinct texts.
    Bytes(&'a DictionaryArray<UInt8Type>, &'a StringArray),
    Words(&'a DictionaryArray<UInt16Type>, &'a StringArray),
}

impl<'a> TextArray<'a> {
    /// Returns `None` if the array has no texts.
    pub(super) fn new(array: &'a ArrayRef) -> Option<Self> {
        if let Some(texts) = array.as_string_opt() {
            return Some(Self::Plain(texts));
        }
        let bytes = array.as_dictionary_opt::<UInt8Type>();
        if let Some((codes, texts)) = bytes.and_then(|codes| Some((codes, codes.values().as_string_opt()?))) {
            return Some(Self::Bytes(codes, texts));
        }
        let words = array.as_dictionary_opt::<UInt16Type>();
        words.and_then(|codes| Some(Self::Words(codes, codes.values().as_string_opt()?)))
    }

    /// Returns the text of a row, if it has one.
    #[inline]
    pub(super) fn text(self, row: usize) -> Option<&'a str> {
        let of = |texts: &'a StringArray, code: usize| (code < texts.len()).then(|| texts.value(code));
        match self {
            Self::Plain(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::Bytes(codes, texts) => codes.key(row).and_then(|code| of(texts, code)),
            Self::Words(codes, texts) => codes.key(row).and_then(|code| of(texts, code)),
        }
    }
}
