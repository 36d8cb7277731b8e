//! What a scan for the newest rows is to do, as far as it is known when a query is planned.

use std::sync::Arc;

use arrow::{
    array::{AsArray, BooleanArray, RecordBatch},
    compute::filter_record_batch,
    datatypes::SchemaRef,
};
use datafusion::{
    common::{DataFusionError, Result},
    physical_expr::PhysicalExpr,
};

use super::cache::NewestRowsCache;
use crate::{buffer::ChunkRows, model::DataFile};

/// Which rows are wanted; more of them do no harm, for the plan above looks at them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::query) enum WantedNewest {
    /// Of each key the newest row.
    OfEachKey,
    /// The newest rows of all. With `ties` those that are as old as the last of them, too.
    OfAll { rows: usize, ties: bool },
}

/// See the module.
#[derive(Debug)]
pub(super) struct NewestRowsJob {
    pub(super) newest: WantedNewest,
    /// All columns of the table.
    pub(super) schema: SchemaRef,
    /// Columns of the key, as indices in `schema`.
    pub(super) keys: Vec<usize>,
    /// The names of `keys`.
    pub(super) key_names: Vec<String>,
    /// Columns of the answer, likewise.
    pub(super) output: Vec<usize>,
    pub(super) output_schema: SchemaRef,
    /// The columns of `keys`, then the time.
    pub(super) index_schema: SchemaRef,
    /// The condition as far as the newest row of a key decides it for all rows of the key: over
    /// `index_schema`.
    pub(super) on_index: Option<Arc<dyn PhysicalExpr>>,
    /// The condition over `schema`: parts of files are skipped by it, and rows of buffers left out.
    pub(super) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// Newest first.
    pub(super) parts: Vec<JobPart>,
    pub(super) cache: Arc<NewestRowsCache>,
}

/// One part of the table.
#[derive(Debug)]
pub(super) struct JobPart {
    pub(super) max_time: i64,
    pub(super) rows: PartRows,
}

#[derive(Debug)]
pub(super) enum PartRows {
    File(Box<FilePart>),
    /// Unflushed rows, of which `predicate` says which count.
    Buffer(ChunkRows),
    /// Late rows and those that they may overwrite: an input of the node, by its number. It has
    /// only rows that count, with the columns of the answer, then those of `index_schema`.
    Merged(usize),
}

/// A data file.
#[derive(Debug)]
pub(super) struct FilePart {
    pub(super) file: Arc<DataFile>,
    /// Whether what is known of all its rows, and `on_index`, say all.
    pub(super) whole: bool,
    /// Whether it is better to look for the few rows that count than to get to know the whole file.
    pub(super) selective: bool,
    /// Which of its rows count.
    pub(super) filter: Option<RowCondition>,
}

/// A condition, and the columns that it looks at.
#[derive(Debug, Clone)]
pub(super) struct RowCondition {
    /// The columns of the index, then others, as indices in the table's schema.
    pub(super) columns: Vec<usize>,
    /// Over `columns`.
    pub(super) holds: Arc<dyn PhysicalExpr>,
}

impl RowCondition {
    /// Returns the rows of `batch` for which the condition holds. Its first columns must be
    /// `columns`.
    pub(super) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        Ok(filter_record_batch(batch, &mask(&self.holds, batch)?)?)
    }
}

impl NewestRowsJob {
    /// Returns the columns that an index is made of.
    pub(super) fn index_columns(&self) -> Result<Vec<usize>> {
        let time = self.schema.index_of(crate::model::TIME_COLUMN)?;
        Ok(self.keys.iter().copied().chain([time]).collect())
    }
}

/// Evaluates a condition.
pub(super) fn mask(condition: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    let values = condition.evaluate(batch)?.into_array(batch.num_rows())?;
    let mask = values.as_boolean_opt().cloned();
    mask.ok_or_else(|| DataFusionError::Internal("a condition that is neither true nor false".to_owned()))
}
