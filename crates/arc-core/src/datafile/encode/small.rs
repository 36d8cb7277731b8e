//! Encodes a whole column of a small data file into one page, uncompressed, into memory that is used again.
//!
//! Where a file has some hundred rows, making encoders, trying what compresses best and keeping indexes of pages costs more
//! than the rows. Texts have a dictionary, floats are as they are, other numbers are differences.

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanBufferBuilder},
    buffer::NullBuffer,
    datatypes::{DataType, Int32Type},
};
use parquet::{
    basic::Encoding,
    errors::{ParquetError, Result},
};

use super::{
    ChunkBounds, Kind, bit_packing::width_of, delta, hybrid::Hybrid, levels::Validity, text_dictionary::TextDictionary,
    texts::run_length, words::WordKind,
};
use crate::datafile::statistics::{lower_text, upper_text};

/// A column under way, and its pages once it is done.
pub(in crate::datafile) struct SmallColumn {
    validity: Validity,
    words: Vec<u64>,
    booleans: BooleanBufferBuilder,
    texts: TextDictionary,
    runs: Vec<(u32, u32)>,
    pending: Vec<u32>,
    /// The dictionary page's values; empty where there is none.
    pub(in crate::datafile) dictionary: Vec<u8>,
    /// Levels and values.
    pub(in crate::datafile) page: Vec<u8>,
    least: Vec<u8>,
    greatest: Vec<u8>,
}

/// What there is to say of a column's pages.
#[derive(Debug)]
pub(in crate::datafile) struct SmallPages {
    /// Of the data page.
    pub(in crate::datafile) encoding: Encoding,
    /// Values of the dictionary, if there is one.
    pub(in crate::datafile) dictionary_values: Option<usize>,
    pub(in crate::datafile) rows: usize,
    pub(in crate::datafile) nulls: usize,
    pub(in crate::datafile) bounds: ChunkBounds,
    /// Whether the format's bounds, if there are any, are values that rows have.
    are_exact: (bool, bool),
    has_written_bounds: bool,
}

/// A bound as the format has it, and whether a row has this very value.
pub(in crate::datafile) type WrittenBound<'a> = (&'a [u8], bool);

impl Default for SmallColumn {
    fn default() -> Self {
        Self {
            validity: Validity::default(),
            words: Vec::new(),
            booleans: BooleanBufferBuilder::new(0),
            texts: TextDictionary::default(),
            runs: Vec::new(),
            pending: Vec::new(),
            dictionary: Vec::new(),
            page: Vec::new(),
            least: Vec::new(),
            greatest: Vec::new(),
        }
    }
}

impl SmallColumn {
    /// Returns whether columns of a type can be encoded here.
    pub(in crate::datafile) fn takes(data_type: &DataType) -> bool {
        Kind::of(data_type).is_some()
    }

    /// Begins another column.
    pub(in crate::datafile) fn clear(&mut self) {
        self.validity = Validity::default();
        self.words.clear();
        self.booleans.truncate(0);
        self.texts.clear();
        for bytes in [&mut self.dictionary, &mut self.page, &mut self.least, &mut self.greatest] {
            bytes.clear();
        }
        self.runs.clear();
    }

