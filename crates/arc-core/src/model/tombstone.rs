//! What is left of a delete until its rows are gone from all files: its position in the log, and
//! which rows it took.
//!
//! Owns the rule of what a tombstone applies to. Never removes anything: scans pass over the rows,
//! compaction writes files without them, and forgets a tombstone that applies to no file any more.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Result, SequenceNumber,
    model::{
        DataFile, StatisticsValue, TIME_COLUMN,
        predicate::{KnownValues, Literal, Outcomes, Predicate, without},
    },
};
use arrow::array::RecordBatch;

/// A delete that was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tombstone {
    /// The delete's position in the log: it is about rows that came before.
    pub seq: SequenceNumber,
    /// The rows, by conditions whose values have the types of the columns.
    pub predicate: Predicate,
}

impl Tombstone {
    /// Returns whether any row of a data file may be gone by this. A file has rows from before a
    /// delete, or from after it, never both; unless the file was made by a merge that left the
    /// deleted rows out.
    #[must_use]
    pub fn applies_to(&self, file: &DataFile) -> bool {
        self.is_due(file) && self.outcomes(file).met
    }

    /// Returns whether all rows of a data file are gone by this, for certain.
    pub(crate) fn takes_all_of(&self, file: &DataFile) -> bool {
        self.is_due(file) && self.outcomes(file).is_certain()
    }

    fn is_due(&self, file: &DataFile) -> bool {
        // A write that is not logged shares the number of the frame before it, which may be this
        // delete's.
        file.max_seq < self.seq.0 && file.deleted_seq < self.seq.0
    }

    fn outcomes(&self, file: &DataFile) -> Outcomes {
        self.predicate.outcomes(&|column| of_file(file, column))
    }

    /// Returns whether it is about rows of a buffer, of which the last came with this number, at
    /// these times.
    pub(crate) fn applies_to_rows(&self, max_seq: SequenceNumber, min_time: i64, max_time: i64) -> bool {
        max_seq < self.seq && self.predicate.outcomes(&|column| of_rows(column, min_time, max_time)).met
    }
}

/// Returns the rows that no tombstone takes.
pub(crate) fn live<'t>(
    batch: RecordBatch,
    tombstones: impl IntoIterator<Item = &'t Arc<Tombstone>>,
) -> Result<RecordBatch> {
    tombstones.into_iter().try_fold(batch, |batch, tombstone| without(batch, &tombstone.predicate))
}

fn of_rows(column: &str, min_time: i64, max_time: i64) -> KnownValues {
    if column != TIME_COLUMN {
        return KnownValues::default();
    }
    KnownValues {
        min: Some(Literal::Time(min_time)),
        max: Some(Literal::Time(max_time)),
        no_nulls: true,
        all_null: false,
    }
}

fn of_file(file: &DataFile, column: &str) -> KnownValues {
    if column == TIME_COLUMN {
        return of_rows(column, file.min_time, file.max_time);
    }
    let Some(known) = file.columns.iter().find(|known| known.name == column) else {
        return KnownValues { all_null: true, ..KnownValues::default() };
    };
    KnownValues {
        min: known.min.as_ref().map(literal),
        max: known.max.as_ref().map(literal),
        no_nulls: known.null_count == 0,
        all_null: known.null_count == file.rows,
    }
}

fn literal(value: &StatisticsValue) -> Literal {
    match value {
        StatisticsValue::Integer(value) => Literal::Integer(*value),
        StatisticsValue::Unsigned(value) => Literal::Unsigned(*value),
        StatisticsValue::Float(value) => Literal::Float(*value),
        StatisticsValue::Boolean(value) => Literal::Boolean(*value),
        StatisticsValue::Text { value, .. } => Literal::Text(value.clone()),
    }
}
