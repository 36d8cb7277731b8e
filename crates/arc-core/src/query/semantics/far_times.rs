//! Times that stand as texts and other constants beside those of rows.
//!
//! Bounds that no time of nanoseconds can be: `time < '9999-12-31'` is true of each.
//! DataFusion makes both sides of a comparison of one type, and a bound beyond 1677 to 2262 overflows
//! there (apache/datafusion#8336). On which side of all times it is says all that the comparison can say.

use std::{cmp::Ordering, str::FromStr};

use arrow::{
    array::timezone::Tz,
    compute::kernels::cast_utils::string_to_datetime,
    datatypes::{DataType, TimeUnit},
};
use datafusion::{
    common::{
        DFSchema, Result, ScalarValue,
        config::ConfigOptions,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{
        Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, expr::InList,
        expr_rewriter::NamePreserver, lit, not,
    },
    optimizer::AnalyzerRule,
};

use super::{columns, time_texts::completed};

const SECOND_NS: i128 = 1_000_000_000;
const DAY_NS: i128 = 86_400 * SECOND_NS;

/// See the module. Stands before the rule that makes types the same.
#[derive(Debug)]
pub(in super::super) struct FarTimes;

impl AnalyzerRule for FarTimes {
    fn name(&self) -> &'static str {
        "far_times"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let schema = columns(&plan)?;
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr
                    .transform_up(|expr| completed(expr, &schema).transform_data(|expr| Ok(decided(expr, &schema))))?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })
        })
        .map(|plan| plan.data)
    }
}

/// Returns a condition without bounds that are beyond all times.
fn decided(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match compared(&left, op, &right, schema) {
            Some(decided) => Transformed::yes(decided),
            None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        Expr::Between(Between { expr, negated, low, high })
            if (side(&low).is_some() || side(&high).is_some()) && time_type(&expr, schema).is_some() =>
        {
            let bound = |op, bound: &Expr| {
                compared(&expr, op, bound, schema).unwrap_or_else(|| binary_expr((*expr).clone(), op, bound.clone()))
            };
            let within = bound(Operator::GtEq, &low).and(bound(Operator::LtEq, &high));
            Transformed::yes(if negated { not(within) } else { within })
        }
        Expr::InList(InList { expr, list, negated })
            if list.iter().any(|item| side(item).is_some()) && time_type(&expr, schema).is_some() =>
        {
            let none = list.iter().find_map(|item| compared(&expr, Operator::Eq, item, schema));
            let list: Vec<Expr> = list.into_iter().filter(|item| side(item).is_none()).collect();
            match none.filter(|_| list.is_empty()) {
                Some(none) => Transformed::yes(if negated { not(none) } else { none }),
                None => Transformed::yes(Expr::InList(InList { expr, list, negated })),
            }
        }
        other => Transformed::no(other),
    }
}

/// Returns what a comparison is where one side is a time, and the other beyond all times.
fn compared(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    // Whether one is a constant is seen at once; a type is that of all that is below.
    let (time, op, side) = match side(right) {
        Some(side) => (left, op, side),
        None => (right, op.swap()?, side(left)?),
    };
    let zone = time_type(time, schema)?;
    let is_true = match op {
        Operator::Lt | Operator::LtEq => side.is_gt(),
        Operator::Gt | Operator::GtEq => side.is_lt(),
        Operator::Eq => false,
        Operator::NotEq => true,
        Operator::IsDistinctFrom => return Some(lit(true)),
        Operator::IsNotDistinctFrom => return Some(lit(false)),
        _ => return None,
    };
    // NULL where the time is.
    let last = lit(ScalarValue::TimestampNanosecond(Some(i64::MAX), zone));
    Some(binary_expr(time.clone(), if is_true { Operator::LtEq } else { Operator::Gt }, last))
}

/// Returns the zone of a time that depends on the row; `None` if it does not, or is no time of nanoseconds.
fn time_type(expr: &Expr, schema: &DFSchema) -> Option<Option<std::sync::Arc<str>>> {
    if !expr.any_column_refs() {
        return None;
    }
    match expr.get_type(schema).ok()? {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => Some(zone),
        _ => None,
    }
}

/// Returns on which side of all times a constant is, if it is none of them.
fn side(expr: &Expr) -> Option<Ordering> {
    let (least, most) = nanoseconds(expr)?;
    if least > i128::from(i64::MAX) {
        return Some(Ordering::Greater);
    }
    (most < i128::from(i64::MIN)).then_some(Ordering::Less)
}

/// Returns between which nanoseconds since 1970 a constant is.
fn nanoseconds(expr: &Expr) -> Option<(i128, i128)> {
    let exactly = |ns: i128| Some((ns, ns));
    match expr {
        Expr::Literal(value, _) => exactly(of_literal(value)?),
        Expr::Alias(alias) => nanoseconds(&alias.expr),
        Expr::Cast(Cast { expr, field }) if is_time(field.data_type()) => nanoseconds(expr),
        Expr::ScalarFunction(call) => match (call.func.name(), call.args.as_slice()) {
            ("now", []) => exactly(now()),
            ("to_timestamp" | "to_timestamp_seconds" | "to_timestamp_millis" | "to_timestamp_micros", [value]) => {
                let unit = match call.func.name() {
                    "to_timestamp_millis" => SECOND_NS / 1_000,
                    "to_timestamp_micros" => SECOND_NS / 1_000_000,
                    _ => SECOND_NS,
                };
                match value {
                    Expr::Literal(ScalarValue::Int64(Some(value)), _) => exactly(i128::from(*value) * unit),
                    Expr::Literal(ScalarValue::Utf8(Some(text)), _) => exactly(of_text(text)?),
                    _ => None,
                }
            }
            _ => None,
        },
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) = &**right else { return None };
            let (least, most) = nanoseconds(left)?;
            let rest = i128::from(interval.days) * DAY_NS + i128::from(interval.nanoseconds);
            let months = [28, 31].map(|days| i128::from(interval.months) * days * DAY_NS + rest);
            let (short, long) = (months[0].min(months[1]), months[0].max(months[1]));
            match op {
                Operator::Plus => Some((least + short, most + long)),
                Operator::Minus => Some((least - long, most - short)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns about what `now()` is: on which side of all times something is depends on no second.
#[expect(clippy::disallowed_methods, reason = "it decides nothing that the time of the statement would not")]
fn now() -> i128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i128::from(since.as_secs()) * SECOND_NS
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

fn of_literal(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            of_text(text)?
        }
        ScalarValue::Date32(Some(days)) => i128::from(*days) * DAY_NS,
        ScalarValue::Date64(Some(milliseconds)) => i128::from(*milliseconds) * (SECOND_NS / 1_000),
        ScalarValue::TimestampSecond(Some(value), _) => i128::from(*value) * SECOND_NS,
        ScalarValue::TimestampMillisecond(Some(value), _) => i128::from(*value) * (SECOND_NS / 1_000),
        ScalarValue::TimestampMicrosecond(Some(value), _) => i128::from(*value) * (SECOND_NS / 1_000_000),
        ScalarValue::TimestampNanosecond(Some(value), _) => i128::from(*value),
        _ => return None,
    })
}

fn of_text(text: &str) -> Option<i128> {
    let time = string_to_datetime(&Tz::from_str("+00:00").ok()?, text).ok()?;
    Some(i128::from(time.timestamp()) * SECOND_NS + i128::from(time.timestamp_subsec_nanos()))
}