    /// Takes the next rows.
    pub(in crate::datafile) fn push(&mut self, array: &ArrayRef) -> Result<()> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        match Kind::of(array.data_type()) {
            Some(Kind::Word(kind)) => {
                let words = kind.words(array)?;
                for_valid(nulls.as_ref(), words.len(), |from, to| {
                    self.words.extend_from_slice(words.get(from..to).unwrap_or_default());
                });
            }
            Some(Kind::Boolean) => {
                let values = array.as_boolean().values();
                for_valid(nulls.as_ref(), values.len(), |from, to| {
                    self.booleans.append_buffer(&values.slice(from, to - from));
                });
            }
            Some(Kind::Text) => self.push_texts(array, nulls.as_ref())?,
            None => return Err(unexpected(array)),
        }
        match nulls {
            None => self.validity.push_valid(array.len()),
            Some(nulls) => self.validity.push(nulls.inner()),
        }
        Ok(())
    }

    fn push_texts(&mut self, array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<()> {
        let Self { texts: dictionary, runs, .. } = self;
        let mut push = |text: &str, count: usize| {
            let (number, count) = (dictionary.index(text.as_bytes()), u32::try_from(count).unwrap_or(u32::MAX));
            match runs.last_mut() {
                Some((last, repeats)) if *last == number => *repeats += count,
                _ => runs.push((number, count)),
            }
        };
        if let Some(texts) = array.as_string_opt::<i32>() {
            for_valid(nulls, texts.len(), |from, to| (from..to).for_each(|row| push(texts.value(row), 1)));
            return Ok(());
        }
        let tags = array.as_dictionary_opt::<Int32Type>().ok_or_else(|| unexpected(array))?;
        let texts = tags.values().as_string_opt::<i32>().ok_or_else(|| unexpected(array))?;
        let keys = tags.keys().values();
        for_valid(nulls, keys.len(), |from, to| {
            let mut keys = keys.get(from..to).unwrap_or_default();
            while let Some(key) = keys.first().and_then(|key| usize::try_from(*key).ok()) {
                let count = run_length(keys);
                push(if key < texts.len() { texts.value(key) } else { "" }, count);
                keys = keys.get(count..).unwrap_or_default();
            }
        });
        Ok(())
    }

    /// Ends the column: its pages are there now.
    pub(in crate::datafile) fn finish(&mut self, data_type: &DataType, is_optional: bool) -> Result<SmallPages> {
        let (rows, nulls) = (self.validity.rows(), self.validity.nulls());
        self.validity.write_if(is_optional, &mut self.page);
        let kind = Kind::of(data_type).ok_or_else(|| ParquetError::General(format!("a column of {data_type}")))?;
        let is_text = matches!(kind, Kind::Text);
        let (encoding, bounds) = match kind {
            Kind::Word(kind) => self.finish_words(kind),
            Kind::Boolean => self.finish_booleans(),
            Kind::Text => self.finish_texts()?,
        };
        let (are_exact, has_written_bounds) = self.write_bounds(data_type, &bounds);
        let dictionary_values = is_text.then(|| self.texts.len());
        Ok(SmallPages { encoding, dictionary_values, rows, nulls, bounds, are_exact, has_written_bounds })
    }

    fn finish_words(&mut self, kind: WordKind) -> (Encoding, ChunkBounds) {
        let bounds = kind.bounds(&self.words).map(|(min, max)| (kind.word(min), kind.word(max)));
        let encoding = if kind == WordKind::Float {
            self.page.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
            Encoding::PLAIN
        } else {
            delta::encode(&self.words, &mut self.page);
            Encoding::DELTA_BINARY_PACKED
        };
        (encoding, ChunkBounds::Words(bounds))
    }

    fn finish_booleans(&mut self) -> (Encoding, ChunkBounds) {
        let (len, bits) = (self.booleans.len(), self.booleans.finish());
        let ones = bits.count_set_bits();
        self.page.extend_from_slice(bits.values());
        (Encoding::PLAIN, ChunkBounds::Booleans((len > 0).then_some((ones == len, ones > 0))))
    }

    fn finish_texts(&mut self) -> Result<(Encoding, ChunkBounds)> {
        let width = width_of(self.texts.len().saturating_sub(1) as u64);
        self.page.extend(width.to_le_bytes().first());
        let mut hybrid = Hybrid::new(width, &mut self.page, &mut self.pending);
        hybrid.push_runs(&self.runs);
        hybrid.finish();
        self.texts.write_page(&mut self.dictionary);
        let all = || (0..u32::try_from(self.texts.len()).unwrap_or(0)).map(|number| self.texts.text(number));
        let utf8 =
            |bytes: &[u8]| str::from_utf8(bytes).map(str::to_owned).map_err(|e| ParquetError::General(e.to_string()));
        let bounds = all().min().zip(all().max()).map(|(min, max)| Ok::<_, ParquetError>((utf8(min)?, utf8(max)?)));
        Ok((Encoding::RLE_DICTIONARY, ChunkBounds::Texts(bounds.transpose()?)))
    }

    /// Keeps the bounds as the format has them; returns whether they are exact, and whether there are any.
    fn write_bounds(&mut self, data_type: &DataType, bounds: &ChunkBounds) -> ((bool, bool), bool) {
        let mut keep = |least: &[u8], greatest: &[u8]| {
            self.least.extend_from_slice(least);
            self.greatest.extend_from_slice(greatest);
        };
        match bounds {
            ChunkBounds::Words(Some((min, max))) => {
                let Some(Kind::Word(kind)) = Kind::of(data_type) else { return ((false, false), false) };
                if kind.is_nan(*min) || kind.is_nan(*max) {
                    return ((false, false), false);
                }
                let (min, max) = kind.written(*min, *max);
                keep(&min.to_le_bytes(), &max.to_le_bytes());
                ((true, true), true)
            }
            ChunkBounds::Booleans(Some((min, max))) => {
                keep(&[u8::from(*min)], &[u8::from(*max)]);
                ((true, true), true)
            }
            ChunkBounds::Texts(Some((min, max))) => {
                let (min, min_is_exact) = lower_text(min);
                let (max, max_is_exact) = upper_text(max).unwrap_or_else(|| (max.clone(), true));
                keep(min.as_bytes(), max.as_bytes());
                ((min_is_exact, max_is_exact), true)
            }
            ChunkBounds::Words(None) | ChunkBounds::Booleans(None) | ChunkBounds::Texts(None) => {
                ((false, false), false)
            }
        }
    }

    /// Returns least and greatest value of the column that `pages` tell of, if bounds are kept of it.
    pub(in crate::datafile) fn bounds(&self, pages: &SmallPages) -> Option<[WrittenBound<'_>; 2]> {
        let (min_is_exact, max_is_exact) = pages.are_exact;
        pages.has_written_bounds.then_some([(&self.least, min_is_exact), (&self.greatest, max_is_exact)])
    }
}

/// Calls `take` for each range of rows that have a value.
fn for_valid(nulls: Option<&NullBuffer>, rows: usize, mut take: impl FnMut(usize, usize)) {
    match nulls {
        None => take(0, rows),
        Some(nulls) => nulls.valid_slices().for_each(|(from, to)| take(from, to)),
    }
}

fn unexpected(array: &ArrayRef) -> ParquetError {
    ParquetError::General(format!("an array of {} came unexpected", array.data_type()))
}
