//! Texts that repeat: each distinct one once, and for each row its place among them, of a byte or two.
//!
//! Says when the texts turn out to be mostly distinct, which take more so than one behind the other. Knows no nulls: a row
//! without a value has some place, or none at all if there is no text yet.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, PrimitiveArray, StringArray},
    buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer},
    datatypes::{ArrowDictionaryKeyType, DataType, UInt8Type, UInt16Type},
};

use super::column::empty_vec;
use crate::{Error, Result, datafile::TextDictionary};

/// Most distinct texts, which two bytes tell apart.
const MOST_TEXTS: usize = 1 << 16;
/// Bytes of the longest text: a query gets each row's written out, which nobody counts while they are here.
const LONGEST_TEXT: usize = 128;
/// Distinct texts up to which nobody asks whether they repeat.
const FEW_TEXTS: usize = 64;

/// The place of each row.
#[derive(Debug)]
enum Places {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

/// See the module.
#[derive(Debug)]
pub(super) struct PlacedTexts {
    places: Places,
    dictionary: TextDictionary,
    /// Bytes of the texts of all rows, also of those that were taken back.
    text_bytes: usize,
}

impl PlacedTexts {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self::of(Places::Bytes(Vec::with_capacity(rows)))
    }

    fn of(places: Places) -> Self {
        Self { places, dictionary: TextDictionary::default(), text_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        match &self.places {
            Places::Bytes(places) => places.len(),
            Places::Words(places) => places.len(),
        }
    }

    /// Returns the bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.place_bytes() + self.dictionary.held_bytes()
    }

    /// Returns the bytes that the texts would take one behind the other.
    pub(super) fn plain_bytes(&self) -> usize {
        self.len() * size_of::<i32>() + self.text_bytes
    }

    fn place_bytes(&self) -> usize {
        match &self.places {
            Places::Bytes(places) => places.len(),
            Places::Words(places) => places.len() * 2,
        }
    }

    /// Appends a text. `false`, and no text, if the texts are mostly distinct, or it is not one for a dictionary.
    #[inline]
    pub(super) fn push(&mut self, text: &[u8]) -> bool {
        let known = self.dictionary.len();
        let place = self.dictionary.index(text);
        if self.dictionary.len() > known && !(text.len() <= LONGEST_TEXT && self.is_worth_it(known, self.len() + 1)) {
            return false;
        }
        self.places.push(place);
        self.text_bytes += text.len();
        true
    }

    /// Appends a text of which nobody asks whether it repeats. `false`, and no text, if it is not one for a dictionary.
    pub(super) fn push_any(&mut self, text: &[u8]) -> bool {
        if text.len() > LONGEST_TEXT {
            return false;
        }
        let place = self.dictionary.index(text);
        self.places.push(place);
        self.text_bytes += text.len();
        self.dictionary.len() <= MOST_TEXTS
    }

    /// Appends the texts of `other`. `false`, and none of them, if the texts are mostly distinct.
    pub(super) fn append(&mut self, other: &Self) -> bool {
        let known = self.dictionary.len();
        let places: Vec<u32> = other.dictionary.texts().map(|text| self.dictionary.index(text)).collect();
        if !self.is_worth_it(known, self.len() + other.len()) {
            return false;
        }
        self.places.extend(&other.places, &places, self.dictionary.len());
        self.text_bytes += other.text_bytes;
        true
    }

    /// Returns whether texts repeat in so many rows, of which `known` were there before the last ones. It is asked whenever
    /// there are twice as many as before.
    fn is_worth_it(&self, known: usize, rows: usize) -> bool {
        let texts = self.dictionary.len();
        let has_doubled = texts.leading_zeros() < known.leading_zeros();
        texts <= MOST_TEXTS && !(has_doubled && texts >= FEW_TEXTS && texts > rows / 2)
    }

    pub(super) fn push_nulls(&mut self, count: usize) {
        match &mut self.places {
            Places::Bytes(places) => places.resize(places.len() + count, 0),
            Places::Words(places) => places.resize(places.len() + count, 0),
        }
    }

    /// Takes the last text back.
    pub(super) fn pop(&mut self) {
        match &mut self.places {
            Places::Bytes(places) => {
                places.pop();
            }
            Places::Words(places) => {
                places.pop();
            }
        }
    }

    /// Returns the text of a row.
    #[inline]
    pub(super) fn text(&self, row: usize) -> &[u8] {
        let place = match &self.places {
            Places::Bytes(places) => places.get(row).map(|place| u32::from(*place)),
            Places::Words(places) => places.get(row).map(|place| u32::from(*place)),
        };
        self.dictionary.text(place.unwrap_or(u32::MAX))
    }

    /// Returns whether every text is UTF-8.
    pub(super) fn are_utf8(&self) -> bool {
        self.dictionary.texts().all(|text| str::from_utf8(text).is_ok())
    }

