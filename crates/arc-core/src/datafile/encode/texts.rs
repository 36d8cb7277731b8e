//! Encodes columns of texts: tags, which come as numbers in a dictionary, and fields, which come as
//! they are.
//!
//! Rows are taken as runs of equal texts. Those of a tag are found by comparing the numbers that
//! come; where rows are sorted by tags, a tag costs next to nothing a row.

use arrow::{
    array::{Array, ArrayRef, AsArray, DictionaryArray, StringArray},
    buffer::NullBuffer,
    datatypes::Int32Type,
};
use parquet::{
    basic::{Compression, Encoding},
    data_type::ByteArray,
    errors::{ParquetError, Result},
    file::statistics::{Statistics, ValueStatistics},
    schema::types::ColumnDescPtr,
};

use super::{
    ChunkBounds, ColumnEncoder, ColumnLimits, Scratch,
    bounds::PageBounds,
    chunk::{ChunkEnd, ChunkPages, DataPage, DictionaryPage, EncodedChunk},
    delta,
    hybrid::Hybrid,
    is_futile,
    levels::Validity,
};
use crate::{
    arrays::{TextDictionary, width_of},
    datafile::statistics::{lower_text, upper_text},
};

/// Bytes from which on a dictionary has to be worth its size, and bytes that none exceeds for long,
/// if it may have as many.
const LARGE_DICTIONARY_BYTES: usize = 1 << 20;
const MAX_DICTIONARY_BYTES: usize = 16 << 20;
/// Bytes of texts after which a page ends, whatever its rows.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// Encodes one column of one row group.
pub(super) struct TextEncoder {
    is_optional: bool,
    limits: ColumnLimits,
    validity: Validity,
    /// Rows of the page under way, if there is a dictionary: numbers and how often they repeat.
    runs: Vec<(u32, u32)>,
    /// The same without a dictionary: lengths and bytes.
    lengths: Vec<u64>,
    bytes: Vec<u8>,
    dictionary: TextDictionary,
    dictionary_is_open: bool,
    /// What the numbers that come stand for.
    known: Option<ArrayRef>,
    /// Their numbers here plus one; 0 where one is not known yet.
    numbers: Vec<u32>,
    /// By number, the last page that had the text.
    seen: Vec<u32>,
    page: u32,
    bounds: PageBounds<Vec<u8>>,
    chunk: ChunkPages,
}

impl TextEncoder {
    pub(super) fn new(limits: ColumnLimits, column: &ColumnDescPtr, compression: Compression) -> Self {
        Self {
            is_optional: column.max_def_level() > 0,
            limits,
            validity: Validity::default(),
            runs: Vec::new(),
            lengths: Vec::new(),
            bytes: Vec::new(),
            dictionary: TextDictionary::default(),
            dictionary_is_open: true,
            known: None,
            numbers: Vec::new(),
            seen: Vec::new(),
            page: 0,
            bounds: PageBounds::default(),
            chunk: ChunkPages::new(column.clone(), compression),
        }
    }
}

impl ColumnEncoder for TextEncoder {
    fn push(&mut self, array: &dyn Array, scratch: &mut Scratch) -> Result<()> {
        if let Some(texts) = array.as_string_opt::<i32>() {
            return self.push_texts(texts, scratch);
        }
        match array.as_dictionary_opt::<Int32Type>() {
            Some(tags) => self.push_tags(tags, scratch),
            None => Err(ParquetError::General(format!("an array of {} came unexpected", array.data_type()))),
        }
    }

    fn bytes(&self) -> usize {
        self.chunk.bytes() + self.pending_bytes()
    }

    fn pending_bytes(&self) -> usize {
        let open_page = if self.dictionary_is_open {
            self.runs.len() * width_of(self.dictionary.len() as u64) as usize / 8
        } else {
            self.bytes.len() + self.lengths.len()
        };
        self.dictionary.page_bytes() + open_page
    }

    fn finish(mut self: Box<Self>, scratch: &mut Scratch) -> Result<(EncodedChunk, ChunkBounds)> {
        self.end_page(scratch)?;
        scratch.page.clear();
        self.dictionary.write_page(&mut scratch.page);
        let values = self.dictionary.len();
        let dictionary = Some(DictionaryPage { body: &scratch.page, values });
        let nulls = Some(self.chunk.nulls() as u64);
        let utf8 = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).map_err(|e| ParquetError::General(e.to_string()));
        let bounds = self.bounds.all().map(|(min, max)| Ok::<_, ParquetError>((utf8(min)?, utf8(max)?))).transpose()?;
        let (min, max) = bounds.as_ref().map(|(min, max)| (lower_text(min), upper(max))).unzip();
        let (min_is_exact, max_is_exact) = (min.is_some_and(|m| m.1), max.as_ref().is_some_and(|m| m.1));
        let bytes = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        let (min, max) = (min.map(|m| bytes(m.0)), max.map(|m| bytes(&m.0)));
        let statistics = ValueStatistics::new(min, max, None, nulls, false)
            .with_min_is_exact(min_is_exact)
            .with_max_is_exact(max_is_exact);
        let statistics = Statistics::ByteArray(statistics);
        let ending = ChunkEnd { dictionary, statistics, order: self.bounds.order(), page_bounds: true };
        Ok((self.chunk.finish(ending, &mut scratch.compressor)?, ChunkBounds::Texts(bounds)))
    }
}

