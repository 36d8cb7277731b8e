//! `ORDER BY` in the parentheses of an aggregate whose value is the same in any order: left out.
//!
//! DataFusion hands the keys over beside the values, and some of its functions end the query where they find more than one
//! column.

use datafusion::{common::tree_node::Transformed, logical_expr::Expr};

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

/// Returns an aggregate without an order that makes no difference.
pub(super) fn left_out(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::AggregateFunction(mut function)
            if !function.params.order_by.is_empty() && OF_ANY_ORDER.contains(&function.func.name()) =>
        {
            function.params.order_by.clear();
            Transformed::yes(Expr::AggregateFunction(function))
        }
        other => Transformed::no(other),
    }
}
