//! Finished pages of one column in one row group, and what the file says of them.
//!
//! Headers of pages, the indexes and the column's metadata are written by the Parquet library;
//! which bytes stand in a page is the encoders' business.

use std::collections::BTreeMap;

use bytes::{
    Buf, Bytes,
    buf::{Chain, Reader},
};
use parquet::{
    basic::{BoundaryOrder, Compression, Encoding, PageType},
    column::{
        page::{CompressedPage, Page, PageWriter as _},
        writer::ColumnCloseResult,
    },
    errors::{ParquetError, Result},
    file::{
        metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats},
        reader::{ChunkReader, Length},
        statistics::Statistics,
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};

use super::compression::{PageCompressor, Worth};

/// A data page before compression.
#[derive(Debug)]
pub(super) struct DataPage<'a> {
    /// Levels and values.
    pub(super) body: &'a [u8],
    pub(super) rows: usize,
    pub(super) nulls: usize,
    pub(super) encoding: Encoding,
    /// Least and greatest value as the format has them; `None` where there is no value.
    pub(super) bounds: Option<(Vec<u8>, Vec<u8>)>,
}

/// A dictionary page before compression: all values, plain.
#[derive(Debug)]
pub(super) struct DictionaryPage<'a> {
    pub(super) body: &'a [u8],
    pub(super) values: usize,
}

/// What is known of a column chunk when all of its pages are there.
pub(super) struct ChunkEnd<'a> {
    pub(super) dictionary: Option<DictionaryPage<'a>>,
    /// Bounds and null count.
    pub(super) statistics: Statistics,
    pub(super) order: BoundaryOrder,
    /// Whether the bounds of pages are to be kept.
    pub(super) page_bounds: bool,
}

/// Gathers the pages of a column chunk.
pub(super) struct ChunkPages {
    column: ColumnDescPtr,
    compression: Compression,
    pages: Vec<u8>,
    sizes: Vec<(usize, usize)>,
    index: ColumnIndexBuilder,
    worth: Worth,
    rows: usize,
    nulls: usize,
    uncompressed_bytes: usize,
    encodings: BTreeMap<Encoding, i32>,
}

impl ChunkPages {
    pub(super) fn new(column: ColumnDescPtr, compression: Compression) -> Self {
        let index = ColumnIndexBuilder::new(column.physical_type());
        Self {
            column,
            compression,
            pages: Vec::new(),
            sizes: Vec::new(),
            index,
            worth: Worth::default(),
            rows: 0,
            nulls: 0,
            uncompressed_bytes: 0,
            encodings: BTreeMap::new(),
        }
    }

    /// Returns the number of nulls in all pages so far.
    pub(super) fn nulls(&self) -> usize {
        self.nulls
    }

    /// Returns the number of values in all pages so far.
    pub(super) fn values(&self) -> usize {
        self.rows - self.nulls
    }

    /// Returns the size of the pages so far.
    pub(super) fn bytes(&self) -> usize {
        self.pages.len()
    }

    /// Compresses and appends a page.
    pub(super) fn push(&mut self, page: DataPage<'_>, compressor: &mut PageCompressor) -> Result<()> {
        if !self.encodings.contains_key(&page.encoding) {
            // That indices did not shrink says nothing of the texts that come when their dictionary
            // is full.
            self.worth = Worth::default();
        }
        if self.pages.capacity() == 0 {
            self.pages = compressor.take_spare();
        }
        let compressed = compressor.compress(page.body, &mut self.worth)?;
        let header = Page::DataPage {
            buf: Bytes::copy_from_slice(compressed),
            num_values: count(page.rows)?,
            encoding: page.encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let (uncompressed, compressed) = append_page(&mut self.pages, CompressedPage::new(header, page.body.len()))?;
        self.uncompressed_bytes += uncompressed;
        self.sizes.push((compressed, page.rows));
        *self.encodings.entry(page.encoding).or_default() += 1;
        self.rows += page.rows;
        self.nulls += page.nulls;
        let is_null = page.bounds.is_none();
        let (min, max) = page.bounds.unwrap_or_default();
        self.index.append(is_null, min, max, signed(page.nulls)?);
        Ok(())
    }

    /// Ends the column chunk.
    pub(super) fn finish(mut self, ending: ChunkEnd<'_>, compressor: &mut PageCompressor) -> Result<EncodedChunk> {
        let dictionary = ending.dictionary.map(|page| self.dictionary_page(&page, compressor)).transpose()?;
        let dictionary = dictionary.unwrap_or_default();
        let mut encodings: Vec<Encoding> = self.encodings.keys().copied().collect();
        let mut page_counts: Vec<_> = self.encodings.iter().map(|(e, n)| stats(PageType::DATA_PAGE, *e, *n)).collect();
        if !dictionary.is_empty() {
            encodings.push(Encoding::PLAIN);
            page_counts.push(stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1));
        }
        encodings.push(Encoding::RLE);
        let mut offsets = OffsetIndexBuilder::new();
        let mut end = dictionary.len();
        for (size, rows) in self.sizes {
            offsets.append_row_count(signed(rows)?);
            offsets.append_offset_and_size(signed(end)?, count(size)?.cast_signed());
            end += size;
        }
        let metadata = ColumnChunkMetaData::builder(self.column)
            .set_compression(self.compression)
            .set_encodings(encodings)
            .set_page_encoding_stats(page_counts)
            .set_total_compressed_size(signed(end)?)
            .set_total_uncompressed_size(signed(self.uncompressed_bytes)?)
            .set_num_values(signed(self.rows)?)
            .set_data_page_offset(signed(dictionary.len())?)
            .set_dictionary_page_offset((!dictionary.is_empty()).then_some(0))
            .set_statistics(ending.statistics)
            .build()?;
        self.index.set_boundary_order(ending.order);
        let close = ColumnCloseResult {
            bytes_written: end as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: ending.page_bounds.then(|| self.index.build()).transpose()?,
            offset_index: Some(offsets.build()),
        };
        let bytes = ChunkBytes { dictionary, pages: self.pages.into() };
        Ok(EncodedChunk { bytes, close, nulls: self.nulls as u64 })
    }

