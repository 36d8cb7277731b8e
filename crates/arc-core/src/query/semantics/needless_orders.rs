//! Keys of `ORDER BY` in the parentheses of an aggregate that make no difference: left out.
//!
//! DataFusion hands the keys over beside the values. Some of its functions, whose value is the same in any order, end the
//! query where they find more than one column; others count an expression that stands there twice once, and panic over the
//! second column. So it is with what is `DISTINCT ON`.

use datafusion::{
    common::tree_node::Transformed,
    logical_expr::{Distinct, Expr, LogicalPlan},
};

/// Aggregates that give the same in any order, but for how floats are rounded.
const OF_ANY_ORDER: [&str; 32] = [
    "approx_distinct",
    "approx_median",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "grouping",
    "histogram",
    "max",
    "median",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
    "var_samp",
];

/// Returns an aggregate without the keys that make no difference.
pub(super) fn left_out(expr: Expr) -> Transformed<Expr> {
    let Expr::AggregateFunction(mut function) = expr else { return Transformed::no(expr) };
    let keys = &mut function.params.order_by;
    let count = keys.len();
    match OF_ANY_ORDER.contains(&function.func.name()) {
        true => keys.clear(),
        false => leave_out_repeated(keys, |key| &key.expr),
    }
    let changed = keys.len() < count;
    Transformed::new_transformed(Expr::AggregateFunction(function), changed)
}

/// Returns a plan that is `DISTINCT ON` each expression once.
pub(super) fn distinct_once(plan: LogicalPlan) -> Transformed<LogicalPlan> {
    let LogicalPlan::Distinct(Distinct::On(mut distinct)) = plan else { return Transformed::no(plan) };
    let count = distinct.on_expr.len();
    leave_out_repeated(&mut distinct.on_expr, |expr| expr);
    let changed = distinct.on_expr.len() < count;
    Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(distinct)), changed)
}

/// Leaves out keys whose expression stands before them: its equal values come one after the other already.
fn leave_out_repeated<K>(keys: &mut Vec<K>, expr: impl Fn(&K) -> &Expr) {
    let mut place = 0;
    while place < keys.len() {
        let (before, rest) = keys.split_at(place);
        match rest.first().is_some_and(|key| before.iter().any(|other| expr(other) == expr(key))) {
            true => drop(keys.remove(place)),
            false => place += 1,
        }
    }
}
