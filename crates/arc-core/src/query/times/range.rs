//! Ranges of times, and what conditions say about them.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::{
    common::{Result, ScalarValue, Statistics},
    logical_expr::{Between, Expr, Operator, expr::BinaryExpr},
    physical_expr::{
        PhysicalExpr, conjunction,
        expressions::{
            self, BinaryExpr as PhysicalBinary, Column, DynamicFilterPhysicalExpr, IsNullExpr, Literal, binary,
        },
    },
};

use super::super::statistics;
use crate::model::TIME_COLUMN;

/// The times from `min` to `max`, both included; none if `min` is the larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct TimeRange {
    pub(in crate::query) min: i64,
    pub(in crate::query) max: i64,
}

impl TimeRange {
    pub(in crate::query) const ALL: Self = Self { min: i64::MIN, max: i64::MAX };
    pub(in crate::query) const NONE: Self = Self { min: i64::MAX, max: i64::MIN };

    pub(in crate::query) fn new(min: i64, max: i64) -> Self {
        Self { min, max }
    }

    /// Returns the times that meet those of `filters` which [`Self::of`] knows.
    pub(in crate::query) fn of_all(filters: &[Expr]) -> Self {
        filters.iter().filter_map(Self::of).fold(Self::ALL, Self::and)
    }

