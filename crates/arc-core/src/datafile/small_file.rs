//! Writes small data files whole, into memory that is used again for the next one.
//!
//! With thousands of tables a flush has some hundred rows of each. Of what the Parquet library does for a file nothing
//! depends on its rows but one row group of one page for each column; the rest of its footer is that of any other file of
//! such columns, and is kept. There are no page indexes, which would repeat what the row group says, and nothing is
//! compressed: compaction rewrites these files before long. Files of other types, and larger ones, are left to
//! `parquet_file`.

use arrow::datatypes::{DataType, Field, TimeUnit};
use parquet::{
    arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata},
    basic::Encoding,
};

use super::{
    DataFileSpec, ParquetOptions,
    blocks::{BlockSums, WHOLE_BYTES},
    encode::{SmallColumn, SmallPages},
    encodings::writer_properties,
    parquet_file::{Totals, encode_error},
    row_groups::Columns,
    statistics::StatisticsBuilder,
    thrift::{Kind, Struct, push_binary, push_i32, push_struct},
};
use crate::Result;

/// Rows from which on a file shrinks by more than it costs to compress it.
const MAX_ROWS: usize = 1_024;
/// Bytes of a page from which on a file is none for here.
const MAX_PAGE_BYTES: usize = 1 << 20;
/// Bytes of a footer beside what is kept of it and the columns, at most.
const MOST_BYTES_BESIDE: usize = 256;
/// Kinds of files whose footers are kept.
const MAX_TEMPLATES: usize = 16;
/// What a Parquet file begins and ends with.
const MAGIC: &[u8; 4] = b"PAR1";

/// Numbers of the format.
const DATA_PAGE: u32 = 0;
const DICTIONARY_PAGE: u32 = 2;
const UNCOMPRESSED: u32 = 0;

/// Memory for small files, one after the other.
#[derive(Default)]
pub(crate) struct SmallFiles {
    file: Vec<u8>,
    /// The row group's columns, as the footer has them.
    chunks: Vec<u8>,
    column: SmallColumn,
    templates: Vec<Template>,
    /// The template to be replaced next.
    oldest: usize,
}

/// What is the same in the footers of all files with such columns.
struct Template {
    fields: arrow::datatypes::Fields,
    tags: Vec<String>,
    sorted_by: Vec<String>,
    late: bool,
    /// Version and schema.
    head: Vec<u8>,
    /// Elements of the row group's list of columns that it is sorted by.
    sorting: Vec<u8>,
    sorting_len: usize,
    /// All behind the row groups.
    tail: Vec<u8>,
}

impl Template {
    fn new(spec: &DataFileSpec<'_>, options: &ParquetOptions) -> Result<Self> {
        let error = |error| encode_error(spec, error);
        let descriptor = ArrowSchemaConverter::new().convert(&spec.schema).map_err(error)?;
        let mut properties = writer_properties(spec, &descriptor, &[], options)?;
        add_encoded_arrow_schema_to_metadata(&spec.schema, &mut properties);
        let sorted = properties.sorting_columns().map(Vec::as_slice).unwrap_or_default();
        let mut sorting = Vec::new();
        for column in sorted {
            push_struct(&mut sorting, |fields| {
                fields.i32(1, column.column_idx.cast_unsigned());
                fields.boolean(2, column.descending);
                fields.boolean(3, column.nulls_first);
            });
        }
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        let mut fields = Struct::new(&mut head);
        fields.i32(1, 1);
        fields.list(2, Kind::Struct, spec.schema.fields().len() + 1, |out| {
            push_struct(out, |fields| {
                fields.binary(4, descriptor.name().as_bytes());
                fields.i32(5, u32::try_from(spec.schema.fields().len()).unwrap_or(u32::MAX));
            });
            spec.schema.fields().iter().for_each(|field| push_schema_element(field, out));
        });
        let mut fields = Struct::after(4, &mut tail);
        let key_values = properties.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
        fields.list(5, Kind::Struct, key_values.len(), |out| {
            for pair in key_values {
                push_struct(out, |fields| {
                    fields.binary(1, pair.key.as_bytes());
                    fields.binary(2, pair.value.as_deref().unwrap_or_default().as_bytes());
                });
            }
        });
        fields.binary(6, properties.created_by().as_bytes());
        fields.list(7, Kind::Struct, spec.schema.fields().len(), |out| {
            // Each is ordered as its type says.
            spec.schema.fields().iter().for_each(|_| push_struct(out, |order| order.structure(1, |_| ())));
        });
        fields.end();
        Ok(Self {
            fields: spec.schema.fields().clone(),
            tags: spec.tags.iter().map(|tag| (*tag).to_owned()).collect(),
            sorted_by: spec.sorted_by.clone(),
            late: spec.late,
            head,
            sorting_len: sorted.len(),
            sorting,
            tail,
        })
    }

