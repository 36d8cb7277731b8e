//! Gathers text fields that come as codes in dictionaries: each distinct text of an input is looked
//! at once, not in every row that has it.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray},
    buffer::NullBuffer,
    datatypes::Int32Type,
};

use super::assemble::BatchRow;
use crate::{Error, Result, arrays::TextDictionary};

/// Bytes of distinct texts after which they are gathered anew.
const MAX_BYTES: usize = 1 << 20;
/// Texts of one dictionary whose codes are kept; those after them are looked up in every row.
const MAX_PLACES: usize = 65_536;

/// The texts of one field that the merge has met.
#[derive(Debug, Default)]
pub(super) struct MergedTexts {
    dictionary: TextDictionary,
    /// All of them as an array, as long as there are no more.
    values: Option<ArrayRef>,
    inputs: Vec<Input>,
}

/// A dictionary of an input.
#[derive(Debug)]
struct Input {
    values: ArrayRef,
    /// Codes of its texts among ours plus one; 0 where one is not known yet.
    codes: Vec<i32>,
}

impl MergedTexts {
    /// Returns these rows, as codes in one dictionary. `columns` are dictionaries of texts; what is
    /// in none is null.
    pub(super) fn gather(&mut self, columns: &[Option<&ArrayRef>], rows: &[BatchRow]) -> Result<ArrayRef> {
        let columns: Vec<Option<&DictionaryArray<Int32Type>>> =
            columns.iter().map(|column| column.and_then(|column| column.as_dictionary_opt())).collect();
        self.prepare(&columns);
        let inputs: Vec<Option<usize>> = columns.iter().map(|column| self.input_of((*column)?)).collect();
        let mut keys: Vec<i32> = Vec::with_capacity(rows.len());
        let mut valid: Vec<bool> = Vec::new();
        for (batch, row) in rows {
            let column = columns.get(*batch).copied().flatten();
            let input = inputs.get(*batch).copied().flatten();
            let key = column.zip(input).and_then(|(column, input)| self.key(input, column.key(*row)?));
            if key.is_none() && valid.is_empty() {
                valid.resize(keys.len(), true);
            }
            if key.is_none() || !valid.is_empty() {
                valid.push(key.is_some());
            }
            keys.push(key.unwrap_or(0));
        }
        let nulls = (!valid.is_empty()).then(|| NullBuffer::from(valid));
        let keys = Int32Array::try_new(keys.into(), nulls)?;
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, self.values()?)?))
    }

    /// Forgets dictionaries that no column has any more, and makes room for those that it has.
    fn prepare(&mut self, columns: &[Option<&DictionaryArray<Int32Type>>]) {
        if self.dictionary.page_bytes() > MAX_BYTES {
            *self = Self::default();
        }
        let columns = || columns.iter().flatten();
        self.inputs.retain(|input| columns().any(|column| Arc::ptr_eq(column.values(), &input.values)));
        for column in columns() {
            if self.input_of(column).is_none() {
                let values = Arc::clone(column.values());
                self.inputs.push(Input { codes: vec![0; values.len().min(MAX_PLACES)], values });
            }
        }
    }

    fn input_of(&self, column: &DictionaryArray<Int32Type>) -> Option<usize> {
        self.inputs.iter().position(|input| Arc::ptr_eq(column.values(), &input.values))
    }

    /// Returns our code of a text of an input, or `None` where that is null.
    #[inline]
    fn key(&mut self, input: usize, key: usize) -> Option<i32> {
        let input = self.inputs.get_mut(input)?;
        if let Some(code) = input.codes.get(key).filter(|code| **code > 0) {
            return Some(code - 1);
        }
        let values: &StringArray = input.values.as_string_opt()?;
        if key >= values.len() || values.is_null(key) {
            return None;
        }
        let code = i32::try_from(self.dictionary.index(values.value(key).as_bytes())).ok()?;
        if let Some(known) = input.codes.get_mut(key) {
            *known = code + 1;
        }
        Some(code)
    }

    fn values(&mut self) -> Result<ArrayRef> {
        match &self.values {
            Some(values) if values.len() == self.dictionary.len() => Ok(Arc::clone(values)),
            _ => {
                let no_text = |_| Error::internal("a text in a dictionary is no text");
                let count = u32::try_from(self.dictionary.len()).unwrap_or(u32::MAX);
                let texts = (0..count).map(|index| str::from_utf8(self.dictionary.text(index)).map_err(no_text));
                let texts: Vec<&str> = texts.collect::<Result<_>>()?;
                let values: ArrayRef = Arc::new(StringArray::from(texts));
                Ok(Arc::clone(self.values.insert(values)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(texts: &[Option<&str>]) -> ArrayRef {
        Arc::new(texts.iter().copied().collect::<DictionaryArray<Int32Type>>())
    }

    fn texts(array: &ArrayRef) -> Vec<Option<String>> {
        let plain = arrow::compute::cast(array, &arrow::datatypes::DataType::Utf8).unwrap();
        plain.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn rows_of_several_dictionaries_share_one() {
        let (first, second) = (column(&[Some("a"), None, Some("b")]), column(&[Some("b"), Some("c"), Some("b")]));
        let columns = [Some(&first), None, Some(&second)];
        let rows = [(2, 1), (0, 0), (0, 1), (1, 0), (2, 0), (0, 2), (3, 0)];
        let expected = [Some("c"), Some("a"), None, None, Some("b"), Some("b"), None];
        let mut gathered = MergedTexts::default();
        for _ in 0..2 {
            let array = gathered.gather(&columns, &rows).unwrap();
            assert_eq!(texts(&array), expected.map(|text| text.map(str::to_owned)));
            assert_eq!(array.as_dictionary::<Int32Type>().values().len(), 3);
        }
        // The same texts again: the same array, by which an encoder knows them.
        let (one, two) = (gathered.gather(&columns, &rows).unwrap(), gathered.gather(&columns, &rows[..2]).unwrap());
        let values = |array: &ArrayRef| Arc::clone(array.as_dictionary::<Int32Type>().values());
        assert!(Arc::ptr_eq(&values(&one), &values(&two)));
    }

    #[test]
    fn many_texts_are_forgotten_and_met_again() {
        let long = "x".repeat(100);
        let mut gathered = MergedTexts::default();
        for round in 0..3 {
            let all: Vec<String> = (0..70_000).map(|n| format!("{long}{n}")).collect();
            let array = column(&all.iter().map(|text| Some(text.as_str())).collect::<Vec<_>>());
            let rows: Vec<BatchRow> = (0..all.len()).map(|row| (0, row)).collect();
            let found = texts(&gathered.gather(&[Some(&array)], &rows).unwrap());
            assert!(found.iter().zip(&all).all(|(found, text)| found.as_ref() == Some(text)), "{round}");
            assert_eq!(gathered.dictionary.len(), all.len());
        }
    }
}
