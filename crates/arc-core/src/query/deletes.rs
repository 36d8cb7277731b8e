//! What deletes have taken: as filters of the data files that still have it.
//!
//! Owns the filter and which files need it. Buffers need none: their rows were taken out when the
//! view was made. The filter comes before the merge of late rows, as a delete came before the rows
//! that are newer than it. Its node knows no exact statistics, so that nothing is counted from the
//! manifest where rows may be missing.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::{
    catalog::Session,
    common::{Column as Name, DFSchema, DataFusionError, Result, ScalarValue},
    logical_expr::{Expr, Operator, TryCast, binary_expr, lit},
    physical_expr::expressions::Column,
    physical_plan::{ExecutionPlan, filter::FilterExec, projection::ProjectionExec},
};

use super::files::{self, WantedRows};
use crate::{Comparison, Literal, Predicate, SequenceNumber, Tombstone, model::DataFile};

/// Deletes that apply to the same files.
pub(super) type Deletes<'v> = Vec<&'v Arc<Tombstone>>;

/// Returns the deletes of which a file may still have rows.
pub(super) fn of<'v>(file: &DataFile, tombstones: &'v [Arc<Tombstone>]) -> Deletes<'v> {
    tombstones.iter().filter(|tombstone| tombstone.applies_to(file)).collect()
}

/// Returns whether all rows of a file are gone.
pub(super) fn take_all(file: &DataFile, tombstones: &[Arc<Tombstone>]) -> bool {
    tombstones.iter().any(|tombstone| tombstone.takes_all_of(file))
}

/// Returns `plan` with its first columns only.
pub(super) fn first_columns(plan: Arc<dyn ExecutionPlan>, count: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    if schema.fields().len() == count {
        return Ok(plan);
    }
    let columns = schema.fields().iter().enumerate().take(count);
    let columns = columns.map(|(index, field)| (Arc::new(Column::new(field.name(), index)) as _, field.name().clone()));
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?))
}

/// Returns the rows of `input` that deletes have left. It must have the columns that they look at.
fn live(state: &dyn Session, input: Arc<dyn ExecutionPlan>, deletes: &Deletes<'_>) -> Result<Arc<dyn ExecutionPlan>> {
    if deletes.is_empty() {
        return Ok(input);
    }
    let schema = input.schema();
    let columns = DFSchema::try_from(Arc::clone(&schema))?;
    let left = state.create_physical_expr(joined(&left(deletes, &schema)?, Operator::And, true), &columns)?;
    Ok(Arc::new(FilterExec::try_new(left, input)?))
}

/// Returns the conditions that rows meet which deletes have left.
pub(super) fn left(deletes: &Deletes<'_>, schema: &SchemaRef) -> Result<Vec<Expr>> {
    // A row of which nothing can be said stays.
    let left = |tombstone: &&Arc<Tombstone>| Ok(Expr::IsNotTrue(Box::new(expression(&tombstone.predicate, schema)?)));
    deletes.iter().map(left).collect()
}

/// Returns a predicate in the form of DataFusion.
fn expression(predicate: &Predicate, schema: &SchemaRef) -> Result<Expr> {
    let column_of = |column: &str| Expr::Column(Name::from_name(column));
    // A column that has become text since the delete was accepted is compared by the values that it
    // had then.
    let name = |column: &str, value: &Literal| match (schema.field_with_name(column)?.data_type(), type_of(value)) {
        (DataType::Utf8, Some(was)) => Ok(Expr::TryCast(TryCast::new(Box::new(column_of(column)), was))),
        _ => Ok::<_, DataFusionError>(column_of(column)),
    };
    let each = |parts: &[Predicate]| parts.iter().map(|part| expression(part, schema)).collect::<Result<Vec<_>>>();
    Ok(match predicate {
        Predicate::True => lit(true),
        Predicate::Compare { column, comparison, value } => {
            binary_expr(name(column, value)?, operator(*comparison), scalar(column, value, schema)?)
        }
        Predicate::In { column, values } => {
            let equal = |value| Ok(binary_expr(name(column, value)?, Operator::Eq, scalar(column, value, schema)?));
            joined(&values.iter().map(equal).collect::<Result<Vec<_>>>()?, Operator::Or, false)
        }
        Predicate::IsNull { column } => Expr::IsNull(Box::new(column_of(column))),
        Predicate::Not(inner) => Expr::Not(Box::new(expression(inner, schema)?)),
        Predicate::And(all) => joined(&each(all)?, Operator::And, true),
        Predicate::Or(any) => joined(&each(any)?, Operator::Or, false),
    })
}

