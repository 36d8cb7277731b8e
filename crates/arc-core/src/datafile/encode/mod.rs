//! Encodes columns into Parquet's pages: values in, finished column chunks out.
//!
//! The Parquet library's writer takes any type, and 22 ns a value. Most columns are of a few types
//! that are known well here: times and numbers of eight bytes, booleans, texts, and tags, which are
//! sorted and come as indices in a dictionary. These are encoded by loops made for them; all others
//! go through the library ([`EncodingPlan::encoder`] says `None`). What surrounds pages (their
//! headers, statistics, indexes, footer) stays the library's, which takes a chunk as if it had been
//! copied from another file.
//!
//! Never sorts, never looks at names, never writes a file. Called by `row_groups`.

use arrow::{
    array::Array,
    datatypes::{DataType, TimeUnit},
};
use parquet::{basic::Compression, errors::Result, schema::types::ColumnDescPtr};

mod bit_packing;
mod booleans;
mod bounds;
mod byte_streams;
mod chunk;
mod compression;
mod delta;
mod hybrid;
mod levels;
#[cfg(test)]
mod tests;
mod texts;
mod word_dictionary;
mod words;

use booleans::BooleanEncoder;
use compression::PageCompressor;
use texts::TextEncoder;
use word_dictionary::WordDictionary;
use words::{WordEncoder, WordKind};

use chunk::{ChunkBytes, EncodedChunk};
pub(super) use words::WordEncoding;

/// Buffers that all columns of a file share, one after the other, and files that one thread writes.
pub(in crate::datafile) struct Scratch {
    compression_level: i32,
    compressor: PageCompressor,
    page: Vec<u8>,
    indices: Vec<u32>,
    pending: Vec<u32>,
    /// Empty: the memory of the last column's.
    words: WordDictionary,
}

impl Scratch {
    pub(super) fn new(compression_level: i32) -> std::io::Result<Self> {
        let compressor = PageCompressor::new(compression_level)?;
        let (page, indices, pending, words) = (Vec::new(), Vec::new(), Vec::new(), WordDictionary::default());
        Ok(Self { compression_level, compressor, page, indices, pending, words })
    }

    /// Keeps the memory of a chunk that is written, for the next one.
    pub(super) fn recycle(&mut self, written: ChunkBytes) {
        let [_, pages] = written.into_parts();
        if pages.is_unique() {
            self.compressor.recycle(pages.into());
        }
    }

    /// Takes what an earlier file has left, or makes another one.
    pub(super) fn take(left: &mut Option<Self>, compression_level: i32) -> std::io::Result<Self> {
        match left.take().filter(|left| left.compression_level == compression_level) {
            Some(left) => Ok(left),
            None => Self::new(compression_level),
        }
    }
}

/// How a column is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EncodingPlan {
    /// Numbers of eight bytes: without, or from where the dictionary is full.
    pub(super) words: WordEncoding,
    /// Whether a dictionary is tried first.
    pub(super) dictionary: bool,
}

/// What a column may hold while it is encoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnLimits {
    pub(super) page_rows: usize,
    /// Of a dictionary, and of the texts of a page.
    pub(super) dictionary_bytes: usize,
}

/// Encodes one column of one row group.
pub(super) trait ColumnEncoder: Send {
    /// Takes the next rows.
    fn push(&mut self, array: &dyn Array, scratch: &mut Scratch) -> Result<()>;

    /// Returns about how many bytes the chunk has so far; what is not compressed yet counts as it
    /// is.
    fn bytes(&self) -> usize;

    /// Returns how many of them are not compressed yet: the dictionary and the page under way.
    fn pending_bytes(&self) -> usize;

    /// Ends the column chunk.
    fn finish(self: Box<Self>, scratch: &mut Scratch) -> Result<(EncodedChunk, ChunkBounds)>;
}

/// Least and greatest value of a column chunk, `None` where all are null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChunkBounds {
    /// Bits of numbers of eight bytes, as the column's type orders them.
    Words(Option<(u64, u64)>),
    Texts(Option<(String, String)>),
    Booleans(Option<(bool, bool)>),
}

impl EncodingPlan {
    /// Returns an encoder for a column, or `None` where the library is to encode it.
    pub(super) fn encoder(
        self,
        data_type: &DataType,
        limits: ColumnLimits,
        column: &ColumnDescPtr,
        compression: Compression,
    ) -> Option<Box<dyn ColumnEncoder>> {
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return None;
        }
        let words = (self.words, self.dictionary);
        Some(match EncodedKind::of(data_type)? {
            EncodedKind::Word(kind) => Box::new(WordEncoder::new(kind, words, limits, column, compression)),
            EncodedKind::Text => Box::new(TextEncoder::new(limits, column, compression)),
            EncodedKind::Boolean => Box::new(BooleanEncoder::new(limits.page_rows, column, compression)),
        })
    }
}

/// Returns whether a dictionary of so many entries is not worth having after so many values, of any
/// size.
///
/// Values that are drawn evenly and all but differ after some thousands are more than half
/// different after tens of thousands.
fn is_futile(entries: usize, values: usize) -> bool {
    (values >= 4096 && entries > values - values / 16) || (values >= 32_768 && entries > values / 2)
}

/// What is encoded here.
enum EncodedKind {
    Word(WordKind),
    Text,
    Boolean,
}

impl EncodedKind {
    fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Int64 | DataType::Timestamp(TimeUnit::Nanosecond, _) => Self::Word(WordKind::Signed),
            DataType::UInt64 => Self::Word(WordKind::Unsigned),
            DataType::Float64 => Self::Word(WordKind::Float),
            DataType::Boolean => Self::Boolean,
            DataType::Utf8 => Self::Text,
            DataType::Dictionary(key, value) if (&**key, &**value) == (&DataType::Int32, &DataType::Utf8) => Self::Text,
            _ => return None,
        })
    }
}
