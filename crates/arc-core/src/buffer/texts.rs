//! The texts of a column while they arrive: one after the other, or in a dictionary where they
//! repeat.
//!
//! What a column of texts is like shows in the rows that it has: a growing column is looked at when
//! there is enough of it, and goes over to codes or back without losing a row. Which form it has
//! nothing outside needs to know.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, StringArray},
    buffer::{Buffer, NullBuffer, OffsetBuffer},
};

use super::{
    column::empty_vec,
    dictionary_texts::{DictionaryTexts, is_dictionary},
    text_array::TextArray,
};
use crate::{Error, Result, arrays::TextDictionary};

/// Most bytes of text to make room for before they come: the first texts may be longer than those
/// that follow.
const MAX_TEXT_RESERVE: usize = 1 << 20;
/// Rows from which on it is asked whether texts repeat, each time for four times as many, and from
/// which on it no longer is.
const FIRST_TRY_ROWS: usize = 256;
const LAST_TRY_ROWS: usize = 16_384;
/// How many of the last texts are looked for among those before them.
const PROBED_TEXTS: usize = 64;
/// Bytes of text that a column goes over to codes with whenever others come so.
const FEW_BYTES: usize = 4096;
/// Rows that are worth a dictionary of their own.
const MANY_ROWS: usize = 64;

/// See the module. Knows no nulls: a row without a value has an empty text, or any.
#[derive(Debug)]
pub(crate) struct TextColumn(Form);

#[derive(Debug)]
enum Form {
    Plain(PlainTexts),
    Dictionary(DictionaryTexts),
}

/// `ends` has one entry a value; a value starts where the one before ends.
#[derive(Debug)]
struct PlainTexts {
    ends: Vec<i32>,
    bytes: Vec<u8>,
    /// Rows at which it is asked whether they repeat.
    next_try: usize,
}

impl TextColumn {
    /// Makes room for `rows` texts, which are not expected to repeat.
    pub(super) fn with_capacity(rows: usize) -> Self {
        // One more, for the array that it becomes.
        let ends = if rows > 0 { Vec::with_capacity(rows + 1) } else { Vec::new() };
        Self::plain(ends, Vec::new())
    }

    /// Makes room for `rows` texts, which repeat if there are many. They take `bytes` one after the
    /// other, or nearly so.
    pub(crate) fn for_rows(rows: usize, bytes: usize) -> Self {
        if rows >= MANY_ROWS {
            return Self(Form::Dictionary(DictionaryTexts::with_capacity(rows)));
        }
        Self::plain(Vec::with_capacity(rows), Vec::with_capacity(bytes))
    }

