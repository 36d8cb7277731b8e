//! A Parquet file under way: its encodings, its statistics, and what the library writes around
//! columns.

use std::{borrow::Cow, io, sync::Arc, vec};

use arrow::{
    array::{ArrayRef, AsArray, RecordBatch},
    datatypes::{DataType, FieldRef, Int64Type, SchemaRef, TimestampNanosecondType},
};
use parquet::{
    arrow::{
        ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata,
        arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory},
    },
    errors::ParquetError,
    file::writer::SerializedFileWriter,
    schema::types::SchemaDescriptor,
};

use super::{
    ColumnStatistics, DataFileSpec, HourlyBlock, ParquetOptions,
    blocks::BLOCK_BYTES,
    column_chunks::ColumnChunk,
    encode::{ColumnLimits, EncodingPlan, Scratch},
    encodings::writer_properties,
    hourly,
    sink::Sink,
    statistics::StatisticsBuilder,
};
use crate::{Error, Result};

/// What was written.
#[derive(Debug)]
pub(super) struct Totals {
    pub(super) rows: u64,
    pub(super) time_bounds: Option<(i64, i64)>,
    pub(super) columns: Vec<ColumnStatistics>,
    pub(super) hourly: Option<HourlyBlock>,
    /// Where the tail begins, in a file that has one.
    pub(super) tail_start: Option<u64>,
}

/// Writes one Parquet file, row group after row group.
pub(super) struct ParquetFile<'a> {
    spec: &'a DataFileSpec<'a>,
    /// That of the file, whose times may be in another unit.
    schema: SchemaRef,
    options: &'a ParquetOptions,
    descriptor: SchemaDescriptor,
    plans: Vec<EncodingPlan>,
    library: SerializedFileWriter<&'a mut Sink>,
    factory: ArrowRowGroupWriterFactory,
    scratch: Scratch,
    statistics: Vec<StatisticsBuilder>,
    rows: u64,
}

impl<'a> ParquetFile<'a> {
    /// Begins a file; `plans` says how each of its columns is encoded. Takes the scratch of an
    /// earlier file, if there is one.
    pub(super) fn new(
        sink: &'a mut Sink,
        spec: &'a DataFileSpec<'a>,
        options: &'a ParquetOptions,
        plans: Vec<EncodingPlan>,
        scratch: &mut Option<Scratch>,
    ) -> Result<Self> {
        let error = |error| encode_error(spec, error);
        let schema = spec.time_unit.in_schema(&spec.schema);
        let descriptor = ArrowSchemaConverter::new().convert(&schema).map_err(error)?;
        let mut properties = writer_properties(spec, &descriptor, &plans, options)?;
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let root = descriptor.root_schema_ptr();
        let library = SerializedFileWriter::new(sink, root, Arc::new(properties)).map_err(error)?;
        let statistics = |field: &FieldRef| StatisticsBuilder::new(field.name(), field.data_type());
        let mut statistics: Vec<StatisticsBuilder> = spec.schema.fields().iter().map(statistics).collect();
        if let Some(time) = statistics.first_mut() {
            time.set_unit(spec.time_unit);
        }
        Ok(Self {
            spec,
            options,
            factory: ArrowRowGroupWriterFactory::new(&library, Arc::clone(&schema)),
            schema,
            library,
            descriptor,
            plans,
            scratch: Scratch::take(scratch, options.compression_level).map_err(|e| error(e.into()))?,
            statistics,
            rows: 0,
        })
    }

    /// Returns a new chunk for each column.
    pub(super) fn chunks(&self) -> Result<Vec<ColumnChunk>> {
        self.try_chunks().map_err(|e| encode_error(self.spec, e))
    }

    fn try_chunks(&self) -> Result<Vec<ColumnChunk>, ParquetError> {
        let mut leaves = (0..self.descriptor.num_columns()).peekable();
        let mut of_library = LibraryWriters { made: None, skipped: 0 };
        let mut chunk = |(root, (field, plan)): (usize, (&FieldRef, &EncodingPlan))| {
            let its = std::iter::from_fn(|| leaves.next_if(|leaf| self.descriptor.get_column_root_idx(*leaf) == root));
            let its: Vec<usize> = its.collect();
            // Times come as integers in another unit than nanoseconds.
            let is_scaled = root == 0 && !self.spec.time_unit.is_nanosecond();
            let data_type = if is_scaled { &DataType::Int64 } else { field.data_type() };
            Ok(match self.our_chunk(data_type, *plan, &its)? {
                Some(ours) => of_library.skip(its.len(), ours),
                None => {
                    ColumnChunk::Library(of_library.take(its.len(), || {
                        self.factory.create_column_writers(self.library.flushed_row_groups().len())
                    })?)
                }
            })
        };
        self.schema.fields().iter().zip(&self.plans).enumerate().map(&mut chunk).collect()
    }

    fn our_chunk(
        &self,
        data_type: &DataType,
        plan: EncodingPlan,
        leaves: &[usize],
    ) -> Result<Option<ColumnChunk>, ParquetError> {
        let [leaf] = leaves else { return Ok(None) };
        let compression = self.options.compression().map_err(|e| ParquetError::General(e.to_string()))?;
        let column = self.descriptor.column(*leaf);
        let limits =
            ColumnLimits { page_rows: self.options.page_rows, dictionary_bytes: self.options.dictionary_bytes };
        let ours = plan.encoder(data_type, limits, &column, compression);
        Ok(ours.map(ColumnChunk::Ours))
    }