/// Returns the type of a value that is no text.
fn type_of(value: &Literal) -> Option<DataType> {
    match value {
        Literal::Integer(_) => Some(DataType::Int64),
        Literal::Unsigned(_) => Some(DataType::UInt64),
        Literal::Float(_) => Some(DataType::Float64),
        Literal::Boolean(_) => Some(DataType::Boolean),
        Literal::Text(_) | Literal::Time(_) => None,
    }
}

/// Joins conditions as a balanced tree: a list of them could be too deep to be walked.
fn joined(parts: &[Expr], operator: Operator, of_nothing: bool) -> Expr {
    match parts {
        [] => lit(of_nothing),
        [part] => part.clone(),
        parts => {
            let (first, second) = parts.split_at(parts.len() / 2);
            binary_expr(joined(first, operator, of_nothing), operator, joined(second, operator, of_nothing))
        }
    }
}

fn operator(comparison: Comparison) -> Operator {
    match comparison {
        Comparison::Equal => Operator::Eq,
        Comparison::NotEqual => Operator::NotEq,
        Comparison::Less => Operator::Lt,
        Comparison::LessOrEqual => Operator::LtEq,
        Comparison::Greater => Operator::Gt,
        Comparison::GreaterOrEqual => Operator::GtEq,
    }
}

/// Returns a value with the very type of its column, so that nothing is cast row by row.
fn scalar(column: &str, value: &Literal, schema: &SchemaRef) -> Result<Expr> {
    let data_type = schema.field_with_name(column)?.data_type();
    let plain = match value {
        // The column was one of integers when the delete was accepted.
        Literal::Integer(value) if *data_type == DataType::Float64 => ScalarValue::Float64(Some(*value as f64)),
        Literal::Unsigned(value) if *data_type == DataType::Float64 => ScalarValue::Float64(Some(*value as f64)),
        Literal::Text(text) => ScalarValue::Utf8(Some(text.clone())),
        Literal::Integer(value) => ScalarValue::Int64(Some(*value)),
        Literal::Unsigned(value) => ScalarValue::UInt64(Some(*value)),
        Literal::Float(value) => ScalarValue::Float64(Some(*value)),
        Literal::Boolean(value) => ScalarValue::Boolean(Some(*value)),
        Literal::Time(time_ns) => ScalarValue::TimestampNanosecond(Some(*time_ns), None),
    };
    let typed = match (plain, data_type) {
        (plain, DataType::Dictionary(key, _)) => ScalarValue::Dictionary(key.clone(), Box::new(plain)),
        (ScalarValue::TimestampNanosecond(time, _), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
            ScalarValue::TimestampNanosecond(time, zone.clone())
        }
        (plain, _) => plain,
    };
    Ok(lit(typed))
}

/// Some files, and the deletes that apply to all of them.
pub(super) struct FilesWithDeletes<'v, T> {
    pub(super) files: Vec<T>,
    pub(super) deletes: Deletes<'v>,
}

impl FilesWithDeletes<'_, &Arc<DataFile>> {
    /// Returns a scan of the `rows` of the files that deletes have left.
    pub(super) fn scan(
        &self,
        state: &dyn Session,
        schema: &SchemaRef,
        projection: Option<&Vec<usize>>,
        rows: WantedRows,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.deletes.is_empty() {
            return files::scan(state, schema, &self.files, projection, rows);
        }
        let wanted = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
        let mut read = wanted.clone();
        for column in self.deletes.iter().flat_map(|tombstone| tombstone.predicate.columns()) {
            let index = schema.index_of(column)?;
            if !read.contains(&index) {
                read.push(index);
            }
        }
        let live = live(state, files::scan(state, schema, &self.files, Some(&read), rows)?, &self.deletes)?;
        first_columns(live, wanted.len())
    }
}

/// Puts files together that the same deletes apply to; those that none applies to come first.
pub(super) fn groups<'v, T>(
    files: impl IntoIterator<Item = T>,
    file: impl Fn(&T) -> &DataFile,
    tombstones: &'v [Arc<Tombstone>],
) -> Vec<FilesWithDeletes<'v, T>> {
    let mut groups = vec![FilesWithDeletes { files: Vec::new(), deletes: Vec::new() }];
    for item in files {
        let deletes = of(file(&item), tombstones);
        match groups.iter_mut().find(|group| numbers(&group.deletes).eq(numbers(&deletes))) {
            Some(group) => group.files.push(item),
            None => groups.push(FilesWithDeletes { files: vec![item], deletes }),
        }
    }
    groups.retain(|group| !group.files.is_empty());
    groups
}

fn numbers<'a>(deletes: &'a Deletes<'_>) -> impl Iterator<Item = SequenceNumber> + 'a {
    deletes.iter().map(|tombstone| tombstone.seq)
}
