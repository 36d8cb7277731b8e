//! Encodes columns of eight-byte values: times, integers, floats.

use arrow::{
    array::{Array, AsArray},
    buffer::ScalarBuffer,
    datatypes::{ArrowPrimitiveType, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type},
};
use parquet::{
    basic::{Compression, Encoding},
    errors::{ParquetError, Result},
    file::statistics::Statistics,
    schema::types::ColumnDescPtr,
};

use super::{
    ChunkBounds, ColumnEncoder, ColumnLimits, Scratch,
    bounds::PageBounds,
    byte_streams,
    chunk::{ChunkEnd, ChunkPages, DataPage, DictionaryPage, EncodedChunk},
    delta,
    hybrid::Hybrid,
    is_futile,
    levels::Validity,
    word_dictionary::WordDictionary,
};
use crate::arrays::width_of;

/// Bytes of a dictionary from which on no values are added, if it may have as many.
const MAX_DICTIONARY_BYTES: usize = 1 << 20;

/// How values without a dictionary are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordEncoding {
    Delta,
    ByteStreams,
}

/// What the eight bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    Signed,
    Unsigned,
    Float,
}

/// Encodes one column of one row group.
pub(super) struct WordEncoder {
    kind: WordKind,
    encoding: WordEncoding,
    is_optional: bool,
    limits: ColumnLimits,
    /// Values of the page under way, without nulls.
    values: Vec<u64>,
    validity: Validity,
    /// While values go there.
    dictionary: Option<WordDictionary>,
    /// What is in the dictionary once it is full.
    closed_dictionary: Option<Vec<u64>>,
    /// By `WordKind::key`.
    bounds: PageBounds<u64>,
    chunk: ChunkPages,
}

impl WordEncoder {
    pub(super) fn new(
        kind: WordKind,
        (encoding, dictionary): (WordEncoding, bool),
        limits: ColumnLimits,
        column: &ColumnDescPtr,
        compression: Compression,
    ) -> Self {
        Self {
            kind,
            encoding,
            is_optional: column.max_def_level() > 0,
            limits,
            values: Vec::new(),
            validity: Validity::default(),
            dictionary: dictionary.then(WordDictionary::default),
            closed_dictionary: None,
            bounds: PageBounds::default(),
            chunk: ChunkPages::new(column.clone(), compression),
        }
    }
}

impl ColumnEncoder for WordEncoder {
    fn push(&mut self, array: &dyn Array, scratch: &mut Scratch) -> Result<()> {
        let words = self.kind.words(array)?;
        let mut start = 0;
        while start < words.len() {
            let end = words.len().min(start + self.limits.page_rows - self.validity.rows());
            let rows = words.get(start..end).unwrap_or_default();
            match array.nulls().filter(|nulls| nulls.null_count() > 0) {
                None if rows.len() == self.limits.page_rows => {
                    self.validity.push_valid(rows.len());
                    self.end_page(rows, scratch)?;
                }
                None => {
                    self.values.extend_from_slice(rows);
                    self.validity.push_valid(rows.len());
                }
                Some(nulls) => {
                    let nulls = nulls.slice(start, end - start);
                    for (from, to) in nulls.valid_slices() {
                        self.values.extend_from_slice(rows.get(from..to).unwrap_or_default());
                    }
                    self.validity.push(nulls.inner());
                }
            }
            if self.validity.rows() == self.limits.page_rows {
                self.end_gathered_page(scratch)?;
            }
            start = end;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.chunk.bytes() + self.pending_bytes()
    }

    fn pending_bytes(&self) -> usize {
        let dictionary = self.dictionary.as_ref().map_or(&[][..], WordDictionary::values);
        let entries = dictionary.len() + self.closed_dictionary.as_ref().map_or(0, Vec::len);
        let width = if dictionary.is_empty() { u64::BITS } else { width_of(dictionary.len() as u64) };
        entries * size_of::<u64>() + self.values.len() * width as usize / 8
    }

    fn finish(mut self: Box<Self>, scratch: &mut Scratch) -> Result<(EncodedChunk, ChunkBounds)> {
        self.end_gathered_page(scratch)?;
        // Pages of nulls alone want one as well, if an empty one.
        let dictionary = self.dictionary.as_ref().map(WordDictionary::values).or(self.closed_dictionary.as_deref());
        scratch.page.clear();
        scratch.page.extend(dictionary.into_iter().flatten().flat_map(|word| word.to_le_bytes()));
        let dictionary = dictionary.map(|dictionary| DictionaryPage { body: &scratch.page, values: dictionary.len() });
        let bounds = self.bounds.all().map(|(min, max)| (self.kind.word(*min), self.kind.word(*max)));
        let keeps_bounds = !bounds.is_some_and(|(min, max)| self.kind.is_nan(min) || self.kind.is_nan(max));
        let ending = ChunkEnd {
            dictionary,
            statistics: self.kind.statistics(bounds.filter(|_| keeps_bounds), self.chunk.nulls() as u64),
            order: self.bounds.order(),
            page_bounds: keeps_bounds,
        };
        let chunk = self.chunk.finish(ending, &mut scratch.compressor)?;
        if let Some(mut used) = self.dictionary.filter(|used| used.capacity() > scratch.words.capacity()) {
            used.clear();
            scratch.words = used;
        }
        Ok((chunk, ChunkBounds::Words(bounds)))
    }
}

impl WordEncoder {
    fn end_gathered_page(&mut self, scratch: &mut Scratch) -> Result<()> {
        if self.validity.rows() == 0 {
            return Ok(());
        }
        let mut values = std::mem::take(&mut self.values);
        let result = self.end_page(&values, scratch);
        values.clear();
        self.values = values;
        result
    }

