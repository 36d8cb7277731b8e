//! The pages of all columns of a data file, decompressed by one context.
//!
//! The Parquet library has a context of Zstandard for each column that is open, of which some 40 KB
//! are in use. A merge of tables with a thousand columns has several thousand open at a time. So
//! the library is told that columns are not compressed, hands their pages on as they are, and they
//! are decompressed here. Never decodes a page; with any other compression the library
//! decompresses, too.

use std::sync::Arc;

use crate::sync::Mutex;
use bytes::Bytes;
use parquet::{
    arrow::arrow_reader::RowGroups,
    basic::Compression,
    column::page::{Page, PageIterator, PageMetadata, PageReader},
    errors::{ParquetError, Result},
    file::{
        metadata::{ParquetMetaData, RowGroupMetaData},
        reader::ChunkReader,
        serialized_reader::SerializedPageReader,
    },
};
use zstd::{bulk::Decompressor, zstd_safe::get_frame_content_size};

/// The row groups of a file whose columns share one context.
pub(super) struct SharedRowGroups<R> {
    reader: Arc<R>,
    metadata: Arc<ParquetMetaData>,
    zstd: Arc<SharedContext>,
}

/// A context of Zstandard, made when the first page wants it: small files have none that is
/// compressed.
type SharedContext = Mutex<Option<Decompressor<'static>>>;

impl<R: ChunkReader + 'static> SharedRowGroups<R> {
    pub(super) fn new(reader: Arc<R>, metadata: Arc<ParquetMetaData>) -> Self {
        Self { reader, metadata, zstd: Arc::default() }
    }
}

impl<R: ChunkReader + 'static> RowGroups for SharedRowGroups<R> {
    fn num_rows(&self) -> usize {
        self.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let (reader, metadata, zstd) = (Arc::clone(&self.reader), Arc::clone(&self.metadata), Arc::clone(&self.zstd));
        Ok(Box::new(ColumnChunks { reader, metadata, zstd, column, row_group: 0 }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The chunks of one column, row group by row group.
struct ColumnChunks<R> {
    reader: Arc<R>,
    metadata: Arc<ParquetMetaData>,
    zstd: Arc<SharedContext>,
    column: usize,
    row_group: usize,
}

impl<R: ChunkReader + 'static> ColumnChunks<R> {
    fn pages(&self, row_group: &RowGroupMetaData) -> Result<Box<dyn PageReader>> {
        let chunk = row_group.columns().get(self.column);
        let chunk =
            chunk.ok_or_else(|| ParquetError::General(format!("a row group without column {}", self.column)))?;
        let index = self.metadata.offset_index().and_then(|groups| groups.get(self.row_group)?.get(self.column));
        let locations = index.map(|index| index.page_locations().clone());
        let rows = usize::try_from(row_group.num_rows()).unwrap_or(0);
        let open = |chunk| SerializedPageReader::new(Arc::clone(&self.reader), chunk, rows, locations);
        if !matches!(chunk.compression(), Compression::ZSTD(_)) {
            return Ok(Box::new(open(chunk)?));
        }
        let pages = open(&chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?)?;
        let most_bytes = usize::try_from(chunk.uncompressed_size()).unwrap_or(usize::MAX);
        Ok(Box::new(SharedPages { pages, zstd: Arc::clone(&self.zstd), most_bytes }))
    }
}

impl<R: ChunkReader + 'static> Iterator for ColumnChunks<R> {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let row_group = self.metadata.row_groups().get(self.row_group)?;
        let pages = self.pages(row_group);
        self.row_group += 1;
        Some(pages)
    }
}

impl<R: ChunkReader + 'static> PageIterator for ColumnChunks<R> {}

/// The pages of one column chunk.
struct SharedPages<R: ChunkReader> {
    pages: SerializedPageReader<R>,
    zstd: Arc<SharedContext>,
    /// What no page of the chunk is larger than.
    most_bytes: usize,
}