    /// Takes texts one after the other, which end at `ends`.
    pub(super) fn plain(ends: Vec<i32>, bytes: Vec<u8>) -> Self {
        Self(Form::Plain(PlainTexts { ends, bytes, next_try: FIRST_TRY_ROWS }))
    }

    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::Plain(plain) => plain.ends.len(),
            Form::Dictionary(encoded) => encoded.len(),
        }
    }

    /// Returns the bytes held (vectors may have room for more).
    pub(super) fn bytes(&self) -> usize {
        match &self.0 {
            Form::Plain(plain) => plain.ends.len() * size_of::<i32>() + plain.bytes.len(),
            Form::Dictionary(encoded) => encoded.bytes(),
        }
    }

    /// Returns the bytes that the texts take one after the other.
    pub(super) fn plain_bytes(&self) -> usize {
        match &self.0 {
            Form::Plain(_) => self.bytes(),
            Form::Dictionary(encoded) => encoded.plain_bytes(),
        }
    }

    /// Returns where each text ends in the bytes of all of them, unless they are codes.
    pub(super) fn ends_and_bytes(&self) -> Option<(&[i32], &[u8])> {
        match &self.0 {
            Form::Plain(PlainTexts { ends, bytes, .. }) => Some((ends, bytes)),
            Form::Dictionary(_) => None,
        }
    }

    /// Returns the text of a row.
    #[inline]
    pub(super) fn text(&self, row: usize) -> &[u8] {
        match &self.0 {
            Form::Plain(plain) => plain.text(row),
            Form::Dictionary(encoded) => encoded.text(row),
        }
    }

    /// Appends a text. `false`, and no text, where there are 2 GiB of them.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) -> bool {
        match &mut self.0 {
            Form::Plain(plain) => plain.push(text),
            Form::Dictionary(encoded) => encoded.push(text) || self.push_distinct(text),
        }
    }

    #[cold]
    fn push_distinct(&mut self, text: &[u8]) -> bool {
        self.become_plain() && self.push(text)
    }

    pub(super) fn push_nulls(&mut self, count: usize) {
        match &mut self.0 {
            Form::Plain(PlainTexts { ends, .. }) => {
                ends.resize(ends.len() + count, ends.last().copied().unwrap_or(0));
            }
            Form::Dictionary(encoded) => encoded.push_nulls(count),
        }
    }

    /// Takes the last text back.
    pub(super) fn pop(&mut self) {
        match &mut self.0 {
            Form::Plain(PlainTexts { ends, bytes, .. }) => {
                ends.pop();
                bytes.truncate(ends.last().map_or(0, |end| usize::try_from(*end).unwrap_or(0)));
            }
            Form::Dictionary(encoded) => encoded.pop(),
        }
    }

    /// Appends all texts of `other`.
    pub(super) fn append(&mut self, other: &Self) -> Result<()> {
        if let (Form::Plain(plain), Form::Dictionary(_)) = (&self.0, &other.0)
            && plain.bytes.len() < FEW_BYTES
        {
            self.become_dictionary();
        }
        let appended = match (&mut self.0, &other.0) {
            (Form::Plain(plain), Form::Plain(other)) => plain.append(other),
            (Form::Dictionary(encoded), Form::Dictionary(of_other)) => {
                encoded.append(of_other) || (self.become_plain() && self.append_each(other))
            }
            _ => self.append_each(other),
        };
        if appended { Ok(()) } else { Err(too_much_text()) }
    }

    fn append_each(&mut self, other: &Self) -> bool {
        (0..other.len()).all(|row| self.push(other.text(row)))
    }

    /// Appends the texts of an array.
    pub(super) fn append_array(&mut self, array: &ArrayRef) -> Result<()> {
        let appended = match (&mut self.0, array.as_string_opt::<i32>()) {
            (Form::Plain(plain), Some(texts)) => plain.append_array(texts)?,
            _ => {
                let texts = TextArray::new(array).ok_or_else(|| Error::internal("an array without texts"))?;
                (0..array.len()).all(|row| self.push(texts.text(row).unwrap_or_default().as_bytes()))
            }
        };
        if appended { Ok(()) } else { Err(too_much_text()) }
    }

    /// Goes over to codes if there are enough texts to see that they repeat.
    pub(super) fn reconsider(&mut self) {
        let Form::Plain(plain) = &mut self.0 else { return };
        let rows = plain.ends.len();
        if rows < plain.next_try || plain.next_try > LAST_TRY_ROWS {
            return;
        }
        while plain.next_try <= rows {
            plain.next_try *= 4;
        }
        if plain.repeat() {
            self.become_dictionary();
        }
    }

    /// Takes codes for texts, unless there are too many different ones.
    fn become_dictionary(&mut self) {
        let Form::Plain(plain) = &self.0 else { return };
        let mut encoded = DictionaryTexts::with_capacity(plain.ends.capacity().max(plain.ends.len()));
        if (0..plain.ends.len()).all(|row| encoded.push_any(plain.text(row))) {
            self.0 = Form::Dictionary(encoded);
        }
    }

    /// Writes the texts out one after the other. `false`, and nothing, where they have 2 GiB.
    fn become_plain(&mut self) -> bool {
        let Form::Dictionary(encoded) = &self.0 else { return true };
        let (rows, bytes) = (encoded.len(), encoded.plain_bytes());
        let mut plain = PlainTexts {
            ends: Vec::with_capacity(rows * 2),
            bytes: Vec::with_capacity(bytes),
            next_try: FIRST_TRY_ROWS,
        };
        while plain.next_try <= rows {
            plain.next_try *= 4;
        }
        let is_written = (0..rows).all(|row| plain.push(encoded.text(row)));
        if is_written {
            self.0 = Form::Plain(plain);
        }
        is_written
    }

    /// Returns whether every text is UTF-8.
    pub(crate) fn are_utf8(&self) -> bool {
        match &self.0 {
            Form::Plain(plain) => plain.are_utf8(),
            Form::Dictionary(encoded) => encoded.are_utf8(),
        }
    }

    /// Returns the texts so far as an array, of type `Utf8` or of [codes](is_dictionary); costs a
    /// copy.
    pub(super) fn to_array(&self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        match &self.0 {
            Form::Plain(PlainTexts { ends, bytes, .. }) => {
                let offsets = std::iter::once(0).chain(ends.iter().copied()).collect();
                text_array(offsets, Buffer::from_slice_ref(bytes), nulls)
            }
            Form::Dictionary(encoded) => encoded.to_array(nulls),
        }
    }

    /// Turns the texts into an array, as [`to_array`](Self::to_array), without copying them.
    pub(super) fn into_array(self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        match self.0 {
            Form::Plain(PlainTexts { mut ends, bytes, .. }) => {
                ends.insert(0, 0);
                text_array(ends, Buffer::from_vec(bytes), nulls)
            }
            Form::Dictionary(encoded) => encoded.into_array(nulls),
        }
    }

    /// Returns no texts, of the form and with the memory that an array of texts has, if nothing
    /// else has it.
    pub(super) fn emptied(array: ArrayRef) -> Option<Self> {
        if is_dictionary(array.data_type()) {
            return DictionaryTexts::emptied(array).map(|encoded| Self(Form::Dictionary(encoded)));
        }
        let texts = array.as_any().downcast_ref::<StringArray>()?.clone();
        drop(array);
        let (ends, bytes, _) = texts.into_parts();
        Some(Self::plain(empty_vec(ends.into_inner().into_inner())?, empty_vec(bytes)?))
    }
}