    fn fits(&self, spec: &DataFileSpec<'_>) -> bool {
        self.late == spec.late
            && self.tags.iter().eq(spec.tags)
            && self.sorted_by == spec.sorted_by
            && self.fields == *spec.schema.fields()
    }
}

impl SmallFiles {
    /// Returns a file of these rows, or `None` where it would be none for here.
    pub(super) fn write(
        &mut self,
        spec: &DataFileSpec<'_>,
        columns: &dyn Columns,
        options: &ParquetOptions,
    ) -> Result<Option<(Totals, &[u8])>> {
        let rows = columns.len();
        let fields = spec.schema.fields();
        let most_rows = MAX_ROWS.min(options.page_rows).min(options.row_group_rows);
        if rows == 0 || rows > most_rows || !fields.iter().all(|field| SmallColumn::takes(field.data_type())) {
            return Ok(None);
        }
        self.file.clear();
        self.chunks.clear();
        self.file.extend_from_slice(MAGIC);
        let columns_of = Vec::with_capacity(fields.len());
        let mut totals = Totals { rows: rows as u64, time_bounds: None, columns: columns_of, tail_start: None };
        for (index, field) in fields.iter().enumerate() {
            let error = |error| encode_error(spec, error);
            self.column.clear();
            columns.column(index, 0..rows, &mut |array| self.column.push(array).map_err(error))?;
            let pages = self.column.finish(field.data_type(), field.is_nullable()).map_err(error)?;
            if self.column.page.len().max(self.column.dictionary.len()) > MAX_PAGE_BYTES {
                return Ok(None);
            }
            self.push_chunk(field, &pages);
            let mut statistics = StatisticsBuilder::new(field.name(), field.data_type());
            statistics.add_chunk(pages.nulls as u64, pages.bounds);
            totals.time_bounds = totals.time_bounds.or_else(|| statistics.time_bounds().filter(|_| index == 0));
            totals.columns.push(statistics.finish());
        }
        totals.tail_start = self.push_footer(rows, spec, options)?;
        Ok(Some((totals, &self.file)))
    }

    /// Appends a column's pages, and what the footer says of them.
    fn push_chunk(&mut self, field: &Field, pages: &SmallPages) {
        let Self { file, chunks, column, .. } = self;
        let start = file.len();
        if let Some(values) = pages.dictionary_values {
            push_page(file, DICTIONARY_PAGE, &column.dictionary, |header| {
                header.structure(7, |header| {
                    header.i32(1, count(values));
                    header.i32(2, number(Encoding::PLAIN));
                    header.boolean(3, false);
                });
            });
        }
        let data_page = file.len();
        push_page(file, DATA_PAGE, &column.page, |header| {
            header.structure(5, |header| {
                header.i32(1, count(pages.rows));
                header.i32(2, number(pages.encoding));
                header.i32(3, number(Encoding::RLE));
                header.i32(4, number(Encoding::RLE));
            });
        });
        let size = (file.len() - start) as u64;
        let dictionary = pages.dictionary_values.map(|_| Encoding::PLAIN);
        let encodings = || [Some(pages.encoding), dictionary, Some(Encoding::RLE)].into_iter().flatten();
        push_struct(chunks, |chunk| {
            chunk.i64(2, 0);
            chunk.structure(3, |metadata| {
                metadata.i32(1, physical_type(field.data_type()));
                metadata.list(2, Kind::I32, encodings().count(), |out| {
                    encodings().for_each(|encoding| push_i32(number(encoding), out));
                });
                metadata.list(3, Kind::Binary, 1, |out| push_binary(field.name().as_bytes(), out));
                metadata.i32(4, UNCOMPRESSED);
                metadata.i64(5, pages.rows as u64);
                metadata.i64(6, size);
                metadata.i64(7, size);
                metadata.i64(9, data_page as u64);
                if dictionary.is_some() {
                    metadata.i64(11, start as u64);
                }
                metadata.structure(12, |statistics| push_statistics(statistics, column, pages));
            });
        });
    }

