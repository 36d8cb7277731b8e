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
mod lists;
mod moments;
mod named;
mod numbers_of_texts;
mod patterns;
mod pieces;
mod quantiles;
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

use datafusion::{
    common::Result,
    logical_expr::{AggregateUDF, ScalarFunctionArgs, ScalarUDF, WindowUDF},
};

pub(super) use self::{
    at_zone::at_zone,
    average::sum as sum_as_floats,
    bounded::{concat_operator, elements_by_row, limit, total_bytes},
    checked::{checked, checked_negative},
    extremes::LeastOrGreatest,
    interval_span::{interval_span, is_backward},
    kept::kept,
    named::NAME as NAMED,
    patterns::of_rows as patterns_of_rows,
    same_float::{has_floats, same_float, same_float_named},
    sum::{Summed, total_of_integers, total_of_unsigned},
    theirs::window_as_theirs,
    time_bucket::origin_ns as time_bucket_origin_ns,
    zoned::per_second,
};
use self::{
    average::Average, bounded::bounded, change::ChangeFunction, counts::CountFunction, date_diff::DateDiff,
    epoch::Epoch, extremes::Extreme, named::Named, quantiles::Quantile, sum::Sum, time_bucket::TimeBucket,
    value_at::ValueAt, width_bucket::WidthBucket, xor::BitXor,
};
use super::{coop, planning, unplanned::FunctionKind};

/// Returns DataFusion's functions and ours; none makes much more than `limit_bytes` of little at
/// once.
pub(super) fn all(mut theirs: Vec<Arc<ScalarUDF>>, limit_bytes: usize) -> Vec<Arc<ScalarUDF>> {
    let epochs = [Epoch::new("epoch_ns", 1), Epoch::new("epoch_us", 1_000), Epoch::new("epoch_ms", 1_000_000)];
    let mut functions: Vec<Arc<ScalarUDF>> = epochs.into_iter().map(|epoch| Arc::new(ScalarUDF::from(epoch))).collect();
    functions.push(Arc::new(ScalarUDF::from(TimeBucket::from_monday())));
    functions.push(Arc::new(ScalarUDF::from(DateDiff::default())));
    functions.push(Arc::new(ScalarUDF::from(WidthBucket::default())));
    functions.push(Arc::new(ScalarUDF::from(Named::default())));
    theirs.retain(|function| is_known(function.name()));
    let theirs = bounded(numbers_of_texts::plain(utc::without_zone(theirs)), limit_bytes);
    functions.extend(lists::in_pieces(patterns::in_pieces(theirs)));
    functions.retain(|function| function.name() != "date_bin");
    functions.push(Arc::new(ScalarUDF::from(TimeBucket::date_bin())));
    functions
}

/// Functions that take neither much more memory than they are given, nor much more time than it takes to read that.
const AS_GIVEN: &str = "abs acos acosh arc_named arrow_cast arrow_field arrow_metadata arrow_try_cast arrow_typeof ascii \
                        asin asinh atan atan2 atanh bit_length btrim cast_to_type cbrt ceil character_length chr coalesce \
                        contains cos cosh cot current_date current_time date_bin date_part date_trunc decode degrees \
                        ends_with exp factorial file_row_index find_in_set floor from_unixtime gcd get_field greatest initcap \
                        input_file_name isnan iszero lcm least left ln log log10 log2 lower ltrim make_date make_time \
                        nanvl now nullif nvl nvl2 octet_length pi power radians random regexp_count regexp_instr \
                        regexp_like reverse right round rtrim signum sin sinh split_part sqrt starts_with strpos substr \
                        substr_index tan tanh to_date to_hex to_local_time to_time to_timestamp to_timestamp_micros \
                        to_timestamp_millis to_timestamp_nanos to_timestamp_seconds to_unixtime translate trunc \
                        try_cast_to_type union_extract union_tag upper uuid version with_metadata";

/// Returns whether it is known what one of DataFusion's functions takes: one that nobody has looked at is no function here.
fn is_known(function: &str) -> bool {
    let is_as_given = AS_GIVEN.split_whitespace().any(|name| name == function);
    is_as_given || bounded::has_limit(function) || lists::is_of_lists(function) || patterns::is_of_patterns(function)
}

/// Returns an error once the statement has ended that a function is called for, while it is planned or runs.
fn check_ended(arguments: &ScalarFunctionArgs) -> Result<()> {
    planning::check()?;
    coop::check(&arguments.config_options)
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
        "percentile_cont" => Quantile::over(theirs),
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

#[cfg(test)]
mod tests {
    use datafusion::execution::SessionStateDefaults;

    use super::*;

    #[test]
    fn it_is_known_what_each_function_takes() {
        let theirs = SessionStateDefaults::default_scalar_functions();
        let unknown = theirs.iter().map(|function| function.name()).filter(|name| !is_known(name));
        assert_eq!(unknown.collect::<Vec<_>>(), [""; 0], "are in none of the lists of functions");
    }
}
