//! Line protocol to record batches, without an engine.
//!
//! The engine's own decoder after a door of its own: for programs that want Arrow and no store, and
//! for measuring. Never touches a disk or a clock, and keeps no rows: only schemas and series,
//! which the next call profits from.

use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::{
    Precision, Rejected, Result,
    buffer::ChunkReader,
    ingest::{Context, MAX_CELLS, StagedTable, TimeChecks, TypePolicy, decode_lp},
    registry::Database,
};

/// Decodes line protocol into one record batch a measurement.
///
/// Tables and columns keep the types that they first had, as in an engine: `time` is
/// `Timestamp(Nanosecond, "UTC")`, tags are `Dictionary(Int32, Utf8)`, fields `Float64`, `Int64`,
/// `UInt64`, `Boolean` or `Utf8`. Remembers every series it has met, about its line's key and 100
/// bytes each, so that their tags are not read again.
///
/// ```
/// use arc_core::LineDecoder;
///
/// let mut decoder = LineDecoder::new();
/// let decoded = decoder.decode(b"pump,id=7 rpm=1450i 10\npump,id=8 rpm=?\npump,id=8 rpm=1500i", 99)?;
/// assert_eq!(decoded.tables.len(), 1);
/// assert_eq!((decoded.tables[0].name.as_ref(), decoded.tables[0].batch.num_rows()), ("pump", 2));
/// assert_eq!((decoded.rejected_points, decoded.rejected[0].line, decoded.rejected[0].column), (1, 2, 15));
/// # Ok::<(), arc_core::Error>(())
/// ```
#[derive(Debug)]
pub struct LineDecoder {
    database: Arc<Database>,
    precision: Precision,
}

/// What [`LineDecoder::decode`] found.
#[derive(Debug, Clone)]
#[must_use = "some lines may have been rejected"]
#[non_exhaustive]
pub struct DecodedLines {
    /// One entry for each measurement with a good line, in order of their first lines.
    pub tables: Vec<DecodedTable>,
    /// Lines refused, all of them counted.
    pub rejected_points: u64,
    /// The first [`MAX_REJECTED`](crate::MAX_REJECTED) of them, in order.
    pub rejected: Vec<Rejected>,
}

/// The rows of one measurement.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DecodedTable {
    /// The measurement.
    pub name: Arc<str>,
    /// Its rows in order of arrival; columns are `time`, tags, then those fields that some row has.
    pub batch: RecordBatch,
}

impl Default for LineDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl LineDecoder {
    /// A decoder that has met no table yet and takes timestamps for nanoseconds.
    ///
    /// ```
    /// let decoded = arc_core::LineDecoder::new().decode(b"pump,id=7 rpm=1450i,load=0.75", 99)?;
    /// let batch = &decoded.tables[0].batch;
    /// let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    /// assert_eq!(names, ["time", "id", "rpm", "load"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self { database: Arc::new(Database::new("", 0, false)), precision: Precision::Nanosecond }
    }

    /// Sets the unit of the timestamps.
    ///
    /// ```
    /// use arc_core::{LineDecoder, Precision};
    /// use arrow::{array::AsArray, datatypes::TimestampNanosecondType};
    ///
    /// let mut decoder = LineDecoder::new().precision(Precision::Second);
    /// let decoded = decoder.decode(b"pump,id=7 rpm=1450i 1700000000", 0)?;
    /// let times = decoded.tables[0].batch.column(0).as_primitive::<TimestampNanosecondType>();
    /// assert_eq!(times.value(0), 1_700_000_000_000_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Decodes whole lines. Points without a timestamp get `now_ns` and the nanoseconds that follow
    /// it.
    ///
    /// ```
    /// let mut decoder = arc_core::LineDecoder::new();
    /// let decoded = decoder.decode(b"pump,id=7 rpm=1450i\nfan,id=1 on=true", 99)?;
    /// for table in &decoded.tables {
    ///     println!("{}: {} rows", table.name, table.batch.num_rows());
    /// }
    /// assert_eq!(decoded.tables.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if one measurement has more than 2 GiB
    /// of text in one column. A bad line is no error: it is named in the answer, and the others are
    /// decoded.
    pub fn decode(&mut self, body: &[u8], now_ns: i64) -> Result<DecodedLines> {
        let context = Context {
            database: &self.database,
            receive_ns: now_ns,
            precision: Some(self.precision),
            tags: &[],
            skip: &[],
            types: TypePolicy::STRICT,
            most_cells: MAX_CELLS,
            times: TimeChecks::None,
        };
        let mut staged = decode_lp(body, &context);
        staged.tables.retain(|table| !table.rows.is_empty());
        let tables = staged.tables.into_iter().map(|table| self.finish(table)).collect::<Result<_>>()?;
        let (rejected_points, rejected) = (staged.rejections.numbers.len() as u64, staged.rejections.first);
        Ok(DecodedLines { tables, rejected_points, rejected })
    }

    /// Registers what the rows of a table add to the schema, and hands the rows over.
    fn finish(&self, staged: StagedTable) -> Result<DecodedTable> {
        let schema = staged.grown_schema();
        if !staged.added.is_empty() || self.database.table(staged.name()).is_none() {
            staged.table.set_schema(Arc::clone(&schema));
            self.database.add(Arc::clone(&staged.table));
        }
        let reader = ChunkReader::new(Arc::clone(&schema), Arc::clone(&staged.table.series));
        let batch = reader.rows(&Arc::new(staged.rows.into_chunk()?)).all()?;
        Ok(DecodedTable { name: Arc::clone(&schema.table), batch })
    }
}