    /// Appends the footer, in a tail where the file is not so small that it is read whole; returns where that begins.
    fn push_footer(&mut self, rows: usize, spec: &DataFileSpec<'_>, options: &ParquetOptions) -> Result<Option<u64>> {
        let index = self.template(spec, options)?;
        let Self { file, chunks, templates, .. } = self;
        let Some(template) = templates.get(index) else { return Ok(None) };
        let size = (file.len() - MAGIC.len()) as u64;
        let parts = [file.len(), chunks.len(), template.head.len(), template.sorting.len(), template.tail.len()];
        let has_tail = (parts.iter().sum::<usize>() + MOST_BYTES_BESIDE) as u64 > WHOLE_BYTES;
        let tail_start = has_tail.then_some(file.len() as u64);
        if has_tail {
            let sums = BlockSums::of(file);
            file.extend_from_slice(&sums);
        }
        let start = file.len();
        file.extend_from_slice(&template.head);
        let mut fields = Struct::after(2, file);
        fields.i64(3, rows as u64);
        fields.list(4, Kind::Struct, 1, |out| {
            push_struct(out, |row_group| {
                row_group.list(1, Kind::Struct, spec.schema.fields().len(), |out| out.extend_from_slice(chunks));
                row_group.i64(2, size);
                row_group.i64(3, rows as u64);
                row_group.list(4, Kind::Struct, template.sorting_len, |out| out.extend_from_slice(&template.sorting));
                row_group.i64(5, MAGIC.len() as u64);
                row_group.i64(6, size);
            });
        });
        file.extend_from_slice(&template.tail);
        let length = count(file.len() - start);
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(MAGIC);
        Ok(tail_start)
    }

    /// Returns the place of the template for a file, made if there is none.
    fn template(&mut self, spec: &DataFileSpec<'_>, options: &ParquetOptions) -> Result<usize> {
        if let Some(index) = self.templates.iter().position(|template| template.fits(spec)) {
            return Ok(index);
        }
        let template = Template::new(spec, options)?;
        if self.templates.len() < MAX_TEMPLATES {
            self.templates.push(template);
            return Ok(self.templates.len() - 1);
        }
        self.oldest = (self.oldest + 1) % MAX_TEMPLATES;
        if let Some(slot) = self.templates.get_mut(self.oldest) {
            *slot = template;
        }
        Ok(self.oldest)
    }
}

fn push_page(file: &mut Vec<u8>, page_type: u32, body: &[u8], rest: impl FnOnce(&mut Struct<'_>)) {
    push_struct(file, |header| {
        header.i32(1, page_type);
        header.i32(2, count(body.len()));
        header.i32(3, count(body.len()));
        rest(header);
    });
    file.extend_from_slice(body);
}

fn push_statistics(statistics: &mut Struct<'_>, column: &SmallColumn, pages: &SmallPages) {
    statistics.i64(3, pages.nulls as u64);
    if let Some([(min, min_is_exact), (max, max_is_exact)]) = column.bounds(pages) {
        statistics.binary(5, max);
        statistics.binary(6, min);
        statistics.boolean(7, max_is_exact);
        statistics.boolean(8, min_is_exact);
    }
}

fn push_schema_element(field: &Field, out: &mut Vec<u8>) {
    const UTF8: u32 = 0;
    const UINT_64: u32 = 14;
    push_struct(out, |element| {
        element.i32(1, physical_type(field.data_type()));
        element.i32(3, u32::from(field.is_nullable()));
        element.binary(4, field.name().as_bytes());
        match field.data_type() {
            DataType::Utf8 | DataType::Dictionary(..) => {
                element.i32(6, UTF8);
                element.structure(10, |logical| logical.structure(1, |_| ()));
            }
            DataType::UInt64 => {
                element.i32(6, UINT_64);
                element.structure(10, |logical| {
                    logical.structure(10, |integer| {
                        integer.byte(1, 64);
                        integer.boolean(2, false);
                    });
                });
            }
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                element.structure(10, |logical| {
                    logical.structure(8, |timestamp| {
                        timestamp.boolean(1, zone.as_ref().is_some_and(|zone| !zone.is_empty()));
                        timestamp.structure(2, |unit| unit.structure(3, |_| ()));
                    });
                });
            }
            _ => {}
        }
    });
}

fn physical_type(data_type: &DataType) -> u32 {
    match data_type {
        DataType::Boolean => 0,
        DataType::Float64 => 5,
        DataType::Utf8 | DataType::Dictionary(..) => 6,
        _ => 2,
    }
}

/// Returns the number of an encoding in the format.
fn number(encoding: Encoding) -> u32 {
    encoding as u32
}

/// Sizes and counts of a small file are far from the limits of the format.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
