//! A column of texts as places in a dictionary, for rows that are to be gathered in another order.
//!
//! Gathering texts copies their bytes, and the encoder would then look each of them up. Looking them up first, in the order
//! in which they lie in memory, leaves four bytes a row to gather.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray, StringBuilder},
    datatypes::{DataType, Int32Type},
};

use super::{rows::Chunk, sorted::Position};
use crate::{Result, datafile::TextDictionary};

/// Rows after which a dictionary that holds over a quarter of their texts is given up.
const TRIED_ROWS: usize = 16_384;
const NULL: i32 = -1;

/// The texts of all rows, by chunk.
#[derive(Debug)]
pub(super) struct TextKeys {
    texts: ArrayRef,
    keys: Vec<Vec<i32>>,
    has_nulls: bool,
}

impl TextKeys {
    /// Returns `None` if the column is none of texts, or if its texts hardly repeat.
    pub(super) fn new(chunks: &[&Arc<Chunk>], index: usize, data_type: &DataType) -> Option<Self> {
        if *data_type != DataType::Utf8 {
            return None;
        }
        let mut dictionary = TextDictionary::default();
        let (mut keys, mut has_nulls, mut rows) = (Vec::with_capacity(chunks.len()), false, 0);
        for chunk in chunks {
            let mut of_chunk = Vec::with_capacity(chunk.len());
            let column = chunk.column(index).map(|column| column.as_string::<i32>());
            for part in column.into_iter().flat_map(|column| parts(column, TRIED_ROWS)) {
                for text in &part {
                    of_chunk.push(text.map_or(NULL, |text| dictionary.index(text.as_bytes()).cast_signed()));
                }
                rows += part.len();
                if rows >= TRIED_ROWS && dictionary.len() > rows / 4 {
                    return None;
                }
            }
            of_chunk.resize(chunk.len(), NULL);
            has_nulls |= column.is_none_or(|column| column.null_count() > 0);
            keys.push(of_chunk);
        }
        let mut texts = StringBuilder::new();
        for text in (0..u32::try_from(dictionary.len()).ok()?).map(|index| dictionary.text(index)) {
            texts.append_value(str::from_utf8(text).ok()?);
        }
        Some(Self { texts: Arc::new(texts.finish()), keys, has_nulls })
    }

    pub(super) fn gather(&self, rows: &[Position]) -> Result<ArrayRef> {
        let key = |&(chunk, row): &Position| self.keys.get(chunk as usize)?.get(row as usize).copied();
        let keys = rows.iter().map(|row| key(row).unwrap_or(NULL));
        let keys: Int32Array = if self.has_nulls {
            keys.map(|key| (key != NULL).then_some(key)).collect()
        } else {
            Int32Array::from_iter_values(keys)
        };
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(&self.texts))?))
    }
}

fn parts(texts: &StringArray, rows: usize) -> impl Iterator<Item = StringArray> {
    (0..texts.len()).step_by(rows).map(move |start| texts.slice(start, rows.min(texts.len() - start)))
}
