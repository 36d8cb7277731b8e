//! What a condition over several columns says about one of them.

use std::sync::Arc;

use datafusion::{
    common::Result,
    logical_expr::Operator,
    physical_expr::{
        PhysicalExpr,
        expressions::{BinaryExpr, DynamicFilterPhysicalExpr},
        utils::collect_columns,
    },
};

/// Returns a condition on nothing but a column that holds wherever `condition` holds at this
/// moment, if there is one.
///
/// Rows that fail it need no other column: of a sort by several columns with a limit, most rows
/// fail by the first.
pub(super) fn relaxed(condition: &Arc<dyn PhysicalExpr>, column: &str) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    if let Some(dynamic) = condition.downcast_ref::<DynamicFilterPhysicalExpr>() {
        return relaxed(&dynamic.current()?, column);
    }
    let join = |left, op, right| Some(Arc::new(BinaryExpr::new(left, op, right)) as Arc<dyn PhysicalExpr>);
    if let Some(binary) = condition.downcast_ref::<BinaryExpr>()
        && [Operator::And, Operator::Or].contains(binary.op())
    {
        return Ok(match (relaxed(binary.left(), column)?, *binary.op(), relaxed(binary.right(), column)?) {
            (Some(left), op, Some(right)) => join(left, op, right),
            (one, Operator::And, other) => one.or(other),
            _ => None,
        });
    }
    let columns = collect_columns(condition);
    let is_on_it = !columns.is_empty() && columns.iter().all(|found| found.name() == column);
    Ok(is_on_it.then(|| Arc::clone(condition)))
}

#[cfg(test)]
mod tests {
    use datafusion::physical_expr::expressions::{Column, is_null, lit};

    use super::*;

    #[test]
    fn what_is_said_of_other_columns_is_left_out() {
        let column = |name: &str, index| Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>;
        let compare = |left, op, right: i64| Arc::new(BinaryExpr::new(left, op, lit(right))) as Arc<dyn PhysicalExpr>;
        let join = |left, op, right| Arc::new(BinaryExpr::new(left, op, right)) as Arc<dyn PhysicalExpr>;
        let x = |op, value| compare(column("x", 0), op, value);
        let y = |op, value| compare(column("y", 1), op, value);
        let tied = join(x(Operator::Eq, 5), Operator::And, y(Operator::Lt, 7));
        let better = join(is_null(column("x", 0)).unwrap(), Operator::Or, x(Operator::Gt, 5));
        let sort = join(better, Operator::Or, tied);
        let dynamic: Arc<dyn PhysicalExpr> = Arc::new(DynamicFilterPhysicalExpr::new(vec![], Arc::clone(&sort)));
        let cases = [
            (Arc::clone(&sort), "x", Some("x@0 IS NULL OR x@0 > 5 OR x@0 = 5")),
            (sort, "y", None),
            (Arc::clone(&dynamic), "x", Some("x@0 IS NULL OR x@0 > 5 OR x@0 = 5")),
            (join(dynamic, Operator::And, y(Operator::Gt, 1)), "y", Some("y@1 > 1")),
            (compare(join(column("x", 0), Operator::Plus, column("y", 1)), Operator::Gt, 1), "x", None),
            (lit(true), "x", None),
        ];
        for (condition, column, expected) in cases {
            let found = relaxed(&condition, column).unwrap().map(|found| found.to_string());
            assert_eq!(found.as_deref(), expected, "{condition} {column}");
        }
    }
}
