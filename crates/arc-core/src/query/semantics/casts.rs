//! What is cast is compared as the statement has it.
//!
//! DataFusion compares `CAST(x AS t)` with a constant as `x` with the constant in the type of `x`
//! (apache/datafusion#23095). A cast that brings many values to one is lost there, and so is a part of a constant that is
//! finer than `x`.
//!
//! Days are ranges of times, so that files are left out by them. DataFusion reads them all, or fails when it guesses how many
//! rows there are.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::{
    common::{DFSchema, ScalarValue, tree_node::Transformed},
    logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, Operator, TryCast, and, binary_expr, lit, or},
};

use super::{
    super::functions::{kept, per_second},
    floats::compares,
};

/// Keeps the casts of an expression that compares some with constants.
pub(super) fn as_written(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if let Some(range) = of_days(&expr, schema) {
        return Transformed::yes(range);
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            let (keep_left, keep_right) =
                (is_needed(&left, &[&right], op, schema), is_needed(&right, &[&left], op, schema));
            let side = |side: Box<Expr>, keep| if keep { Box::new(kept(*side)) } else { side };
            let expr = BinaryExpr::new(side(left, keep_left), op, side(right, keep_right));
            Transformed::new_transformed(Expr::BinaryExpr(expr), keep_left || keep_right)
        }
        Expr::InList(mut list)
            if is_needed(&list.expr, &list.list.iter().collect::<Vec<_>>(), Operator::Eq, schema) =>
        {
            list.expr = Box::new(kept(*list.expr));
            Transformed::yes(Expr::InList(list))
        }
        Expr::Between(Between { expr, negated, low, high })
            if is_needed(&expr, &[&low, &high], Operator::LtEq, schema) =>
        {
            Transformed::yes(Expr::Between(Between::new(Box::new(kept(*expr)), negated, low, high)))
        }
        other => Transformed::no(other),
    }
}

/// Returns whether `side` is a cast, or one of a cast, without which its comparison with `others` would be another.
fn is_needed(side: &Expr, others: &[&Expr], op: Operator, schema: &DFSchema) -> bool {
    let compared = match side {
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => field.data_type(),
        _ => return false,
    };
    let mut rest = side;
    while let Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) = rest {
        let Ok(from) = expr.get_type(schema) else { return false };
        let is_needed = match (&from, compared) {
            (DataType::Timestamp(..), _) if *field.data_type() == DataType::Date32 => true,
            // The least number is not the least text, which DataFusion fails at when it guesses how many rows there are.
            (from, _) if field.data_type().is_string() && has_other_order(from) => {
                !from.is_integer() || !matches!(op, Operator::Eq | Operator::NotEq)
            }
            (DataType::Timestamp(from, _), DataType::Timestamp(compared, _)) => {
                let ratio = per_second(*compared) / per_second(*from);
                ratio > 1 && others.iter().any(|other| !other.any_column_refs() && !is_multiple(other, ratio))
            }
            _ => match (scale(&from), scale(field.data_type())) {
                (Some(from), Some(to)) => from > to || from < 0 || to < 0,
                _ => false,
            },
        };
        if is_needed {
            return true;
        }
        rest = expr;
    }
    false
}

/// Returns whether values may have another order than their texts.
fn has_other_order(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_temporal()
}

/// Returns a comparison of the day of a column as one of its times.
fn of_days(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match Day::of(left, schema) {
            Some(day) => day.compared(*op, right),
            None => Day::of(right, schema)?.compared(op.swap()?, left),
        },
        Expr::Between(Between { expr, negated, low, high }) => {
            let day = Day::of(expr, schema)?;
            let (from, to) = if *negated { (Operator::Lt, Operator::Gt) } else { (Operator::GtEq, Operator::LtEq) };
            let (from, to) = (day.compared(from, low)?, day.compared(to, high)?);
            Some(if *negated { or(from, to) } else { and(from, to) })
        }
        _ => None,
    }
}

/// The day in UTC of a column's times.
struct Day<'a> {
    times: &'a Expr,
    unit: TimeUnit,
    zone: Option<Arc<str>>,
}

impl<'a> Day<'a> {
    fn of(expr: &'a Expr, schema: &DFSchema) -> Option<Self> {
        let Expr::Cast(Cast { expr: times, field }) = expr else { return None };
        if *field.data_type() != DataType::Date32 || !matches!(**times, Expr::Column(_)) {
            return None;
        }
        match times.get_type(schema) {
            Ok(DataType::Timestamp(unit, zone)) if zone.as_deref().is_none_or(|zone| zone == "UTC") => {
                Some(Self { times, unit, zone })
            }
            _ => None,
        }
    }

    fn compared(&self, op: Operator, other: &Expr) -> Option<Expr> {
        let Some(ScalarValue::Date32(Some(day))) = value(other) else { return None };
        let ticks = 86_400 * per_second(self.unit);
        let bound = |day: i64| {
            let time = ScalarValue::Int64(Some(day.checked_mul(ticks)?));
            time.cast_to(&DataType::Timestamp(self.unit, self.zone.clone())).ok()
        };
        let (begin, end) = (bound(i64::from(day))?, bound(i64::from(day) + 1)?);
        let is = |op, bound: ScalarValue| binary_expr(self.times.clone(), op, lit(bound));
        Some(match op {
            Operator::Eq => and(is(Operator::GtEq, begin), is(Operator::Lt, end)),
            Operator::NotEq => or(is(Operator::Lt, begin), is(Operator::GtEq, end)),
            Operator::Lt | Operator::GtEq => is(op, begin),
            Operator::LtEq => is(Operator::Lt, end),
            Operator::Gt => is(Operator::GtEq, end),
            _ => return None,
        })
    }
}

/// Returns whether a constant is known to be a multiple of `ratio`.
fn is_multiple(constant: &Expr, ratio: i64) -> bool {
    let ticks = value(constant).and_then(|value| value.cast_to(&DataType::Int64).ok());
    match ticks {
        Some(ScalarValue::Int64(ticks)) => ticks.is_none_or(|ticks| ticks % ratio == 0),
        _ => false,
    }
}

/// Returns the value of a literal, cast or not.
pub(super) fn value(constant: &Expr) -> Option<ScalarValue> {
    match constant {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => value(expr)?.cast_to(Field::data_type(field)).ok(),
        _ => None,
    }
}

/// Returns how many digits a number has behind the point.
fn scale(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => Some(*scale),
        integer if integer.is_integer() => Some(0),
        _ => None,
    }
}
