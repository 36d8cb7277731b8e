//! The texts of an array, of whichever form a column of texts has in a chunk.

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, StringArray},
    datatypes::{UInt8Type, UInt16Type},
};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextArray<'a> {
    Plain(&'a StringArray),
    /// Places of a byte or two, and the distinct texts.
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
        if let Some((places, texts)) = bytes.and_then(|places| Some((places, places.values().as_string_opt()?))) {
            return Some(Self::Bytes(places, texts));
        }
        let words = array.as_dictionary_opt::<UInt16Type>();
        words.and_then(|places| Some(Self::Words(places, places.values().as_string_opt()?)))
    }

    /// Returns the text of a row, if it has one.
    #[inline]
    pub(super) fn text(self, row: usize) -> Option<&'a str> {
        let of = |texts: &'a StringArray, place: usize| (place < texts.len()).then(|| texts.value(place));
        match self {
            Self::Plain(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::Bytes(places, texts) => places.key(row).and_then(|place| of(texts, place)),
            Self::Words(places, texts) => places.key(row).and_then(|place| of(texts, place)),
        }
    }
}