impl TextEncoder {
    fn push_texts(&mut self, array: &StringArray, scratch: &mut Scratch) -> Result<()> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let (offsets, bytes) = (array.value_offsets(), array.value_data());
        let mut start = 0;
        while start < array.len() {
            let end = array.len().min(start + self.limits.page_rows - self.validity.rows());
            let offsets = offsets.get(start..=end).unwrap_or_default();
            let taken =
                self.push_until_full(offsets, bytes, nulls.map(|nulls| nulls.slice(start, end - start)).as_ref());
            if self.page_is_full() {
                self.end_page(scratch)?;
            }
            start += taken;
        }
        Ok(())
    }

    /// Takes texts as long as there is space in the page, at least one; returns how many.
    fn push_until_full(&mut self, offsets: &[i32], bytes: &[u8], nulls: Option<&NullBuffer>) -> usize {
        let number = |offset: i32| usize::try_from(offset).unwrap_or(0);
        let mut taken = 0;
        for (row, text) in offsets.array_windows().enumerate() {
            let [start, end] = text.map(number);
            if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                self.push_text(bytes.get(start..end).unwrap_or_default());
            }
            taken += 1;
            if self.is_large() {
                break;
            }
        }
        match nulls {
            None => self.validity.push_valid(taken),
            Some(nulls) => self.validity.push(nulls.slice(0, taken).inner()),
        }
        taken
    }

    #[inline(always)]
    fn push_text(&mut self, text: &[u8]) {
        if self.dictionary_is_open {
            let index = self.dictionary.index(text);
            self.push_run(index, 1);
        } else {
            self.push_plain_texts(text, 1);
        }
    }

    fn push_tags(&mut self, array: &DictionaryArray<Int32Type>, scratch: &mut Scratch) -> Result<()> {
        let values = array.values();
        let texts = values.as_string_opt::<i32>();
        let texts = texts.ok_or_else(|| ParquetError::General("a tag that is no text".into()))?;
        // Batches of one buffer share their dictionary.
        if !self.known.as_ref().is_some_and(|known| std::sync::Arc::ptr_eq(known, values)) {
            self.numbers.clear();
            self.numbers.resize(texts.len(), 0);
            self.known = Some(std::sync::Arc::clone(values));
        }
        let keys = array.keys().values();
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let mut start = 0;
        while start < keys.len() {
            let end = keys.len().min(start + self.limits.page_rows - self.validity.rows());
            match nulls.as_ref().map(|nulls| nulls.slice(start, end - start)) {
                None => {
                    self.push_keys(keys.get(start..end).unwrap_or_default(), texts);
                    self.validity.push_valid(end - start);
                }
                Some(nulls) => self.push_valid_keys(keys.get(start..end).unwrap_or_default(), texts, &nulls),
            }
            if self.page_is_full() {
                self.end_page(scratch)?;
            }
            start = end;
        }
        Ok(())
    }

    fn push_valid_keys(&mut self, keys: &[i32], texts: &StringArray, nulls: &NullBuffer) {
        for (from, to) in nulls.valid_slices() {
            self.push_keys(keys.get(from..to).unwrap_or_default(), texts);
        }
        self.validity.push(nulls.inner());
    }

    fn push_keys(&mut self, mut keys: &[i32], texts: &StringArray) {
        while let Some(key) = keys.first() {
            let count = run_length(keys);
            let key = usize::try_from(*key).unwrap_or(usize::MAX);
            if self.dictionary_is_open {
                let number = self.number(key, texts);
                self.push_run(number, u32::try_from(count).unwrap_or(u32::MAX));
            } else if key < texts.len() {
                self.push_plain_texts(texts.value(key).as_bytes(), count);
            }
            keys = keys.get(count..).unwrap_or_default();
        }
    }

    fn number(&mut self, key: usize, texts: &StringArray) -> u32 {
        match self.numbers.get_mut(key) {
            Some(0) => {
                let index = self.dictionary.index(texts.value(key).as_bytes());
                if let Some(number) = self.numbers.get_mut(key) {
                    *number = index + 1;
                }
                index
            }
            Some(number) => *number - 1,
            None => 0,
        }
    }

    #[inline(always)]
    fn push_run(&mut self, index: u32, count: u32) {
        match self.runs.last_mut() {
            Some((last, repeats)) if *last == index => *repeats += count,
            _ => self.runs.push((index, count)),
        }
    }

    fn push_plain_texts(&mut self, text: &[u8], count: usize) {
        for _ in 0..count {
            self.lengths.push(text.len() as u64);
            self.bytes.extend_from_slice(text);
        }
    }

    fn page_is_full(&self) -> bool {
        self.validity.rows() >= self.limits.page_rows || self.is_large()
    }

    /// Returns whether the page has to end, however few its rows are.
    fn is_large(&self) -> bool {
        let most_bytes = self.limits.dictionary_bytes;
        self.bytes.len() >= MAX_PAGE_BYTES.min(most_bytes)
            || (self.dictionary_is_open && self.dictionary.page_bytes() >= MAX_DICTIONARY_BYTES.min(most_bytes))
    }

    fn end_page(&mut self, scratch: &mut Scratch) -> Result<()> {
        let (rows, nulls) = (self.validity.rows(), self.validity.nulls());
        if rows == 0 {
            return Ok(());
        }
        let bounds = self.page_bounds();
        let body = &mut scratch.page;
        body.clear();
        self.validity.write_if(self.is_optional, body);
        let encoding = if self.dictionary_is_open {
            let width = width_of(self.dictionary.len().saturating_sub(1) as u64);
            body.extend(width.to_le_bytes().first());
            let mut hybrid = Hybrid::new(width, body, &mut scratch.pending);
            hybrid.push_runs(&self.runs);
            self.runs.clear();
            hybrid.finish();
            Encoding::RLE_DICTIONARY
        } else {
            delta::encode(&self.lengths, body);
            body.extend_from_slice(&self.bytes);
            self.lengths.clear();
            self.bytes.clear();
            Encoding::DELTA_LENGTH_BYTE_ARRAY
        };
        self.chunk.push(DataPage { body, rows, nulls, encoding, bounds }, &mut scratch.compressor)?;
        self.dictionary_is_open &= !self.dictionary_is_full();
        Ok(())
    }

    fn dictionary_is_full(&self) -> bool {
        let (bytes, entries, values) = (self.dictionary.page_bytes(), self.dictionary.len(), self.chunk.values());
        bytes >= MAX_DICTIONARY_BYTES.min(self.limits.dictionary_bytes)
            || (bytes >= LARGE_DICTIONARY_BYTES && entries > values / 4)
            || is_futile(entries, values)
    }

    /// Returns the bounds of the page under way as they are written.
    fn page_bounds(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (min, max) = if self.dictionary_is_open { self.bounds_of_runs()? } else { self.bounds_of_pending()? };
        let (least, greatest) = (str::from_utf8(&min).unwrap_or_default(), str::from_utf8(&max).unwrap_or_default());
        let written = (lower_text(least).0.as_bytes().to_vec(), upper(greatest).0.into_bytes());
        self.bounds.push(min, max);
        Some(written)
    }

    fn bounds_of_runs(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.page += 1;
        self.seen.resize(self.dictionary.len(), 0);
        let mut bounds: Option<(&[u8], &[u8])> = None;
        for (index, _) in &self.runs {
            let Some(seen) = self.seen.get_mut(*index as usize).filter(|seen| **seen != self.page) else { continue };
            *seen = self.page;
            let text = self.dictionary.text(*index);
            bounds = Some(bounds.map_or((text, text), |(min, max)| (min.min(text), max.max(text))));
        }
        bounds.map(|(min, max)| (min.to_vec(), max.to_vec()))
    }

    fn bounds_of_pending(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut bounds: Option<(&[u8], &[u8])> = None;
        let mut rest = self.bytes.as_slice();
        for length in &self.lengths {
            let (text, others) = rest.split_at_checked(usize::try_from(*length).unwrap_or(usize::MAX))?;
            bounds = Some(bounds.map_or((text, text), |(min, max)| (min.min(text), max.max(text))));
            rest = others;
        }
        bounds.map(|(min, max)| (min.to_vec(), max.to_vec()))
    }
}

/// Returns how many of the first keys are equal.
pub(super) fn run_length(keys: &[i32]) -> usize {
    const AT_ONCE: usize = 32;
    let Some(first) = keys.first() else { return 0 };
    if keys.get(1) != Some(first) {
        return 1;
    }
    let (many, _) = keys.as_chunks::<AT_ONCE>();
    // Compiled to a few vector instructions.
    let equal = many.iter().take_while(|keys| keys.iter().fold(0, |other, key| other | (key ^ first)) == 0).count();
    let start = equal * AT_ONCE;
    let rest = keys.get(start..).unwrap_or_default();
    start + rest.iter().take_while(|key| *key == first).count()
}

/// Returns an upper bound and whether it is the text itself: the text, whatever its length, where
/// there is no shorter one.
fn upper(text: &str) -> (String, bool) {
    upper_text(text).unwrap_or_else(|| (text.to_owned(), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_where_the_first_key_differs() {
        for length in [1, 2, 31, 32, 33, 64, 100] {
            let mut keys = vec![7; length];
            assert_eq!(run_length(&keys), length);
            keys.extend([8, 7]);
            assert_eq!(run_length(&keys), length);
        }
        assert_eq!(run_length(&[]), 0);
    }
}
