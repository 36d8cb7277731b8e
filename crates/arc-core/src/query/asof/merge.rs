//! The merge of two sorted streams.
//!
//! Of the right side it holds the batch that it is at, and those whose rows wait to be put out with
//! rows of the left side: a few.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, RecordBatch, UInt64Array, new_null_array},
    compute::{interleave, take},
    row::{Row, RowConverter, Rows, SortField},
};
use datafusion::{
    common::Result, execution::SendableRecordBatchStream, physical_expr::PhysicalExpr,
    physical_plan::metrics::BaselineMetrics,
};
use futures::StreamExt;

use super::{
    super::wide_rows::{bytes_of_row, wide_columns},
    exec::Join,
};

/// Batches of the right side with matched rows that are held before rows are put out.
const MOST_HELD: usize = 16;

/// Bytes of long values of matches: one may be that of every row.
const MOST_BYTES: u64 = 64 << 20;

/// Two streams on their way to one.
pub(super) struct Merging {
    join: Join,
    left: SendableRecordBatchStream,
    right: SendableRecordBatchStream,
    /// What has to be equal, and the time: rows that compare as bytes.
    keys: RowConverter,
    times: RowConverter,
    /// The columns of the right side that may have long values.
    wide: Arc<[usize]>,
    /// The next row of the right side, if there is one.
    ahead: Option<NearestRow>,
    /// The last row of the right side that is not after the current one of the left side.
    nearest: Option<NearestRow>,
    /// The rows of the left side, and the next of them.
    at: Option<(SortedBatch, usize)>,
    metrics: BaselineMetrics,
}

/// A batch with its rows to compare.
#[derive(Debug)]
struct SortedBatch {
    batch: RecordBatch,
    /// None where nothing has to be equal.
    keys: Option<Rows>,
    times: Rows,
}

impl SortedBatch {
    fn key(&self, row: usize) -> Option<Row<'_>> {
        self.keys.as_ref().map(|keys| keys.row(row))
    }
}

/// A row of a batch.
#[derive(Debug, Clone)]
struct NearestRow {
    of: Arc<SortedBatch>,
    row: usize,
}

/// Rows to put out: of the current batch of the left side, each with its match.
#[derive(Debug, Default)]
struct Matched {
    left: Vec<u64>,
    right: Vec<(usize, usize)>,
    held: Vec<Arc<SortedBatch>>,
    /// Bytes of their long values.
    bytes: u64,
}

impl Merging {
    pub(super) fn try_new(
        join: Join,
        left: SendableRecordBatchStream,
        right: SendableRecordBatchStream,
        metrics: BaselineMetrics,
    ) -> Result<Self> {
        let schema = left.schema();
        let fields = join.left_by.iter().zip(join.orders());
        let fields = fields.map(|(expr, order)| Ok(SortField::new_with_options(expr.data_type(&schema)?, order)));
        let mut fields = fields.collect::<Result<Vec<_>>>()?;
        let time = fields.split_off(fields.len().saturating_sub(1));
        let (keys, times) = (RowConverter::new(fields)?, RowConverter::new(time)?);
        let wide = wide_columns(&right.schema());
        Ok(Self { join, left, right, keys, times, wide, ahead: None, nearest: None, at: None, metrics })
    }

