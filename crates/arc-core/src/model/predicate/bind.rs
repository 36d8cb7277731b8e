//! Checking a predicate against a table: columns that are there, values of the columns' own types.

use std::{cmp::Ordering, str::FromStr};

use arrow::{
    array::timezone::Tz,
    compute::kernels::cast_utils::string_to_datetime,
    datatypes::{DataType, TimeUnit},
};

use super::{Literal, Predicate};
use crate::{
    Error, Result,
    model::{ColumnKind, TIME_COLUMN, TableSchema, time_of_text, time_type},
};

/// Levels that a predicate may have: it is walked by recursion wherever it is applied.
const MAX_LEVELS: usize = 64;

/// Conditions and values that a predicate may have: it is stored with the table, and applied to its
/// rows until they are gone.
const MAX_PARTS: usize = 10_000;

/// Returns the predicate with values of the types that the columns have.
///
/// # Errors
///
/// [`Error::Predicate`] where it is too large, names a column that is not there, has a value that
/// the column's type cannot have, or names a field of a primary-key table.
pub(crate) fn bind(predicate: &Predicate, schema: &TableSchema) -> Result<Predicate> {
    Binder { schema, parts: 0 }.bind(predicate, 0)
}

struct Binder<'a> {
    schema: &'a TableSchema,
    parts: usize,
}

impl Binder<'_> {
    fn bind(&mut self, predicate: &Predicate, level: usize) -> Result<Predicate> {
        if level > MAX_LEVELS {
            return refuse(format!("it has more than {MAX_LEVELS} levels"));
        }
        self.count()?;
        Ok(match predicate {
            Predicate::True => Predicate::True,
            Predicate::Compare { column, comparison, value } => {
                if let Some(side) = beyond_times(column, value) {
                    return Ok(if comparison.holds(side.reverse()) { all() } else { none() });
                }
                let value = self.value(column, value)?;
                Predicate::Compare { column: column.clone(), comparison: *comparison, value }
            }
            Predicate::In { column, values } => {
                // Also where there is no value.
                self.column(column)?;
                let values = values.iter().filter(|value| beyond_times(column, value).is_none()).map(|value| {
                    self.count()?;
                    self.value(column, value)
                });
                let values = values.collect::<Result<_>>()?;
                Predicate::In { column: column.clone(), values }
            }
            Predicate::IsNull { column } => {
                self.column(column)?;
                Predicate::IsNull { column: column.clone() }
            }
            Predicate::Not(inner) => Predicate::Not(Box::new(self.bind(inner, level + 1)?)),
            Predicate::And(all) => Predicate::And(self.bind_all(all, level)?),
            Predicate::Or(any) => Predicate::Or(self.bind_all(any, level)?),
        })
    }

    fn bind_all(&mut self, all: &[Predicate], level: usize) -> Result<Vec<Predicate>> {
        all.iter().map(|predicate| self.bind(predicate, level + 1)).collect()
    }

    fn count(&mut self) -> Result<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return refuse(format!("it has more than {MAX_PARTS} conditions and values"));
        }
        Ok(())
    }

    /// Returns the type of a column that a delete of this table may look at.
    fn column(&self, name: &str) -> Result<DataType> {
        if name == TIME_COLUMN {
            return Ok(time_type());
        }
        let table = &self.schema.table;
        let Some(column) = self.schema.columns.iter().find(|column| *column.name == *name) else {
            return refuse(format!("table {table:?} has no column {name:?}"));
        };
        if self.schema.has_primary_key && column.kind == ColumnKind::Field {
            // Versions of one point can differ in their fields: some would go, and what they had
            // overwritten come back.
            return refuse(format!(
                "{name:?} is a field, and points of table {table:?} are identified by tags and time: only these can \
                 say which points to delete"
            ));
        }
        Ok(column.data_type.clone())
    }

    fn value(&self, column: &str, value: &Literal) -> Result<Literal> {
        let data_type = self.column(column)?;
        let plain = match &data_type {
            DataType::Dictionary(_, inner) => inner.as_ref(),
            plain => plain,
        };
        fit(value, plain).ok_or(()).or_else(|()| {
            refuse(format!("column {column:?} is {plain} and cannot be compared with {value} without loss"))
        })
    }
}

/// Returns the value as the type has it, if it can have it.
pub(crate) fn fit(value: &Literal, data_type: &DataType) -> Option<Literal> {
    Some(match (value, data_type) {
        (Literal::Text(_), DataType::Utf8)
        | (Literal::Integer(_), DataType::Int64)
        | (Literal::Unsigned(_), DataType::UInt64)
        | (Literal::Float(_), DataType::Float64)
        | (Literal::Boolean(_), DataType::Boolean)
        | (Literal::Time(_), DataType::Timestamp(TimeUnit::Nanosecond, _)) => value.clone(),
        (Literal::Unsigned(value), DataType::Int64) => Literal::Integer(i64::try_from(*value).ok()?),
        (Literal::Integer(value), DataType::UInt64) => Literal::Unsigned(u64::try_from(*value).ok()?),
        (Literal::Integer(value), DataType::Timestamp(TimeUnit::Nanosecond, _)) => Literal::Time(*value),
        (Literal::Unsigned(value), DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
            Literal::Time(i64::try_from(*value).ok()?)
        }
        (Literal::Text(text), DataType::Timestamp(TimeUnit::Nanosecond, _)) => Literal::Time(time_of_text(text)?),
        (Literal::Integer(value), DataType::Float64) => Literal::Float(exact(i128::from(*value))?),
        (Literal::Unsigned(value), DataType::Float64) => Literal::Float(exact(i128::from(*value))?),
        _ => return None,
    })
}

/// Returns on which side of all times that a point can have a text is; `None` if it is one of them, or none.
fn beyond_times(column: &str, value: &Literal) -> Option<Ordering> {
    let Literal::Text(text) = value else { return None };
    if column != TIME_COLUMN || time_of_text(text).is_some() {
        return None;
    }
    let seconds = string_to_datetime(&Tz::from_str("+00:00").ok()?, text).ok()?.timestamp();
    Some(seconds.cmp(&0))
}

fn all() -> Predicate {
    Predicate::True
}

fn none() -> Predicate {
    Predicate::Not(Box::new(Predicate::True))
}

/// Returns the float that is exactly this integer.
fn exact(value: i128) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "compared with what it came from")]
    let (float, back) = (value as f64, value as f64 as i128);
    (back == value).then_some(float)
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::Predicate { reason })
}
