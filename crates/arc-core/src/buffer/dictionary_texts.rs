//! Texts that repeat: each distinct one once, and for each row its code among them, of a byte or
//! two.
//!
//! Says when the texts turn out to be mostly distinct, which take more so than one after the other.
//! Knows no nulls: a row without a value has some place, or none at all if there is no text yet.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, PrimitiveArray, StringArray},
    buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer},
    datatypes::{ArrowDictionaryKeyType, DataType, UInt8Type, UInt16Type},
};

use super::column::empty_vec;
use crate::{Error, Result, arrays::TextDictionary};

/// Most distinct texts, which two bytes tell apart.
const MOST_TEXTS: usize = 1 << 16;
/// Bytes of the longest text: a query gets each row's written out, which nothing counts while they
/// are here.
const LONGEST_TEXT: usize = 128;
/// Distinct texts up to which no caller asks whether they repeat.
const FEW_TEXTS: usize = 64;

/// The code of each row.
#[derive(Debug)]
enum Codes {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

/// See the module.
#[derive(Debug)]
pub(super) struct DictionaryTexts {
    codes: Codes,
    dictionary: TextDictionary,
    /// Bytes of the texts of all rows, also of those that were taken back.
    text_bytes: usize,
}

impl DictionaryTexts {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self::of(Codes::Bytes(Vec::with_capacity(rows)))
    }

    fn of(codes: Codes) -> Self {
        Self { codes, dictionary: TextDictionary::default(), text_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        match &self.codes {
            Codes::Bytes(codes) => codes.len(),
            Codes::Words(codes) => codes.len(),
        }
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.code_bytes() + self.dictionary.held_bytes()
    }

    /// Returns the bytes that the texts would take one after the other.
    pub(super) fn plain_bytes(&self) -> usize {
        self.len() * size_of::<i32>() + self.text_bytes
    }

    fn code_bytes(&self) -> usize {
        match &self.codes {
            Codes::Bytes(codes) => codes.len(),
            Codes::Words(codes) => codes.len() * 2,
        }
    }

    /// Appends a text. `false`, and no text, if the texts are mostly distinct, or it is not one for
    /// a dictionary.
    #[inline]
    pub(super) fn push(&mut self, text: &[u8]) -> bool {
        let known = self.dictionary.len();
        let code = self.dictionary.index(text);
        if self.dictionary.len() > known && !(text.len() <= LONGEST_TEXT && self.is_worth_it(known, self.len() + 1)) {
            return false;
        }
        self.codes.push(code);
        self.text_bytes += text.len();
        true
    }

    /// Appends a text of which no caller asks whether it repeats. `false`, and no text, if it is
    /// not one for a dictionary.
    pub(super) fn push_any(&mut self, text: &[u8]) -> bool {
        if text.len() > LONGEST_TEXT {
            return false;
        }
        let code = self.dictionary.index(text);
        self.codes.push(code);
        self.text_bytes += text.len();
        self.dictionary.len() <= MOST_TEXTS
    }

    /// Appends the texts of `other`. `false`, and none of them, if the texts are mostly distinct.
    pub(super) fn append(&mut self, other: &Self) -> bool {
        let known = self.dictionary.len();
        let codes: Vec<u32> = other.dictionary.texts().map(|text| self.dictionary.index(text)).collect();
        if !self.is_worth_it(known, self.len() + other.len()) {
            return false;
        }
        self.codes.extend(&other.codes, &codes, self.dictionary.len());
        self.text_bytes += other.text_bytes;
        true
    }

    /// Returns whether texts repeat in so many rows, of which `known` were there before the last
    /// ones. It is asked whenever there are twice as many as before.
    fn is_worth_it(&self, known: usize, rows: usize) -> bool {
        let texts = self.dictionary.len();
        let has_doubled = texts.leading_zeros() < known.leading_zeros();
        texts <= MOST_TEXTS && !(has_doubled && texts >= FEW_TEXTS && texts > rows / 2)
    }

    pub(super) fn push_nulls(&mut self, count: usize) {
        match &mut self.codes {
            Codes::Bytes(codes) => codes.resize(codes.len() + count, 0),
            Codes::Words(codes) => codes.resize(codes.len() + count, 0),
        }
    }

    /// Takes the last text back.
    pub(super) fn pop(&mut self) {
        match &mut self.codes {
            Codes::Bytes(codes) => {
                codes.pop();
            }
            Codes::Words(codes) => {
                codes.pop();
            }
        }
    }

    /// Returns the text of a row.
    #[inline]
    pub(super) fn text(&self, row: usize) -> &[u8] {
        let code = match &self.codes {
            Codes::Bytes(codes) => codes.get(row).map(|code| u32::from(*code)),
            Codes::Words(codes) => codes.get(row).map(|code| u32::from(*code)),
        };
        self.dictionary.text(code.unwrap_or(u32::MAX))
    }

    /// Returns whether every text is UTF-8.
    pub(super) fn are_utf8(&self) -> bool {
        self.dictionary.texts().all(|text| str::from_utf8(text).is_ok())
    }

    /// Returns the texts so far as an array; costs a copy.
    pub(super) fn to_array(&self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let texts = self.dictionary.to_offsets_and_bytes();
        match &self.codes {
            Codes::Bytes(codes) => array::<UInt8Type>(codes.clone().into(), texts, nulls),
            Codes::Words(codes) => array::<UInt16Type>(codes.clone().into(), texts, nulls),
        }
    }

    pub(super) fn into_array(self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let texts = self.dictionary.to_offsets_and_bytes();
        match self.codes {
            Codes::Bytes(codes) => array::<UInt8Type>(codes.into(), texts, nulls),
            Codes::Words(codes) => array::<UInt16Type>(codes.into(), texts, nulls),
        }
    }

    /// Returns no texts, with the memory for codes that an array of encoded texts has, if nothing
    /// else has it.
    pub(super) fn emptied(array: ArrayRef) -> Option<Self> {
        let is_bytes = array.as_dictionary_opt::<UInt8Type>().is_some();
        let codes = array.to_data().buffers().first()?.clone();
        drop(array);
        Some(Self::of(if is_bytes { Codes::Bytes(empty_vec(codes)?) } else { Codes::Words(empty_vec(codes)?) }))
    }
}

impl Codes {
    #[inline]
    fn push(&mut self, code: u32) {
        match (&mut *self, u8::try_from(code)) {
            (Self::Bytes(codes), Ok(code)) => codes.push(code),
            (Self::Bytes(_), Err(_)) => {
                self.widen();
                self.push(code);
            }
            // There are no more than have room in two bytes.
            (Self::Words(codes), _) => codes.push(u16::try_from(code).unwrap_or(u16::MAX)),
        }
    }