impl<R: ChunkReader> SharedPages<R> {
    fn decompressed(&self, page: Page) -> Result<Page> {
        Ok(match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics } => {
                let buf = self.decompress(&buf)?;
                Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
            }
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                Page::DictionaryPage { buf: self.decompress(&buf)?, num_values, encoding, is_sorted }
            }
            // Data files have pages of the first version (docs/format.md, "Data files").
            Page::DataPageV2 { .. } => return Err(ParquetError::NYI("a data page of version 2".into())),
        })
    }

    fn decompress(&self, frame: &[u8]) -> Result<Bytes> {
        let bytes = get_frame_content_size(frame).ok().flatten().and_then(|bytes| usize::try_from(bytes).ok());
        let bytes = bytes.filter(|bytes| *bytes <= self.most_bytes);
        let bytes = bytes.ok_or_else(|| ParquetError::General("a page that does not say its size".into()))?;
        let mut zstd = self.zstd.lock();
        let zstd = match zstd.as_mut() {
            Some(zstd) => zstd,
            None => zstd.insert(Decompressor::new()?),
        };
        Ok(zstd.decompress(frame, bytes)?.into())
    }
}

impl<R: ChunkReader> Iterator for SharedPages<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader> PageReader for SharedPages<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.decompressed(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use arrow::{
        array::{ArrayRef, Int64Array, RecordBatch, StringArray},
        compute::concat_batches,
    };
    use parquet::{
        arrow::{
            ArrowWriter, ProjectionMask,
            arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader},
            parquet_to_arrow_field_levels,
        },
        basic::ZstdLevel,
        file::{
            metadata::PageIndexPolicy,
            properties::{WriterProperties, WriterVersion},
        },
    };

    use super::*;

    fn rows() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..1_000).map(|i| (i % 7 != 0).then_some(i * i))));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|i| format!("text {}", i % 50))));
        RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
    }

    /// Writes the rows with several pages and row groups, and reads them back.
    fn read_back(compression: Compression, version: WriterVersion, index: PageIndexPolicy) -> Result<RecordBatch> {
        let rows = rows();
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_writer_version(version)
            .set_data_page_row_count_limit(100)
            .set_write_batch_size(50)
            .set_max_row_group_row_count(Some(400))
            .build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, rows.schema(), Some(properties))?;
        writer.write(&rows)?;
        writer.close()?;
        let file = Bytes::from(file);
        let footer = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new().with_page_index_policy(index))?;
        let groups = SharedRowGroups::new(Arc::new(file), Arc::clone(footer.metadata()));
        assert_eq!((groups.num_rows(), groups.row_groups().count()), (1_000, 3));
        let hint = Some(footer.schema().fields());
        let levels = parquet_to_arrow_field_levels(footer.parquet_schema(), ProjectionMask::all(), hint)?;
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, 64, None)?;
        let batches = reader.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(concat_batches(&rows.schema(), &batches)?)
    }

    #[test]
    fn rows_come_back_whatever_the_compression() {
        let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
        for compression in [zstd, Compression::SNAPPY, Compression::UNCOMPRESSED] {
            for index in [PageIndexPolicy::Required, PageIndexPolicy::Skip] {
                let read = read_back(compression, WriterVersion::PARQUET_1_0, index).unwrap();
                assert_eq!(read, rows(), "{compression} {index:?}");
            }
        }
    }

    #[test]
    fn pages_of_the_second_version_are_refused() {
        let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
        let error = read_back(zstd, WriterVersion::PARQUET_2_0, PageIndexPolicy::Required).unwrap_err();
        assert!(error.to_string().contains("data page of version 2"), "{error}");
    }

    #[test]
    fn a_page_never_takes_more_memory_than_its_chunk_says() {
        let zstd = Arc::default();
        let frame = Bytes::from(zstd::bulk::compress(&[7; 10_000], 1).unwrap());
        let metadata = {
            let mut file = Vec::new();
            ArrowWriter::try_new(&mut file, rows().schema(), None).unwrap().close().unwrap();
            ArrowReaderMetadata::load(&Bytes::from(file), ArrowReaderOptions::new()).unwrap()
        };
        let column = metadata.parquet_schema().column(0);
        let chunk = parquet::file::metadata::ColumnChunkMetaData::builder(column).build().unwrap();
        for (most_bytes, is_taken) in [(10_000, true), (9_999, false)] {
            let pages = SerializedPageReader::new(Arc::new(frame.clone()), &chunk, 0, Some(Vec::new())).unwrap();
            let pages = SharedPages { pages, zstd: Arc::clone(&zstd), most_bytes };
            assert_eq!(pages.decompress(&frame).is_ok(), is_taken);
            assert!(pages.decompress(b"no frame").is_err());
        }
    }
}
