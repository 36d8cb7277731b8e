//! Reads all of a data file and says what is in it, so that it can be compared with what is said of
//! it.
//!
//! Never believes what is said. Called by verification, and by the adoption of files that another
//! directory has made.

use std::path::Path;

use arrow::datatypes::{Schema, SchemaRef};
use parquet::arrow::ProjectionMask;

use super::{
    ColumnStatistics, DataFile, HourlyBlock, OpenDataFile, StatisticsBuilder,
    blocks::BlockSums,
    hourly::HourlyAggregator,
    order_check::OrderCheck,
    stream::{compare_bytes, read_pieces},
};
use crate::{
    Error, FileTimeUnit, Result,
    model::{row_bytes, rows_within},
    vfs::Vfs,
};

/// Bytes read at a time, about, and rows.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_ROWS: usize = 8192;

/// What a data file has.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) schema: SchemaRef,
    /// Unit of the times in the file.
    pub(crate) time_unit: FileTimeUnit,
    pub(crate) rows: u64,
    /// Oldest and newest time; `None` if there are none.
    pub(crate) time_bounds: Option<(i64, i64)>,
    pub(crate) columns: Vec<ColumnStatistics>,
    /// What is wrong with the order of its rows, or with its aggregates.
    pub(crate) violation: Option<String>,
}

/// Reads all rows of a file, and compares its aggregates with them, which are in `hourly`, if there are any.
/// `is_unique` says, given its columns, whether no two rows may be equal in those of `sorted_by`.
///
/// # Errors
///
/// [`Error::Io`] if it cannot be read, [`Error::Parquet`] and [`Error::Arrow`] if it is no Parquet
/// file.
pub(crate) fn examine(
    file: &OpenDataFile,
    sorted_by: &[String],
    hourly: Option<HourlyBlock>,
    is_unique: impl FnOnce(&Schema) -> bool,
) -> Result<Examined> {
    let row_bytes = row_bytes(file.schema().fields().iter().map(|field| field.data_type()));
    let batch_rows = rows_within(BATCH_BYTES, row_bytes, BATCH_ROWS);
    let reader = file.rows(ProjectionMask::all(), batch_rows)?;
    let schema = reader.schema();
    let mut order = OrderCheck::new(&schema, sorted_by, is_unique(&schema))?;
    let mut columns: Vec<StatisticsBuilder> =
        schema.fields().iter().map(|field| StatisticsBuilder::new(field.name(), field.data_type())).collect();
    let mut aggregator = hourly.and_then(|_| HourlyAggregator::new(&schema, sorted_by));
    let mut rows = 0;
    for batch in reader {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        order.push(&batch)?;
        aggregator.iter_mut().for_each(|aggregator| aggregator.push(&batch));
        columns.iter_mut().zip(batch.columns()).for_each(|(column, array)| column.update(array));
    }
    let time_bounds = columns.first().and_then(StatisticsBuilder::time_bounds);
    let columns = columns.into_iter().map(StatisticsBuilder::finish).collect();
    let violation = match (order.finish(), hourly) {
        (None, Some(block)) => {
            let of_rows = aggregator.and_then(HourlyAggregator::finish);
            let is_right = match of_rows {
                Some(of_rows) => file.hourly(block, of_rows.num_rows())? == of_rows,
                None => false,
            };
            (!is_right).then(|| "its aggregates by hour are not those of its rows".to_owned())
        }
        (violation, _) => violation,
    };
    Ok(Examined { schema, time_unit: file.time_unit(), rows, time_bounds, columns, violation })
}

/// Compares all bytes of the file at `path` with what is said of it: size, checksum, and, if there is
/// a tail, that it is what a tail has to be ([`blocks`](super::blocks)).
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Corrupt`] saying what differs.
pub(crate) fn prove_bytes(vfs: &dyn Vfs, path: &Path, data_file: &DataFile) -> Result<()> {
    let start = data_file.tail.map_or(u64::MAX, |tail| data_file.bytes.saturating_sub(tail.bytes));
    let (mut sums, mut tail) = (BlockSums::default(), Vec::new());
    let (bytes, crc32c) = read_pieces(vfs, path, u64::MAX, |piece, offset| {
        let before = usize::try_from(start.saturating_sub(offset)).unwrap_or(usize::MAX).min(piece.len());
        let (data, of_tail) = piece.split_at(before);
        if data_file.tail.is_some() {
            sums.push(data);
            tail.extend_from_slice(of_tail);
        }
        Ok(())
    })?;
    compare_bytes(path, data_file, bytes, crc32c)?;
    let Some(said) = data_file.tail else { return Ok(()) };
    let is_right =
        said.bytes == tail.len() as u64 && said.crc32c == crc32c::crc32c(&tail) && tail.starts_with(&sums.finish());
    if is_right { Ok(()) } else { Err(Error::corrupt(path, start, "its tail has not the checksums of its blocks")) }
}