    /// Takes the next rows of a column into its chunk.
    pub(super) fn encode(&mut self, index: usize, chunk: &mut ColumnChunk, array: &ArrayRef) -> Result<()> {
        let Some(statistics) = self.statistics.get_mut(index) else { return Ok(()) };
        let array = &in_file(self.spec, index, array)?;
        let field = self.schema.field(index);
        chunk.push(field, array, statistics, &mut self.scratch).map_err(|e| encode_error(self.spec, e))
    }

    /// Writes a row group; `fill` encodes the rest of each chunk before that is appended.
    pub(super) fn write_row_group(
        &mut self,
        rows: usize,
        chunks: Vec<ColumnChunk>,
        mut fill: impl FnMut(usize, &mut dyn FnMut(&ArrayRef) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let (spec, schema, scratch) = (self.spec, &self.schema, &mut self.scratch);
        let error = |error| encode_error(spec, error);
        let mut row_group = self.library.next_row_group().map_err(error)?;
        let columns = schema.fields().iter().zip(&mut self.statistics).zip(chunks);
        for (index, ((field, statistics), mut chunk)) in columns.enumerate() {
            fill(index, &mut |array| {
                let array = &in_file(spec, index, array)?;
                chunk.push(field, array, statistics, scratch).map_err(error)
            })?;
            chunk.append_to(&mut row_group, field, statistics, scratch).map_err(error)?;
        }
        row_group.close().map_err(error)?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Writes what there is of aggregates, and the tail, which the footer ends. The sink is complete
    /// then, but not durable. Leaves the scratch for the next file.
    pub(super) fn finish(mut self, scratch: &mut Option<Scratch>, hourly: Option<&RecordBatch>) -> Result<Totals> {
        let refused = |error: io::Error| encode_error(self.spec, ParquetError::External(Box::new(error)));
        let hourly = hourly.map(|hourly| self.write_hourly(hourly)).transpose()?;
        self.library.flush().map_err(refused)?;
        let (tail_start, sums) = self.library.inner_mut().begin_tail().map_err(refused)?;
        self.library.write_all(&sums).map_err(refused)?;
        self.library.finish().map_err(|e| encode_error(self.spec, e))?;
        let time_bounds = self.statistics.first().and_then(StatisticsBuilder::time_bounds);
        let columns = self.statistics.into_iter().map(StatisticsBuilder::finish).collect();
        *scratch = Some(self.scratch);
        Ok(Totals { rows: self.rows, time_bounds, columns, hourly, tail_start: Some(tail_start) })
    }

    fn write_hourly(&mut self, hourly: &RecordBatch) -> Result<HourlyBlock> {
        let mut write = || {
            let block = hourly::encode(hourly)?;
            // No checksum is of bytes of both rows and aggregates.
            let written = self.library.bytes_written();
            let offset = written.next_multiple_of(BLOCK_BYTES);
            self.library.write_all(&vec![0; offset - written])?;
            self.library.write_all(&block)?;
            Ok(HourlyBlock { offset: offset as u64, bytes: block.len() as u64 })
        };
        write().map_err(|error: ParquetError| encode_error(self.spec, error))
    }
}

/// Returns the values of a column as they reach its encoder: times in the file's unit.
///
/// # Errors
///
/// [`Error::Internal`] where a time is none of the file's unit.
fn in_file<'a>(spec: &DataFileSpec<'_>, index: usize, array: &'a ArrayRef) -> Result<Cow<'a, ArrayRef>> {
    let unit = spec.time_unit;
    let times = array.as_primitive_opt::<TimestampNanosecondType>().filter(|_| index == 0 && !unit.is_nanosecond());
    let Some(times) = times else { return Ok(Cow::Borrowed(array)) };
    if let Some(finer) = times.values().iter().find(|time| !unit.has(**time)) {
        return Err(Error::internal(format!("time {finer} of {} is none in {unit}", spec.path)));
    }
    let times: ArrayRef = Arc::new(times.unary::<_, Int64Type>(|time| time / unit.nanoseconds()));
    Ok(Cow::Owned(times))
}

/// The library's writers, which it makes for all leaves at once: not made before one is wanted.
struct LibraryWriters {
    made: Option<vec::IntoIter<ArrowColumnWriter>>,
    skipped: usize,
}

impl LibraryWriters {
    /// Passes over some leaves and returns what encodes them instead.
    fn skip(&mut self, leaves: usize, instead: ColumnChunk) -> ColumnChunk {
        match &mut self.made {
            Some(made) => made.take(leaves).for_each(drop),
            None => self.skipped += leaves,
        }
        instead
    }

    fn take(
        &mut self,
        leaves: usize,
        make: impl FnOnce() -> Result<Vec<ArrowColumnWriter>, ParquetError>,
    ) -> Result<Vec<ArrowColumnWriter>, ParquetError> {
        if self.made.is_none() {
            let mut made = make()?.into_iter();
            made.by_ref().take(self.skipped).for_each(drop);
            self.made = Some(made);
        }
        Ok(self.made.iter_mut().flatten().take(leaves).collect())
    }
}

/// What the file system refused is told as such; all else the encoder refused, for the rows were
/// checked before.
pub(super) fn encode_error(spec: &DataFileSpec<'_>, error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => Error::io("write", spec.path.as_str(), *source),
            Err(source) => Error::internal(format!("cannot encode {}: {source}", spec.path)),
        },
        other => Error::internal(format!("cannot encode {}: {other}", spec.path)),
    }
}