    /// Appends the codes of others, which are `map`'s here, below `end`.
    fn extend(&mut self, others: &Self, map: &[u32], end: usize) {
        if end > usize::from(u8::MAX) + 1 {
            self.widen();
        }
        // Where there is no text yet, rows have no value.
        let code = |other: usize| map.get(other).copied().unwrap_or(0);
        match (self, others) {
            (Self::Bytes(codes), Self::Bytes(others)) => {
                let mut all = [0; 256];
                for (narrow, code) in all.iter_mut().zip(map) {
                    *narrow = u8::try_from(*code).unwrap_or(u8::MAX);
                }
                codes.extend(others.iter().map(|other| all.get(usize::from(*other)).copied().unwrap_or(0)));
            }
            (Self::Bytes(codes), Self::Words(others)) => {
                codes.extend(others.iter().map(|other| u8::try_from(code(usize::from(*other))).unwrap_or(u8::MAX)));
            }
            (Self::Words(codes), Self::Bytes(others)) => {
                codes.extend(others.iter().map(|other| u16::try_from(code(usize::from(*other))).unwrap_or(u16::MAX)));
            }
            (Self::Words(codes), Self::Words(others)) => {
                codes.extend(others.iter().map(|other| u16::try_from(code(usize::from(*other))).unwrap_or(u16::MAX)));
            }
        }
    }

    #[cold]
    fn widen(&mut self) {
        if let Self::Bytes(codes) = self {
            let mut words = Vec::with_capacity(codes.capacity());
            words.extend(codes.iter().map(|code| u16::from(*code)));
            *self = Self::Words(words);
        }
    }
}

fn array<K: ArrowDictionaryKeyType>(
    codes: ScalarBuffer<K::Native>,
    (offsets, bytes): (Vec<i32>, Vec<u8>),
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let texts = StringArray::try_new(OffsetBuffer::new(offsets.into()), Buffer::from_vec(bytes), None)?;
    let codes = PrimitiveArray::<K>::try_new(codes, nulls)?;
    Ok(Arc::new(DictionaryArray::try_new(codes, Arc::new(texts))?))
}

/// Returns whether a type is that of texts as codes.
pub(super) fn is_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(codes, texts) => {
            matches!(**codes, DataType::UInt8 | DataType::UInt16) && **texts == DataType::Utf8
        }
        _ => false,
    }
}

/// Returns an array of encoded texts with nulls after its rows.
pub(super) fn padded(array: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    fn of<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>, rows: usize) -> Result<ArrayRef> {
        let nulls = PrimitiveArray::<K>::new_null(rows.saturating_sub(array.len()));
        let codes = arrow::compute::concat(&[array.keys(), &nulls])?;
        Ok(Arc::new(DictionaryArray::try_new(codes.as_primitive::<K>().clone(), Arc::clone(array.values()))?))
    }
    match (array.as_dictionary_opt::<UInt8Type>(), array.as_dictionary_opt::<UInt16Type>()) {
        (Some(array), _) => of(array, rows),
        (_, Some(array)) => of(array, rows),
        _ => Err(Error::internal(format!("a column of {} was taken for dictionary texts", array.data_type()))),
    }
}

/// Returns the texts of a dictionary as they would be encoded here, or `None` if it is none of
/// texts, or not worth it.
pub(crate) fn encoded(array: &ArrayRef) -> Result<Option<ArrayRef>> {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return Ok(None) };
    let texts = dictionary.values();
    let is_text = matches!(texts.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if !is_text || texts.null_count() > 0 || texts.len() > MOST_TEXTS.min(array.len() / 2) {
        return Ok(None);
    }
    let texts = arrow::compute::cast(texts, &DataType::Utf8)?;
    if texts.as_string::<i32>().offsets().lengths().any(|length| length > LONGEST_TEXT) {
        return Ok(None);
    }
    let codes = if texts.len() <= 1 << u8::BITS { DataType::UInt8 } else { DataType::UInt16 };
    let data_type = DataType::Dictionary(Box::new(codes), Box::new(DataType::Utf8));
    Ok(Some(arrow::compute::cast(array, &data_type)?))
}
