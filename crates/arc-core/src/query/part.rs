//! The parts that a table's rows are in, and which of them a query may skip.

use std::{collections::HashSet, sync::Arc};

use arrow::{
    array::{ArrayRef, BooleanArray, UInt64Array},
    datatypes::{DataType, SchemaRef},
};
use datafusion::{
    catalog::Session,
    common::{Column, DFSchema, Result, ScalarValue, pruning::PruningStatistics},
    logical_expr::Expr,
    physical_optimizer::pruning::PruningPredicateBuilder,
};

use super::statistics;
use crate::{
    model::{DataFile, TIME_COLUMN},
    view::BufferPart,
};

/// Some rows of a table that are stored together.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    /// A data file.
    File(&'a Arc<DataFile>),
    /// Unflushed rows.
    Buffer(&'a BufferPart),
}

impl Part<'_> {
    /// Returns whether rows may have the primary key of rows in other parts.
    pub(super) fn is_late(&self) -> bool {
        match self {
            Self::File(file) => file.late,
            Self::Buffer(buffer) => buffer.late,
        }
    }

    /// Returns the oldest and the newest time.
    pub(super) fn time_range(&self) -> (i64, i64) {
        match self {
            Self::File(file) => (file.min_time, file.max_time),
            Self::Buffer(buffer) => (buffer.min_time, buffer.max_time),
        }
    }

    /// Returns whether some time may be in both parts.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let ((min, max), (other_min, other_max)) = (self.time_range(), other.time_range());
        min <= other_max && other_min <= max
    }

    fn rows(&self) -> u64 {
        match self {
            Self::File(file) => file.rows,
            Self::Buffer(buffer) => buffer.row_count() as u64,
        }
    }

    /// Returns whether every row is known to have a value of this column.
    pub(super) fn is_never_null(&self, column: &str) -> bool {
        match self {
            Self::File(_) => self.null_count(column) == Some(0),
            Self::Buffer(buffer) => buffer.rows.is_never_null(column),
        }
    }

    fn null_count(&self, column: &str) -> Option<u64> {
        match self {
            Self::File(file) => {
                Some(file.columns.iter().find(|c| c.name == column).map_or(file.rows, |c| c.null_count))
            }
            Self::Buffer(buffer) => buffer.rows.lacks(column).then_some(self.rows()),
        }
    }

    /// Returns a value that no row's value is below (`RangeEnd::Min`) or above (`RangeEnd::Max`),
    /// if one is known.
    fn bound(&self, column: &str, data_type: &DataType, bound: RangeEnd) -> Option<ScalarValue> {
        if column == TIME_COLUMN {
            let (min, max) = self.time_range();
            return Some(statistics::time(if bound == RangeEnd::Min { min } else { max }));
        }
        let Self::File(file) = self else { return None };
        let known = file.columns.iter().find(|c| c.name == column)?;
        let value = if bound == RangeEnd::Min { known.min.as_ref() } else { known.max.as_ref() };
        statistics::bound(value?, data_type).map(|(scalar, _)| scalar)
    }
}

/// Which end of a range of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeEnd {
    Min,
    Max,
}

/// Returns the parts in which a row may satisfy `filter`; keeps a part when in doubt.
pub(super) fn survivors<'a>(
    state: &dyn Session,
    schema: &SchemaRef,
    filter: Option<&Expr>,
    parts: Vec<Part<'a>>,
) -> Result<Vec<Part<'a>>> {
    let Some(filter) = filter else { return Ok(parts) };
    let columns = DFSchema::try_from(Arc::clone(schema))?;
    let filter = state.create_physical_expr(filter.clone(), &columns)?;
    let builder = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema));
    let Some(predicate) = builder.build(filter) else { return Ok(parts) };
    // An error here, such as an overflow, is the statement's own and appears where its rows are
    // computed.
    let Ok(keep) = predicate.prune(&PartStatistics { schema, parts: &parts }) else { return Ok(parts) };
    Ok(parts.into_iter().zip(keep).filter_map(|(part, keep)| keep.then_some(part)).collect())
}

/// What the manifest knows of parts, in the form that pruning asks for.
struct PartStatistics<'a> {
    schema: &'a SchemaRef,
    parts: &'a [Part<'a>],
}

impl PartStatistics<'_> {
    fn bounds(&self, column: &Column, bound: RangeEnd) -> Option<ArrayRef> {
        let data_type = self.schema.field_with_name(&column.name).ok()?.data_type();
        let unknown = ScalarValue::try_from(data_type).ok()?;
        let values = self.parts.iter().map(|part| part.bound(&column.name, data_type, bound));
        ScalarValue::iter_to_array(values.map(|value| value.unwrap_or_else(|| unknown.clone()))).ok()
    }
}

impl PruningStatistics for PartStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, RangeEnd::Min)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bounds(column, RangeEnd::Max)
    }

    fn num_containers(&self) -> usize {
        self.parts.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let counts = self.parts.iter().map(|part| part.null_count(&column.name));
        Some(Arc::new(UInt64Array::from_iter(counts)))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from_iter_values(self.parts.iter().map(Part::rows))))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