    fn end_page(&mut self, values: &[u64], scratch: &mut Scratch) -> Result<()> {
        let (rows, nulls) = (self.validity.rows(), self.validity.nulls());
        let bounds = self.kind.bounds(values);
        let page_bounds = bounds.map(|(min, max)| {
            self.bounds.push(min, max);
            self.kind.written_bounds(self.kind.word(min), self.kind.word(max))
        });
        let body = &mut scratch.page;
        body.clear();
        self.validity.write_if(self.is_optional, body);
        let encoding = if let Some(dictionary) = &mut self.dictionary {
            if dictionary.values().is_empty() {
                std::mem::swap(dictionary, &mut scratch.words);
            }
            dictionary.indices(values, &mut scratch.indices);
            let width = width_of(dictionary.values().len().saturating_sub(1) as u64);
            body.extend(width.to_le_bytes().first());
            let mut hybrid = Hybrid::new(width, body, &mut scratch.pending);
            hybrid.push_all(&scratch.indices);
            hybrid.finish();
            Encoding::RLE_DICTIONARY
        } else {
            match self.encoding {
                WordEncoding::Delta => {
                    delta::encode(values, body);
                    Encoding::DELTA_BINARY_PACKED
                }
                WordEncoding::ByteStreams => {
                    byte_streams::encode(values, body);
                    Encoding::BYTE_STREAM_SPLIT
                }
            }
        };
        self.chunk.push(DataPage { body, rows, nulls, encoding, bounds: page_bounds }, &mut scratch.compressor)?;
        self.close_full_dictionary();
        Ok(())
    }

    fn close_full_dictionary(&mut self) {
        let is_full = |dictionary: &WordDictionary| {
            let (entries, values) = (dictionary.values().len(), self.chunk.values());
            entries * size_of::<u64>() >= MAX_DICTIONARY_BYTES.min(self.limits.dictionary_bytes)
                || is_futile(entries, values)
        };
        if let Some(full) = self.dictionary.take_if(|dictionary| is_full(dictionary)) {
            self.closed_dictionary = Some(full.into_values());
        }
    }
}

/// Returns the values' bytes, which are not copied.
fn words<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<ScalarBuffer<u64>> {
    let array = array.as_primitive_opt::<T>()?;
    Some(ScalarBuffer::new(array.values().inner().clone(), 0, array.len()))
}

impl WordKind {
    /// Returns the bits of an array's values, also of those that are null.
    pub(super) fn words(self, array: &dyn Array) -> Result<ScalarBuffer<u64>> {
        let words = match self {
            Self::Unsigned => words::<UInt64Type>(array),
            Self::Float => words::<Float64Type>(array),
            Self::Signed => words::<Int64Type>(array).or_else(|| words::<TimestampNanosecondType>(array)),
        };
        words.ok_or_else(|| ParquetError::General(format!("an array of {} came unexpected", array.data_type())))
    }

    /// Makes numbers that are ordered as the values are: floats totally, with -0.0 below 0.0 and
    /// NaN at the ends.
    #[inline(always)]
    fn key(self, word: u64) -> u64 {
        match self {
            Self::Unsigned => word,
            Self::Signed => word ^ SIGN,
            Self::Float if word & SIGN == 0 => word | SIGN,
            Self::Float => !word,
        }
    }

    /// Undoes `key`.
    pub(super) fn word(self, key: u64) -> u64 {
        match self {
            Self::Unsigned => key,
            Self::Signed => key ^ SIGN,
            Self::Float if key & SIGN == 0 => !key,
            Self::Float => key & !SIGN,
        }
    }