    /// Returns the times for which a condition holds, if it is nothing but a range of times.
    pub(in crate::query) fn of(filter: &Expr) -> Option<Self> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
                (Expr::Column(column), Expr::Literal(value, _)) if column.name == TIME_COLUMN => {
                    Self::compared(*op, nanoseconds(value)?)
                }
                (Expr::Literal(value, _), Expr::Column(column)) if column.name == TIME_COLUMN => {
                    Self::compared(op.swap()?, nanoseconds(value)?)
                }
                _ => None,
            },
            Expr::Between(Between { expr, negated: false, low, high }) => match (&**expr, &**low, &**high) {
                (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) if column.name == TIME_COLUMN => {
                    Some(Self::new(nanoseconds(low)?, nanoseconds(high)?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn compared(op: Operator, time: i64) -> Option<Self> {
        let above = |min: Option<i64>| min.map_or(Self::NONE, |min| Self { min, ..Self::ALL });
        let below = |max: Option<i64>| max.map_or(Self::NONE, |max| Self { max, ..Self::ALL });
        match op {
            Operator::Gt => Some(above(time.checked_add(1))),
            Operator::GtEq => Some(above(Some(time))),
            Operator::Lt => Some(below(time.checked_sub(1))),
            Operator::LtEq => Some(below(Some(time))),
            Operator::Eq => Some(Self::new(time, time)),
            _ => None,
        }
    }

    pub(in crate::query) fn is_empty(&self) -> bool {
        self.min > self.max
    }

    /// Returns whether a time is among these.
    pub(in crate::query) fn has(&self, time: i64) -> bool {
        self.min <= time && time <= self.max
    }

    /// Returns whether all times of `other` are among these.
    pub(in crate::query) fn covers(&self, other: Self) -> bool {
        other.is_empty() || (self.min <= other.min && other.max <= self.max)
    }

    pub(in crate::query) fn and(self, other: Self) -> Self {
        Self { min: self.min.max(other.min), max: self.max.min(other.max) }
    }

    /// Returns the least range that has both.
    fn hull(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Self { min: self.min.min(other.min), max: self.max.max(other.max) },
        }
    }

    /// Returns the condition that a row has one of these times; `schema` has the time.
    pub(in crate::query) fn condition(self, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>> {
        let time: Arc<dyn PhysicalExpr> = Arc::new(Column::new_with_schema(TIME_COLUMN, schema)?);
        let compare = |op, bound| binary(Arc::clone(&time), op, expressions::lit(statistics::time(bound)), schema);
        let ends = [(Operator::GtEq, self.min, i64::MIN), (Operator::LtEq, self.max, i64::MAX)];
        let ends = ends.into_iter().filter(|(_, bound, open)| bound != open).map(|(op, bound, _)| compare(op, bound));
        Ok(conjunction(ends.collect::<Result<Vec<_>>>()?))
    }

    /// Returns times out of which no row of a file meets `condition`, which is over the columns of
    /// a table. `known` has what is known of the file's columns.
    pub(super) fn implied(condition: &Arc<dyn PhysicalExpr>, known: &Statistics) -> Self {
        if let Some(dynamic) = condition.downcast_ref::<DynamicFilterPhysicalExpr>() {
            return dynamic.current().map_or(Self::ALL, |current| Self::implied(&current, known));
        }
        if let Some(literal) = condition.downcast_ref::<Literal>() {
            return if literal.value() == &ScalarValue::Boolean(Some(false)) { Self::NONE } else { Self::ALL };
        }
        if let Some(is_null) = condition.downcast_ref::<IsNullExpr>() {
            return if never_null(is_null.arg(), known) { Self::NONE } else { Self::ALL };
        }
        let Some(binary) = condition.downcast_ref::<PhysicalBinary>() else { return Self::ALL };
        let both = || [binary.left(), binary.right()].map(|side| Self::implied(side, known));
        match binary.op() {
            Operator::And => both().into_iter().fold(Self::ALL, Self::and),
            Operator::Or => both().into_iter().fold(Self::NONE, Self::hull),
            op => match (binary.left().downcast_ref::<Column>(), binary.right().downcast_ref::<Literal>()) {
                (Some(column), Some(value)) => Self::of_comparison(column, *op, value.value(), known),
                _ => Self::ALL,
            },
        }
    }

    fn of_comparison(column: &Column, op: Operator, value: &ScalarValue, known: &Statistics) -> Self {
        if column.name() == TIME_COLUMN {
            return nanoseconds(value).and_then(|time| Self::compared(op, time)).unwrap_or(Self::ALL);
        }
        if is_impossible(column, op, value, known) { Self::NONE } else { Self::ALL }
    }
}

fn nanoseconds(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampNanosecond(time, _) => *time,
        _ => None,
    }
}

fn never_null(column: &Arc<dyn PhysicalExpr>, known: &Statistics) -> bool {
    let column = column.downcast_ref::<Column>().and_then(|column| known.column_statistics.get(column.index()));
    column.is_some_and(|column| column.null_count.get_value() == Some(&0) && column.null_count.is_exact() == Some(true))
}

/// Returns whether the bounds of a column say that no row of the file compares so.
fn is_impossible(column: &Column, op: Operator, value: &ScalarValue, known: &Statistics) -> bool {
    let Some(column) = known.column_statistics.get(column.index()) else { return false };
    let bound = |bound: Option<&ScalarValue>| bound.and_then(|bound| order(bound, value));
    let (min, max) = (bound(column.min_value.get_value()), bound(column.max_value.get_value()));
    match op {
        Operator::Gt => max.is_some_and(|max| max.is_le()),
        Operator::GtEq => max.is_some_and(|max| max.is_lt()),
        Operator::Lt => min.is_some_and(|min| min.is_ge()),
        Operator::LtEq => min.is_some_and(|min| min.is_gt()),
        Operator::Eq => max.is_some_and(|max| max.is_lt()) || min.is_some_and(|min| min.is_gt()),
        _ => false,
    }
}

/// Compares numbers as a filter does, for which the zeros are equal; nothing is said of NaN and of
/// other types.
fn order(bound: &ScalarValue, value: &ScalarValue) -> Option<std::cmp::Ordering> {
    match (bound, value) {
        (ScalarValue::Float64(Some(bound)), ScalarValue::Float64(Some(value))) => bound.partial_cmp(value),
        (ScalarValue::Int64(Some(bound)), ScalarValue::Int64(Some(value))) => Some(bound.cmp(value)),
        (ScalarValue::UInt64(Some(bound)), ScalarValue::UInt64(Some(value))) => Some(bound.cmp(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
    use datafusion::{
        common::{ColumnStatistics, stats::Precision},
        logical_expr::lit,
        physical_expr::expressions::{is_null, lit as physical_lit},
        prelude::col,
    };

    use super::*;

    fn at(time: i64) -> Expr {
        lit(ScalarValue::TimestampNanosecond(Some(time), Some("UTC".into())))
    }

    #[test]
    fn conditions_that_are_ranges_of_times() {
        let (min, max) = (i64::MIN, i64::MAX);
        let cases = [
            (col("time").gt_eq(at(5)), Some((5, max))),
            (col("time").gt(at(5)), Some((6, max))),
            (at(5).gt(col("time")), Some((min, 4))),
            (col("time").lt_eq(at(5)), Some((min, 5))),
            (col("time").eq(at(5)), Some((5, 5))),
            (col("time").between(at(5), at(9)), Some((5, 9))),
            (col("time").gt(at(max)), Some((max, min))),
            (col("time").lt(at(min)), Some((max, min))),
            (col("time").not_between(at(5), at(9)), None),
            (col("time").not_eq(at(5)), None),
            (col("time").gt(lit(ScalarValue::TimestampNanosecond(None, None))), None),
            (col("x").gt(at(5)), None),
            (col("time").gt(at(5)).or(col("time").lt(at(1))), None),
        ];
        for (filter, expected) in cases {
            let found = TimeRange::of(&filter);
            assert_eq!(found, expected.map(|(min, max)| TimeRange { min, max }), "{filter}");
        }
        let several = [col("time").gt(at(5)), col("x").gt(at(7)), col("time").lt(at(9)), col("time").gt(at(1))];
        assert_eq!(TimeRange::of_all(&several), TimeRange::new(6, 8));
        assert_eq!(TimeRange::of_all(&[]), TimeRange::ALL);
    }

    #[test]
    fn what_a_sort_has_found_leaves_only_some_times() {
        let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
        let schema: SchemaRef =
            Arc::new(Schema::new(vec![Field::new("time", time, false), Field::new("x", DataType::Float64, true)]));
        let known = |max: Precision<ScalarValue>, nulls| {
            let x = ColumnStatistics { max_value: max, null_count: Precision::Exact(nulls), ..Default::default() };
            Statistics { column_statistics: vec![ColumnStatistics::default(), x], ..Statistics::default() }
        };
        let x = |op, value: f64| {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("x", 1));
            binary(column, op, physical_lit(value), &schema).unwrap()
        };
        let both = |op, left, right| binary(left, op, right, &schema).unwrap();
        let null = is_null(Arc::new(Column::new("x", 1))).unwrap();
        // ORDER BY x DESC, time LIMIT n, once enough rows with 100 are found.
        let tied = both(Operator::And, x(Operator::Eq, 100.0), TimeRange::new(i64::MIN, 7).condition(&schema).unwrap());
        let better = both(Operator::Or, Arc::clone(&null), both(Operator::Or, x(Operator::Gt, 100.0), tied));
        let max = |value: f64| Precision::Exact(ScalarValue::Float64(Some(value)));
        let cases = [
            (max(100.0), 0, TimeRange::new(i64::MIN, 7)),
            (max(99.0), 0, TimeRange::NONE),
            (max(101.0), 0, TimeRange::ALL),
            (max(100.0), 1, TimeRange::ALL),
            (Precision::Absent, 0, TimeRange::ALL),
        ];
        for (max, nulls, expected) in cases {
            assert_eq!(TimeRange::implied(&better, &known(max.clone(), nulls)), expected, "{max:?} {nulls}");
        }
        let dynamic: Arc<dyn PhysicalExpr> = Arc::new(DynamicFilterPhysicalExpr::new(vec![], physical_lit(false)));
        assert_eq!(TimeRange::implied(&dynamic, &known(max(1.0), 0)), TimeRange::NONE);
        // A filter says that -0 is not less than 0.
        let zero = known(max(-0.0), 0);
        assert_eq!(TimeRange::implied(&x(Operator::GtEq, 0.0), &zero), TimeRange::ALL);
        assert_eq!(TimeRange::implied(&x(Operator::Gt, 0.0), &zero), TimeRange::NONE);
    }
}
