//! What a branch of `CASE` guards is computed for its rows alone, and what is true of all texts is NULL for NULL.

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        DFSchema, Result, ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    logical_expr::{BinaryExpr, Case, Expr, Operator, cast, lit},
};

use super::is;

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

fn is_anything(pattern: &Expr) -> bool {
    matches!(pattern, Expr::Literal(ScalarValue::Utf8(Some(pattern)), _) if pattern == ".*")
}
