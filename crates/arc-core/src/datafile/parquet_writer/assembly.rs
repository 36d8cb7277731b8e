//! Lays out a Parquet file: column chunks one after the other, and a footer that names those that
//! are to be seen.
//!
//! The Parquet library's own file writer wants to know the columns before the first row group. Here
//! the schema is settled by the footer: a chunk of nulls alone, written before it was known that
//! its column never has a value, is left out of it. Such a chunk stays in the file as some hundred
//! bytes that no reader looks at.

use std::{
    io::{self, Write},
    mem,
    sync::Arc,
};

use arrow::datatypes::Schema;
use parquet::{
    arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata},
    errors::{ParquetError, Result},
    file::{
        metadata::{
            ColumnChunkMetaData, FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter, RowGroupMetaData,
        },
        page_index::{column_index::ColumnIndexMetaData, offset_index::OffsetIndexMetaData},
        properties::WriterProperties,
        writer::TrackedWrite,
    },
    schema::types::SchemaDescPtr,
};

use super::column::Leaf;
use crate::{datafile::sink::Sink, sync::Mutex};

const MAGIC: &[u8; 4] = b"PAR1";
/// Version of the format that has no version 2 data pages.
const VERSION: i32 = 1;

/// A file from its first to its last byte.
pub(super) struct Assembly {
    out: TrackedWrite<SharedSink>,
    sink: Arc<Mutex<Sink>>,
    row_groups: Vec<RowGroup>,
}

/// A row group that is written.
struct RowGroup {
    rows: usize,
    /// The leaves of each declared column; none where it had no value until the end of the file.
    columns: Vec<Vec<ColumnChunkFooter>>,
}

/// What the footer says of a column chunk.
struct ColumnChunkFooter {
    metadata: ColumnChunkMetaData,
    column_index: ColumnIndexMetaData,
    offset_index: OffsetIndexMetaData,
}

impl Assembly {
    pub(super) fn new(sink: Sink) -> Result<Self> {
        let sink = Arc::new(Mutex::new(sink));
        let mut out = TrackedWrite::new(SharedSink(Arc::clone(&sink)));
        out.write_all(MAGIC)?;
        Ok(Self { out, sink, row_groups: Vec::new() })
    }

    /// Returns how many bytes are written.
    pub(super) fn bytes(&self) -> usize {
        self.out.bytes_written()
    }

    /// Appends a row group, column after column.
    pub(super) fn append(&mut self, rows: usize, columns: impl Iterator<Item = Option<Vec<Leaf>>>) -> Result<()> {
        let columns = columns.map(|leaves| leaves.into_iter().flatten().map(|leaf| self.append_leaf(leaf)).collect());
        let columns = columns.collect::<Result<_>>()?;
        self.row_groups.push(RowGroup { rows, columns });
        Ok(())
    }

    fn append_leaf(&mut self, leaf: Leaf) -> Result<ColumnChunkFooter> {
        let position = i64::try_from(self.out.bytes_written()).map_err(|e| ParquetError::General(e.to_string()))?;
        for bytes in &leaf.bytes {
            self.out.write_all(bytes)?;
        }
        let moved = position - leaf.start;
        let without = || ParquetError::General("a column chunk without an offset index".into());
        let mut offset_index = leaf.offset_index.ok_or_else(without)?;
        offset_index.page_locations.iter_mut().for_each(|page| page.offset += moved);
        let data = leaf.metadata.data_page_offset() + moved;
        let dictionary = leaf.metadata.dictionary_page_offset().map(|offset| offset + moved);
        let metadata = leaf.metadata.into_builder().set_data_page_offset(data).set_dictionary_page_offset(dictionary);
        let column_index = leaf.column_index.unwrap_or(ColumnIndexMetaData::NONE);
        Ok(ColumnChunkFooter { metadata: metadata.build()?, column_index, offset_index })
    }

    /// Writes the footer and returns the sink, complete but not durable. `schema` has the columns
    /// that are to be seen, `seen` says of each declared column whether it is one of them.
    pub(super) fn finish(mut self, schema: &Schema, seen: &[bool]) -> Result<Sink> {
        let descriptor = Arc::new(ArrowSchemaConverter::new().convert(schema)?);
        let mut properties = WriterProperties::builder().build();
        add_encoded_arrow_schema_to_metadata(schema, &mut properties);
        let rows: usize = self.row_groups.iter().map(|row_group| row_group.rows).sum();
        let (mut row_groups, mut column_indexes, mut offset_indexes) = (Vec::new(), Vec::new(), Vec::new());
        for row_group in mem::take(&mut self.row_groups) {
            let chunks =
                row_group.columns.into_iter().zip(seen).filter(|(_, seen)| **seen).flat_map(|(leaves, _)| leaves);
            let mut metadata = Vec::new();
            let (mut column_index, mut offset_index) = (Vec::new(), Vec::new());
            for chunk in chunks {
                metadata.push(chunk.metadata);
                column_index.push(chunk.column_index);
                offset_index.push(chunk.offset_index);
            }
            row_groups.push(row_group_metadata(&descriptor, row_group.rows, metadata)?);
            column_indexes.push(column_index);
            offset_indexes.push(offset_index);
        }
        let file = FileMetaData::new(
            VERSION,
            signed(rows)?,
            Some(concat!("arc version ", env!("CARGO_PKG_VERSION")).into()),
            properties.key_value_metadata().cloned(),
            descriptor,
            None,
        );
        let metadata = ParquetMetaDataBuilder::new(file)
            .set_row_groups(row_groups)
            .set_column_index(Some(column_indexes))
            .set_offset_index(Some(offset_indexes))
            .build();
        // What fails while this is dropped is kept by the sink.
        ParquetMetaDataWriter::new_with_tracked(self.out, &metadata).finish()?;
        let sink = Arc::into_inner(self.sink).map(Mutex::into_inner);
        sink.ok_or_else(|| ParquetError::General("the file is still being written to".into()))
    }
}

fn row_group_metadata(
    descriptor: &SchemaDescPtr,
    rows: usize,
    columns: Vec<ColumnChunkMetaData>,
) -> Result<RowGroupMetaData> {
    let bytes = columns.iter().map(ColumnChunkMetaData::uncompressed_size).sum();
    let offset = columns.first().and_then(|column| i64::try_from(column.byte_range().0).ok());
    let mut builder = RowGroupMetaData::builder(Arc::clone(descriptor)).set_num_rows(signed(rows)?);
    if let Some(offset) = offset {
        builder = builder.set_file_offset(offset);
    }
    builder.set_total_byte_size(bytes).set_column_metadata(columns).build()
}

fn signed(number: usize) -> Result<i64> {
    i64::try_from(number).map_err(|e| ParquetError::General(e.to_string()))
}

/// The sink for a writer that does not give back what it writes to.
struct SharedSink(Arc<Mutex<Sink>>);

impl Write for SharedSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().flush()
    }
}