    /// Returns the next rows, `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let Some((left, from)) = self.next_left().await? else { return Ok(None) };
            let mut matched = Matched::default();
            let mut row = from;
            while row < left.batch.num_rows() && matched.held.len() < MOST_HELD && matched.bytes < MOST_BYTES {
                self.go_to(&left, row).await?;
                let candidate = self.match_of(&left, row);
                if let Some(candidate) = candidate {
                    matched.bytes += bytes_of_row(&candidate.of.batch, candidate.row, &self.wide)?;
                }
                matched.add(row, candidate, self.join.outer);
                row += 1;
            }
            let out = self.put_out(&left, &matched)?;
            if row < left.batch.num_rows() {
                self.at = Some((left, row));
            }
            if out.num_rows() > 0 {
                self.metrics.record_output(out.num_rows());
                return Ok(Some(out));
            }
        }
    }

    async fn next_left(&mut self) -> Result<Option<(SortedBatch, usize)>> {
        if let Some(at) = self.at.take() {
            return Ok(Some(at));
        }
        while let Some(batch) = self.left.next().await.transpose()? {
            if batch.num_rows() > 0 {
                return Ok(Some((self.sorted(batch, true)?, 0)));
            }
        }
        Ok(None)
    }

    /// Goes on in the right side until the next row is after a row of the left side.
    async fn go_to(&mut self, left: &SortedBatch, row: usize) -> Result<()> {
        let strictly = self.join.nearest.strictly;
        let limit = (left.key(row), left.times.row(row));
        loop {
            if self.ahead.is_none() {
                let Some(batch) = self.right.next().await.transpose()? else { return Ok(()) };
                if batch.num_rows() > 0 {
                    self.ahead = Some(NearestRow { of: Arc::new(self.sorted(batch, false)?), row: 0 });
                }
                continue;
            }
            let Some(ahead) = self.ahead.take_if(|ahead| {
                let candidate = (ahead.of.key(ahead.row), ahead.of.times.row(ahead.row));
                if strictly { candidate < limit } else { candidate <= limit }
            }) else {
                return Ok(());
            };
            if ahead.row + 1 < ahead.of.batch.num_rows() {
                self.ahead = Some(NearestRow { of: Arc::clone(&ahead.of), row: ahead.row + 1 });
            }
            self.nearest = Some(ahead);
        }
    }

    /// Returns the match of a row: the nearest one, if it has the same keys.
    fn match_of(&self, left: &SortedBatch, row: usize) -> Option<&NearestRow> {
        self.nearest.as_ref().filter(|candidate| candidate.of.key(candidate.row) == left.key(row))
    }

    fn sorted(&self, batch: RecordBatch, left: bool) -> Result<SortedBatch> {
        let _timer = self.metrics.elapsed_compute().timer();
        let by = if left { &self.join.left_by } else { &self.join.right_by };
        let of = |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(&batch)?.into_array(batch.num_rows());
        let mut keys = by.iter().map(of).collect::<Result<Vec<ArrayRef>>>()?;
        let time = keys.split_off(keys.len().saturating_sub(1));
        let keys = if keys.is_empty() { None } else { Some(self.keys.convert_columns(&keys)?) };
        let times = self.times.convert_columns(&time)?;
        Ok(SortedBatch { batch, keys, times })
    }

    fn put_out(&self, left: &SortedBatch, matched: &Matched) -> Result<RecordBatch> {
        let _timer = self.metrics.elapsed_compute().timer();
        let rows = UInt64Array::from(matched.left.clone());
        let of_left = left.batch.columns().iter().map(|column| Ok(take(column, &rows, None)?));
        let width = left.batch.num_columns();
        let of_right = self.join.schema.fields().iter().skip(width).enumerate().map(|(at, field)| {
            // The first is for rows without a match.
            let nothing = new_null_array(field.data_type(), 1);
            let held = matched.held.iter().map(|held| held.batch.column(at).as_ref());
            let columns: Vec<_> = std::iter::once(nothing.as_ref()).chain(held).collect();
            Ok(interleave(&columns, &matched.right)?)
        });
        let columns = of_left.chain(of_right).collect::<Result<Vec<_>>>()?;
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(matched.left.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.join.schema), columns, &options)?)
    }
}

impl Matched {
    fn add(&mut self, row: usize, candidate: Option<&NearestRow>, outer: bool) {
        let right = match candidate {
            Some(candidate) => {
                if !self.held.last().is_some_and(|last| Arc::ptr_eq(last, &candidate.of)) {
                    self.held.push(Arc::clone(&candidate.of));
                }
                (self.held.len(), candidate.row)
            }
            None if outer => (0, 0),
            None => return,
        };
        self.left.push(row as u64);
        self.right.push(right);
    }
}