impl PlainTexts {
    #[inline]
    fn push(&mut self, text: &[u8]) -> bool {
        let Ok(end) = i32::try_from(self.bytes.len() + text.len()) else { return false };
        self.bytes.extend_from_slice(text);
        self.ends.push(end);
        true
    }

    #[inline]
    fn text(&self, row: usize) -> &[u8] {
        let end = |row: usize| self.ends.get(row).map_or(0, |end| usize::try_from(*end).unwrap_or(0));
        let start = row.checked_sub(1).map_or(0, end);
        self.bytes.get(start..end(row)).unwrap_or_default()
    }

    fn append(&mut self, other: &Self) -> bool {
        if self.bytes.capacity() == 0 {
            // As much a value as these have, for as many values as there is room for, and an eighth
            // more: a little too little would be copied into twice as much.
            let expected = other.bytes.len() * (self.ends.capacity() / other.ends.len().max(1)).max(1);
            self.bytes.reserve((expected + expected / 8).min(MAX_TEXT_RESERVE));
        }
        self.extend(&other.bytes, other.ends.iter().copied())
    }

    fn append_array(&mut self, array: &StringArray) -> Result<bool> {
        let offsets = array.value_offsets();
        let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
        let range = usize::try_from(first).unwrap_or(0)..usize::try_from(last).unwrap_or(0);
        let text = array.value_data().get(range).ok_or_else(|| Error::internal("text offsets out of range"))?;
        Ok(self.extend(text, offsets.iter().skip(1).map(|end| end - first)))
    }

    fn extend(&mut self, text: &[u8], ends: impl Iterator<Item = i32>) -> bool {
        let Ok(base) = i32::try_from(self.bytes.len()) else { return false };
        if i32::try_from(self.bytes.len() + text.len()).is_err() {
            return false;
        }
        self.bytes.extend_from_slice(text);
        self.ends.extend(ends.map(|end| base + end));
        true
    }

    /// Returns whether most of the last texts were there before, which costs less than a dictionary
    /// of all.
    fn repeat(&self) -> bool {
        let mut last = TextDictionary::default();
        let before = self.ends.len().saturating_sub(PROBED_TEXTS);
        (before..self.ends.len()).for_each(|row| {
            last.index(self.text(row));
        });
        let mut seen = vec![false; last.len()];
        for code in (0..before).filter_map(|row| last.find(self.text(row))) {
            if let Some(seen) = seen.get_mut(code as usize) {
                *seen = true;
            }
        }
        seen.iter().filter(|seen| **seen).count() * 2 >= seen.len()
    }

    /// Texts that are valid as a whole are valid each if none begins within a character.
    fn are_utf8(&self) -> bool {
        let Ok(all) = str::from_utf8(&self.bytes) else { return false };
        let whole = |end: &i32| usize::try_from(*end).is_ok_and(|end| all.is_char_boundary(end));
        all.is_ascii() || self.ends.iter().all(whole)
    }
}

pub(super) fn too_much_text() -> Error {
    Error::internal("more than 2 GiB of text in one column of one chunk")
}

fn text_array(offsets: Vec<i32>, bytes: Buffer, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    Ok(Arc::new(StringArray::try_new(OffsetBuffer::new(offsets.into()), bytes, nulls)?))
}

#[cfg(test)]
mod tests;
