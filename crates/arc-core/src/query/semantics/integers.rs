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
    matches!((&**left, &**right), (Expr::Column(_), Expr::Literal(..)) | (Expr::Literal(..), Expr::Column(_)))
}