    /// Returns the keys of the least and the greatest value.
    pub(super) fn bounds(self, words: &[u64]) -> Option<(u64, u64)> {
        // One loop for each kind.
        match self {
            Self::Unsigned => bounds(words, |word| Self::Unsigned.key(word)),
            Self::Signed => bounds(words, |word| Self::Signed.key(word)),
            Self::Float => finite_bounds(words).or_else(|| bounds(words, |word| Self::Float.key(word))),
        }
    }

    pub(super) fn is_nan(self, word: u64) -> bool {
        self == Self::Float && f64::from_bits(word).is_nan()
    }

    /// Returns bounds as they are written: the format wants a zero to be negative as a minimum,
    /// positive as a maximum.
    pub(super) fn written(self, min: u64, max: u64) -> (u64, u64) {
        let is_zero = |word: u64| self == Self::Float && word & !SIGN == 0;
        (if is_zero(min) { SIGN } else { min }, if is_zero(max) { 0 } else { max })
    }

    fn written_bounds(self, min: u64, max: u64) -> (Vec<u8>, Vec<u8>) {
        let (min, max) = self.written(min, max);
        (min.to_le_bytes().to_vec(), max.to_le_bytes().to_vec())
    }

    fn statistics(self, bounds: Option<(u64, u64)>, nulls: u64) -> Statistics {
        let (min, max) = bounds.map(|(min, max)| self.written(min, max)).unzip();
        match self {
            Self::Float => {
                Statistics::double(min.map(f64::from_bits), max.map(f64::from_bits), None, Some(nulls), false)
            }
            Self::Signed | Self::Unsigned => {
                let deprecated = self == Self::Signed;
                let (min, max) = (min.map(u64::cast_signed), max.map(u64::cast_signed));
                let statistics = parquet::file::statistics::ValueStatistics::new(min, max, None, Some(nulls), false);
                Statistics::Int64(statistics.with_backwards_compatible_min_max(deprecated))
            }
        }
    }
}

const SIGN: u64 = 1 << 63;

/// Returns the keys of the least and the greatest float, compared as floats are, several at a time.
/// `None` where that is not how they are ordered in a file: among NaNs, and where a bound is a
/// zero, of which there are two.
fn finite_bounds(words: &[u64]) -> Option<(u64, u64)> {
    const LANES: usize = 8;
    let (lots, rest) = words.as_chunks::<LANES>();
    let (mut least, mut greatest, mut odd) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES], [0.0; LANES]);
    for lot in lots {
        for (((least, greatest), odd), word) in least.iter_mut().zip(&mut greatest).zip(&mut odd).zip(lot) {
            let value = f64::from_bits(*word);
            *least = if value < *least { value } else { *least };
            *greatest = if value > *greatest { value } else { *greatest };
            // Of a finite value nothing is left, of others a NaN.
            *odd += value * 0.0;
        }
    }
    let rest = rest.iter().map(|word| f64::from_bits(*word));
    let (least, greatest) = (least.into_iter().chain(rest.clone()), greatest.into_iter().chain(rest.clone()));
    let (least, greatest) = (least.fold(f64::INFINITY, f64::min), greatest.fold(f64::NEG_INFINITY, f64::max));
    let is_plain = odd.into_iter().chain(rest).all(f64::is_finite) && least <= greatest;
    (is_plain && least != 0.0 && greatest != 0.0)
        .then(|| (WordKind::Float.key(least.to_bits()), WordKind::Float.key(greatest.to_bits())))
}

#[inline(always)]
fn bounds(words: &[u64], key: impl Fn(u64) -> u64) -> Option<(u64, u64)> {
    let first = key(*words.first()?);
    Some(words.iter().fold((first, first), |(min, max), word| {
        let key = key(*word);
        (min.min(key), max.max(key))
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quick_bounds_of_floats_are_the_bounds_or_none(
            values in prop::collection::vec(
                prop_oneof![
                    20 => -1e3..1e3_f64,
                    1 => prop::sample::select(vec![
                        0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX, 5e-324,
                    ]),
                ],
                0..60,
            ),
        ) {
            let words: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            let expected = bounds(&words, |word| WordKind::Float.key(word));
            let quick = finite_bounds(&words);
            prop_assert!(quick.is_none() || quick == expected, "{quick:?} {expected:?}");
            prop_assert!(quick.is_none() || values.iter().all(|value| value.is_finite()));
            let is_plain = |value: &f64| value.is_finite() && *value != 0.0;
            prop_assert!(quick.is_some() || values.is_empty() || !values.iter().all(is_plain));
        }
    }
}