    fn dictionary_page(&mut self, page: &DictionaryPage<'_>, compressor: &mut PageCompressor) -> Result<Bytes> {
        let compressed = compressor.compress(page.body, &mut Worth::default())?;
        let header = Page::DictionaryPage {
            buf: Bytes::copy_from_slice(compressed),
            num_values: count(page.values)?,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let mut bytes = Vec::new();
        let (uncompressed, _) = append_page(&mut bytes, CompressedPage::new(header, page.body.len()))?;
        self.uncompressed_bytes += uncompressed;
        Ok(bytes.into())
    }
}

/// A column chunk that is ready to go into a row group.
#[derive(Debug)]
pub(in crate::datafile) struct EncodedChunk {
    pub(in crate::datafile) bytes: ChunkBytes,
    /// What the library is to say of it.
    pub(in crate::datafile) close: ColumnCloseResult,
    pub(in crate::datafile) nulls: u64,
}

/// The pages of a column chunk, the dictionary first.
#[derive(Debug)]
pub(in crate::datafile) struct ChunkBytes {
    dictionary: Bytes,
    pages: Bytes,
}

impl Length for ChunkBytes {
    fn len(&self) -> u64 {
        (self.dictionary.len() + self.pages.len()) as u64
    }
}

impl ChunkBytes {
    /// Returns the dictionary page and the other pages.
    pub(in crate::datafile) fn into_parts(self) -> [Bytes; 2] {
        [self.dictionary, self.pages]
    }
}

/// The library reads a chunk from its start on, once.
impl ChunkReader for ChunkBytes {
    type T = Reader<Chain<Bytes, Bytes>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let mut bytes = self.dictionary.clone().chain(self.pages.clone());
        bytes.advance(usize::try_from(start).unwrap_or(usize::MAX).min(bytes.remaining()));
        Ok(bytes.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let mut bytes = self.get_read(start)?.into_inner();
        if bytes.remaining() < length {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} on, in a chunk of {}", self.len())));
        }
        Ok(bytes.copy_to_bytes(length))
    }
}

/// Appends a page after its header; returns its size before compression and after, header included.
/// The library's buffer is not kept: 8 KiB for each column.
fn append_page(pages: &mut Vec<u8>, page: CompressedPage) -> Result<(usize, usize)> {
    let mut sink = TrackedWrite::new(pages);
    let spec = SerializedPageWriter::new(&mut sink).write_page(page)?;
    sink.into_inner()?;
    Ok((spec.uncompressed_size, spec.compressed_size))
}

fn stats(page_type: PageType, encoding: Encoding, count: i32) -> PageEncodingStats {
    PageEncodingStats { page_type, encoding, count }
}

/// Sizes and counts of pages are 32-bit numbers with a sign.
fn count(number: usize) -> Result<u32> {
    let too_large = || ParquetError::General(format!("a page with {number} values or bytes"));
    i32::try_from(number).map(i32::cast_unsigned).map_err(|_| too_large())
}

fn signed(number: usize) -> Result<i64> {
    i64::try_from(number).map_err(|_| ParquetError::General(format!("a column chunk with {number} values or bytes")))
}
