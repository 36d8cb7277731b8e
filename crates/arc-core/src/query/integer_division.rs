//! The operator `//`, as DuckDB has it: division of integers without a rest, which is what `/` does
//! here as well. Of floats it is their quotient, there and here.

use datafusion::{
    common::{DFSchema, Result},
    logical_expr::{
        Operator, binary_expr,
        planner::{ExprPlanner, PlannerResult, RawBinaryExpr},
    },
    sql::sqlparser::ast::BinaryOperator,
};

/// See the module.
#[derive(Debug)]
pub(super) struct IntegerDivision;

impl ExprPlanner for IntegerDivision {
    fn plan_binary_op(&self, raw: RawBinaryExpr, _schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        Ok(match raw.op {
            BinaryOperator::DuckIntegerDivide => {
                PlannerResult::Planned(binary_expr(raw.left, Operator::Divide, raw.right))
            }
            _ => PlannerResult::Original(raw),
        })
    }
}
