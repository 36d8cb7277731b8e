//! SQL functions: those that DataFusion lacks and clients of time-series stores use, and limits on
//! those that it has. Pure: no function here sees a table.

mod at_zone;
mod average;
mod bounded;
mod change;
mod checked;
mod counts;
mod date_diff;
mod epoch;
mod extremes;
mod fill;
mod frame;
mod grouped;
mod interval_span;
mod kept;
mod moments;
mod named;
mod numbers_of_texts;
mod patterns;
mod same_float;
mod shifted;
mod sum;
mod theirs;
mod time_bucket;
mod utc;
mod value_at;
mod width_bucket;
mod xor;
mod zoned;

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

pub(super) use self::{
    at_zone::at_zone,
    average::sum as sum_as_floats,
    bounded::{concat_operator, limit, total_bytes},
    checked::{checked, checked_negative},
    extremes::LeastOrGreatest,
    interval_span::{interval_span, is_backward},
    kept::kept,
    named::NAME as NAMED,
    patterns::of_rows as patterns_of_rows,
    same_float::{has_floats, same_float, same_float_named},
    sum::{Summed, total_of_integers, total_of_unsigned},
    time_bucket::origin_ns as time_bucket_origin_ns,
    zoned::per_second,
};
use self::{
    average::Average, bounded::bounded, change::ChangeFunction, counts::CountFunction, date_diff::DateDiff,
    epoch::Epoch, extremes::Extreme, named::Named, sum::Sum, time_bucket::TimeBucket, value_at::ValueAt,
    width_bucket::WidthBucket, xor::BitXor,
};
use super::unplanned::FunctionKind;

/// Returns DataFusion's functions and ours; none makes much more than `limit_bytes` of little at
/// once.
pub(super) fn all(theirs: Vec<Arc<ScalarUDF>>, limit_bytes: usize) -> Vec<Arc<ScalarUDF>> {
    let epochs = [Epoch::new("epoch_ns", 1), Epoch::new("epoch_us", 1_000), Epoch::new("epoch_ms", 1_000_000)];
    let mut functions: Vec<Arc<ScalarUDF>> = epochs.into_iter().map(|epoch| Arc::new(ScalarUDF::from(epoch))).collect();
    functions.push(Arc::new(ScalarUDF::from(TimeBucket::from_monday())));
    functions.push(Arc::new(ScalarUDF::from(DateDiff::default())));
    functions.push(Arc::new(ScalarUDF::from(WidthBucket::default())));
    functions.push(Arc::new(ScalarUDF::from(Named::default())));
    functions.extend(patterns::in_pieces(bounded(numbers_of_texts::plain(utc::without_zone(theirs)), limit_bytes)));
    functions.retain(|function| function.name() != "date_bin");
    functions.push(Arc::new(ScalarUDF::from(TimeBucket::date_bin())));
    functions
}

/// Returns the functions that statements cannot call: rules put them into plans.
#[cfg(feature = "distributed")]
pub(super) fn unnamed(limit_bytes: usize) -> Vec<Arc<ScalarUDF>> {
    let operators = [
        concat_operator(limit_bytes),
        same_float::function(),
        at_zone::function(),
        interval_span::function(),
        kept::function(),
    ];
    checked::functions().iter().chain(&operators).map(Arc::clone).chain(patterns::operators()).collect()
}

/// Returns DataFusion's aggregate functions and ours; none makes one value of more than
/// `limit_bytes`.
pub(super) fn aggregates(theirs: Vec<Arc<AggregateUDF>>, limit_bytes: usize) -> Vec<Arc<AggregateUDF>> {
    let mut functions: Vec<Arc<AggregateUDF>> = theirs.into_iter().map(replaced).collect();
    functions.extend([ValueAt::greatest(), ValueAt::least()].map(|function| Arc::new(AggregateUDF::from(function))));
    functions.extend(ChangeFunction::all().map(|function| Arc::new(AggregateUDF::from(function))));
    functions.extend(CountFunction::all(limit_bytes).map(|function| Arc::new(AggregateUDF::from(function))));
    functions
}

/// Aggregates in which DISTINCT has equal values count once, or of which they count once anyway.
const DISTINCT: [&str; 22] = [
    "any_value",
    "approx_distinct",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "count",
    "first_value",
    "histogram",
    "last_value",
    "max",
    "median",
    "min",
    "mode",
    "percentile_cont",
    "string_agg",
    "sum",
    "var",
    "var_pop",
];

/// Returns what an aggregate does with DISTINCT and `ORDER BY` in its parentheses: all others would
/// pass over DISTINCT.
pub(super) fn aggregate_kind(function: &AggregateUDF) -> FunctionKind {
    let takes_distinct = DISTINCT.contains(&function.name());
    FunctionKind::Aggregate { takes_distinct, takes_order: !function.inner().is::<ValueAt>() }
}

/// Returns what takes the place of one of DataFusion's functions.
fn replaced(theirs: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    Arc::new(match theirs.name() {
        "avg" => Average::over(theirs),
        "bit_xor" => BitXor::over(theirs),
        "sum" => Sum::over(theirs),
        "min" => Extreme::over(theirs, LeastOrGreatest::Least),
        "max" => Extreme::over(theirs, LeastOrGreatest::Greatest),
        _ => match moments::replaced(&theirs) {
            Some(ours) => ours,
            None => return theirs,
        },
    })
}

/// Returns DataFusion's window functions and ours.
pub(super) fn windows(theirs: Vec<Arc<WindowUDF>>) -> Vec<Arc<WindowUDF>> {
    theirs.into_iter().map(shifted::replaced).chain(fill::fills()).collect()
}