    /// Returns the texts so far as an array; costs a copy.
    pub(super) fn to_array(&self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let texts = self.dictionary.to_offsets_and_bytes();
        match &self.places {
            Places::Bytes(places) => array::<UInt8Type>(places.clone().into(), texts, nulls),
            Places::Words(places) => array::<UInt16Type>(places.clone().into(), texts, nulls),
        }
    }

    pub(super) fn into_array(self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let texts = self.dictionary.to_offsets_and_bytes();
        match self.places {
            Places::Bytes(places) => array::<UInt8Type>(places.into(), texts, nulls),
            Places::Words(places) => array::<UInt16Type>(places.into(), texts, nulls),
        }
    }

    /// Returns no texts, with the memory for places that an array of placed texts has, if nobody else has it.
    pub(super) fn emptied(array: ArrayRef) -> Option<Self> {
        let is_bytes = array.as_dictionary_opt::<UInt8Type>().is_some();
        let places = array.to_data().buffers().first()?.clone();
        drop(array);
        Some(Self::of(if is_bytes { Places::Bytes(empty_vec(places)?) } else { Places::Words(empty_vec(places)?) }))
    }
}

impl Places {
    #[inline]
    fn push(&mut self, place: u32) {
        match (&mut *self, u8::try_from(place)) {
            (Self::Bytes(places), Ok(place)) => places.push(place),
            (Self::Bytes(_), Err(_)) => {
                self.widen();
                self.push(place);
            }
            // There are no more than have room in two bytes.
            (Self::Words(places), _) => places.push(u16::try_from(place).unwrap_or(u16::MAX)),
        }
    }

    /// Appends the places of others, which are `map`'s here, below `end`.
    fn extend(&mut self, others: &Self, map: &[u32], end: usize) {
        if end > usize::from(u8::MAX) + 1 {
            self.widen();
        }
        // Where there is no text yet, rows have no value.
        let place = |other: usize| map.get(other).copied().unwrap_or(0);
        match (self, others) {
            (Self::Bytes(places), Self::Bytes(others)) => {
                let mut all = [0; 256];
                for (narrow, place) in all.iter_mut().zip(map) {
                    *narrow = u8::try_from(*place).unwrap_or(u8::MAX);
                }
                places.extend(others.iter().map(|other| all.get(usize::from(*other)).copied().unwrap_or(0)));
            }
            (Self::Bytes(places), Self::Words(others)) => {
                places.extend(others.iter().map(|other| u8::try_from(place(usize::from(*other))).unwrap_or(u8::MAX)));
            }
            (Self::Words(places), Self::Bytes(others)) => {
                places.extend(others.iter().map(|other| u16::try_from(place(usize::from(*other))).unwrap_or(u16::MAX)));
            }
            (Self::Words(places), Self::Words(others)) => {
                places.extend(others.iter().map(|other| u16::try_from(place(usize::from(*other))).unwrap_or(u16::MAX)));
            }
        }
    }

    #[cold]
    fn widen(&mut self) {
        if let Self::Bytes(places) = self {
            let mut words = Vec::with_capacity(places.capacity());
            words.extend(places.iter().map(|place| u16::from(*place)));
            *self = Self::Words(words);
        }
    }
}

fn array<K: ArrowDictionaryKeyType>(
    places: ScalarBuffer<K::Native>,
    (offsets, bytes): (Vec<i32>, Vec<u8>),
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let texts = StringArray::try_new(OffsetBuffer::new(offsets.into()), Buffer::from_vec(bytes), None)?;
    let places = PrimitiveArray::<K>::try_new(places, nulls)?;
    Ok(Arc::new(DictionaryArray::try_new(places, Arc::new(texts))?))
}

/// Returns whether a type is that of texts as places.
pub(super) fn is_placed(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(places, texts) => {
            matches!(**places, DataType::UInt8 | DataType::UInt16) && **texts == DataType::Utf8
        }
        _ => false,
    }
}

/// Returns an array of placed texts with nulls behind its rows.
pub(super) fn padded(array: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    fn of<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>, rows: usize) -> Result<ArrayRef> {
        let nulls = PrimitiveArray::<K>::new_null(rows.saturating_sub(array.len()));
        let places = arrow::compute::concat(&[array.keys(), &nulls])?;
        Ok(Arc::new(DictionaryArray::try_new(places.as_primitive::<K>().clone(), Arc::clone(array.values()))?))
    }
    match (array.as_dictionary_opt::<UInt8Type>(), array.as_dictionary_opt::<UInt16Type>()) {
        (Some(array), _) => of(array, rows),
        (_, Some(array)) => of(array, rows),
        _ => Err(Error::internal(format!("a column of {} was taken for one of places", array.data_type()))),
    }
}

/// Returns the texts of a dictionary as they would be placed here, or `None` if it is none of texts, or not worth it.
pub(crate) fn placed(array: &ArrayRef) -> Result<Option<ArrayRef>> {
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
    let places = if texts.len() <= 1 << u8::BITS { DataType::UInt8 } else { DataType::UInt16 };
    let data_type = DataType::Dictionary(Box::new(places), Box::new(DataType::Utf8));
    Ok(Some(arrow::compute::cast(array, &data_type)?))
}
