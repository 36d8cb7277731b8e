//! Integers do not wrap around.

use arrow::datatypes::DataType;
use datafusion::{
    common::{
        DFSchema, Result,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{BinaryExpr, Expr, Operator},
};

use super::{
    super::functions::{checked, checked_negative},
    Phase, is,
};

/// Puts a check into each operation of an expression that needs one.
pub(super) fn checked_within(expr: Expr, schema: &DFSchema, phase: Phase) -> Result<Transformed<Expr>> {
    expr.transform_down(|expr| match expr {
        // Several sums of a column and constants become one sum of the column, and then there is
        // nothing to check.
        Expr::AggregateFunction(mut function) if phase == Phase::First && function.func.name() == "sum" => {
            let mut changed = false;
            for argument in &mut function.params.args {
                if is_shifted(argument) {
                    continue;
                }
                let checked = checked_within(std::mem::take(argument), schema, phase)?;
                changed |= checked.transformed;
                *argument = checked.data;
            }
            Ok(Transformed::new(Expr::AggregateFunction(function), changed, TreeNodeRecursion::Jump))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is(&left, schema, DataType::is_integer) && is(&right, schema, DataType::is_integer) =>
        {
            Ok(match checked(op, (*left).clone(), (*right).clone()) {
                Some(checked) => Transformed::yes(checked),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            })
        }
        Expr::Negative(value) if is(&value, schema, DataType::is_signed_integer) => {
            Ok(Transformed::yes(checked_negative(*value)))
        }
        expr => Ok(Transformed::no(expr)),
    })
}

/// Returns whether an expression is a column and a constant.
fn is_shifted(expr: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus, right }) = expr else { return false };
    match (&**left, &**right) {
        (Expr::Literal(..), other) | (other, Expr::Literal(..)) => is_column(other),
        _ => false,
    }
}

/// Returns whether an expression is a column, or one of narrower integers made as wide as what it
/// is added to.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Column(_)) && cast.field.data_type().is_integer(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;
    use datafusion::prelude::{cast, col, lit};

    use super::*;

    #[test]
    fn a_column_and_a_constant_are_not_checked_within_a_sum_and_all_else_is() {
        let narrow = cast(col("narrow"), DataType::Int64);
        let cases = [
            (col("x") + lit(1_i64), true),
            (lit(1_i64) + col("x"), true),
            (narrow.clone() + lit(1_i64), true),
            (lit(7_i64) + narrow.clone(), true),
            (narrow.clone() - lit(1_i64), false),
            (narrow.clone() + col("x"), false),
            (cast(col("x"), DataType::Float64) + lit(1.0), false),
            (cast(col("x") + col("y"), DataType::Int64) + lit(1_i64), false),
            (narrow, false),
        ];
        for (expr, expected) in cases {
            assert_eq!(is_shifted(&expr), expected, "{expr}");
        }
    }
}
