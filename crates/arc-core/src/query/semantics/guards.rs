//! What a branch of `CASE` guards is computed for its rows alone, and what is true of all texts is NULL for NULL. What
//! DataFusion computes in another way than it is written, and we know no way around, is refused.

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        DFSchema, Result, ScalarValue, plan_err,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{BinaryExpr, Case, Expr, LogicalPlan, Operator, WindowFrameBound, cast, lit},
};

use super::{super::functions::is_backward, casts::value, is};

/// Places that a sketch of percentiles may have. It takes room for all of them at once.
const MAX_CENTROIDS: i64 = 10_000;

/// Keeps each `CASE` of conditions that may fail: as `AND` and `OR`, which DataFusion makes of it, nothing would be computed
/// only where it is asked for (apache/datafusion#25136).
pub(super) fn kept(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Case(case) = expr else { return Ok(Transformed::no(expr)) };
    let is_condition = case.expr.is_none()
        && case.when_then_expr.iter().all(|(_, then)| is(then, schema, |found| *found == DataType::Boolean));
    if !is_condition || !may_fail(&case)? {
        return Ok(Transformed::no(Expr::Case(case)));
    }
    let number = |truth: Box<Expr>| Box::new(cast(*truth, DataType::Int8));
    let numbers = Case {
        expr: None,
        when_then_expr: case.when_then_expr.into_iter().map(|(when, then)| (when, number(then))).collect(),
        else_expr: case.else_expr.map(number),
    };
    Ok(Transformed::yes(cast(Expr::Case(numbers), DataType::Boolean)))
}

/// Returns whether something that a condition of `case` guards may be an error.
fn may_fail(case: &Case) -> Result<bool> {
    let computes = |expr: &Expr| {
        Ok(match expr {
            Expr::Cast(_) | Expr::ScalarFunction(_) => true,
            Expr::BinaryExpr(BinaryExpr { op, .. }) => op.is_numerical_operators(),
            _ => false,
        })
    };
    for (at, (when, then)) in case.when_then_expr.iter().enumerate() {
        if then.exists(computes)? || (at > 0 && when.exists(computes)?) {
            return Ok(true);
        }
    }
    case.else_expr.as_deref().map_or(Ok(false), |otherwise| otherwise.exists(computes))
}

/// Has a text be compared with nothing where it is with the pattern of anything, which DataFusion takes for a test whether
/// there is a text (apache/datafusion#24379).
pub(super) fn matching_anything(expr: Expr) -> Transformed<Expr> {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch),
            right,
        }) if is_anything(&right) => Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, op, Box::new(lit(""))))),
        other => Transformed::no(other),
    }
}

/// Refuses frames that begin or end on the wrong side of their row (apache/datafusion#24902), and structures of random values,
/// of which each use would draw anew (apache/datafusion#24678).
pub(super) fn check(expr: &Expr) -> Result<()> {
    match expr {
        Expr::WindowFunction(function) => {
            let frame = &function.params.window_frame;
            for bound in [&frame.start_bound, &frame.end_bound] {
                let (WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance)) = bound else {
                    continue;
                };
                if is_negative(distance)? {
                    return plan_err!("the frame of {} has a negative bound", function.fun.name());
                }
                if matches!(distance, ScalarValue::UInt64(Some(rows)) if *rows > i64::MAX as u64) {
                    return plan_err!("a bound of the frame of {} is above {}", function.fun.name(), i64::MAX);
                }
            }
            check_centroids(function.fun.name(), &function.params.args)
        }
        Expr::AggregateFunction(function) => check_centroids(function.func.name(), &function.params.args),
        Expr::ScalarFunction(function) if matches!(function.name(), "struct" | "named_struct") => {
            match draws(&function.args)? {
                true => plan_err!("a structure cannot have a value that differs each time, as that of random()"),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn check_centroids(function: &str, arguments: &[Expr]) -> Result<()> {
    let at = match function {
        "approx_percentile_cont" => 2,
        "approx_percentile_cont_with_weight" => 3,
        _ => return Ok(()),
    };
    match arguments.get(at).map(value) {
        None => Ok(()),
        Some(Some(most)) if is_few(&most) => Ok(()),
        Some(_) => plan_err!("{function} takes a constant from 1 to {MAX_CENTROIDS} for its centroids"),
    }
}

fn is_few(centroids: &ScalarValue) -> bool {
    let centroids = centroids.cast_to(&DataType::Int64);
    matches!(centroids, Ok(ScalarValue::Int64(Some(centroids))) if (1..=MAX_CENTROIDS).contains(&centroids))
}

fn is_negative(distance: &ScalarValue) -> Result<bool> {
    match distance.data_type() {
        // UNBOUNDED.
        _ if distance.is_null() => Ok(false),
        DataType::Interval(_) => is_backward(distance),
        number if number.is_numeric() => Ok(*distance < ScalarValue::new_zero(&number)?),
        _ => Ok(false),
    }
}

/// Returns whether something in expressions is another each time. Functions that are held to a limit only claim so.
fn draws(exprs: &[Expr]) -> Result<bool> {
    let draws = |expr: &Expr| {
        Ok(matches!(expr, Expr::ScalarFunction(function) if matches!(function.name(), "random" | "uuid")))
    };
    for expr in exprs {
        if expr.exists(draws)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses groups by what differs each time: a condition on a group would draw anew (apache/datafusion#25415).
pub(super) fn check_groups(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Aggregate(aggregate) if draws(&aggregate.group_expr)? => plan_err!(
            "GROUP BY takes no value that differs each time, as that of random(): compute it in a subquery in FROM"
        ),
        _ => Ok(()),
    }
}

/// Has a test for a truth be what plans run for it: DataFusion knows of the first alone that it is never NULL, and then
/// refuses the plan.
pub(super) fn truth(expr: Expr) -> Transformed<Expr> {
    use Operator::{IsDistinctFrom, IsNotDistinctFrom};
    let (value, op, truth) = match expr {
        Expr::IsTrue(value) => (value, IsNotDistinctFrom, true),
        Expr::IsFalse(value) => (value, IsNotDistinctFrom, false),
        Expr::IsNotTrue(value) => (value, IsDistinctFrom, true),
        Expr::IsNotFalse(value) => (value, IsDistinctFrom, false),
        other => return Transformed::no(other),
    };
    Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(value, op, Box::new(lit(truth)))))
}

fn is_anything(pattern: &Expr) -> bool {
    matches!(pattern, Expr::Literal(ScalarValue::Utf8(Some(pattern)), _) if pattern == ".*")
}
