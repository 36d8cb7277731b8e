//! A column of texts as codes in one dictionary, for rows that are to be gathered in another order.
//!
//! Gathering texts copies their bytes, and the encoder would then look each of them up. Where a
//! chunk has codes already, only its distinct texts are looked up; of other chunks each text is, in
//! the order in which they lie in memory. Either way a few bytes a row are left to gather.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, StringArray, StringBuilder},
    buffer::{NullBuffer, ScalarBuffer},
    datatypes::{DataType, Int32Type, UInt8Type, UInt16Type},
};

use super::{rows::Chunk, sorted::ChunkRow};
use crate::{Result, arrays::TextDictionary};

/// Rows after which a dictionary that holds over a quarter of their texts is given up.
const TRIED_ROWS: usize = 16_384;
const NULL: i32 = -1;

/// The texts of all rows, by chunk.
#[derive(Debug)]
pub(super) struct TextKeys {
    texts: ArrayRef,
    chunks: Vec<ChunkKeys>,
    has_nulls: bool,
}

/// The keys of a chunk's rows, [`NULL`] where there is no text.
#[derive(Debug)]
enum ChunkKeys {
    Nulls,
    Keys(Vec<i32>),
    /// By the codes that the chunk's own array has.
    Bytes(ScalarBuffer<u8>, CodeKeys),
    Words(ScalarBuffer<u16>, CodeKeys),
}

#[derive(Debug)]
struct CodeKeys {
    keys: Vec<i32>,
    nulls: Option<NullBuffer>,
}

impl TextKeys {
    /// Returns `None` if the column is none of texts, or if its texts hardly repeat.
    pub(super) fn new(chunks: &[&Arc<Chunk>], index: usize, data_type: &DataType) -> Option<Self> {
        if *data_type != DataType::Utf8 {
            return None;
        }
        let mut dictionary = TextDictionary::default();
        let (mut all, mut has_nulls, mut rows) = (Vec::with_capacity(chunks.len()), false, 0);
        for chunk in chunks {
            let Some(column) = chunk.column(index) else {
                all.push(ChunkKeys::Nulls);
                has_nulls = true;
                continue;
            };
            all.push(match column.as_string_opt() {
                Some(texts) => ChunkKeys::Keys(look_up(texts, &mut dictionary, rows)?),
                None => ChunkKeys::encoded(column, &mut dictionary)?,
            });
            rows += chunk.len();
            if hardly_repeat(&dictionary, rows) {
                return None;
            }
            has_nulls |= column.null_count() > 0;
        }
        let mut texts = StringBuilder::new();
        for text in dictionary.texts() {
            texts.append_value(str::from_utf8(text).ok()?);
        }
        Some(Self { texts: Arc::new(texts.finish()), chunks: all, has_nulls })
    }

    pub(super) fn gather(&self, rows: &[ChunkRow]) -> Result<ArrayRef> {
        let key = |&(chunk, row): &ChunkRow| self.chunks.get(chunk as usize)?.key(row as usize);
        self.array(rows.iter().map(|row| key(row).unwrap_or(NULL)))
    }

    /// Returns rows of a chunk that follow each other there.
    pub(super) fn slice(&self, chunk: usize, rows: Range<usize>) -> Result<ArrayRef> {
        let keys = self.chunks.get(chunk);
        self.array(rows.map(|row| keys.and_then(|keys| keys.key(row)).unwrap_or(NULL)))
    }

    fn array(&self, keys: impl Iterator<Item = i32>) -> Result<ArrayRef> {
        let keys: Int32Array = if self.has_nulls {
            keys.map(|key| (key != NULL).then_some(key)).collect()
        } else {
            Int32Array::from_iter_values(keys)
        };
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(&self.texts))?))
    }
}

impl ChunkKeys {
    /// Returns the keys of encoded texts, of which only the distinct ones are looked up.
    fn encoded(column: &ArrayRef, dictionary: &mut TextDictionary) -> Option<Self> {
        let mut keys = |texts: &ArrayRef| {
            let texts = texts.as_string_opt::<i32>()?;
            let keys = (0..texts.len()).map(|code| dictionary.index(texts.value(code).as_bytes()).cast_signed());
            Some(CodeKeys {
                keys: keys.collect(),
                nulls: column.nulls().filter(|nulls| nulls.null_count() > 0).cloned(),
            })
        };
        if let Some(bytes) = column.as_dictionary_opt::<UInt8Type>() {
            return Some(Self::Bytes(bytes.keys().values().clone(), keys(bytes.values())?));
        }
        let words = column.as_dictionary_opt::<UInt16Type>()?;
        Some(Self::Words(words.keys().values().clone(), keys(words.values())?))
    }

    #[inline(always)]
    fn key(&self, row: usize) -> Option<i32> {
        match self {
            Self::Nulls => None,
            Self::Keys(keys) => keys.get(row).copied(),
            Self::Bytes(codes, encoded) => encoded.key(row, usize::from(*codes.get(row)?)),
            Self::Words(codes, encoded) => encoded.key(row, usize::from(*codes.get(row)?)),
        }
    }
}

impl CodeKeys {
    #[inline(always)]
    fn key(&self, row: usize, code: usize) -> Option<i32> {
        match &self.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => self.keys.get(code).copied(),
        }
    }
}

/// Returns the key of each text, or `None` as soon as these hardly repeat; there are `before` rows
/// of other chunks.
fn look_up(texts: &StringArray, dictionary: &mut TextDictionary, before: usize) -> Option<Vec<i32>> {
    let mut keys = Vec::with_capacity(texts.len());
    for start in (0..texts.len()).step_by(TRIED_ROWS) {
        let part = texts.slice(start, TRIED_ROWS.min(texts.len() - start));
        keys.extend(part.iter().map(|text| text.map_or(NULL, |text| dictionary.index(text.as_bytes()).cast_signed())));
        if hardly_repeat(dictionary, before + keys.len()) {
            return None;
        }
    }
    Some(keys)
}

fn hardly_repeat(dictionary: &TextDictionary, rows: usize) -> bool {
    rows >= TRIED_ROWS && dictionary.len() > rows / 4
}
