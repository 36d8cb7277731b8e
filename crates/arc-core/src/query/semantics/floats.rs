//! Both zeros are equal.

use datafusion::{
    common::{DFSchema, Result, ScalarValue, tree_node::Transformed},
    logical_expr::{
        BinaryExpr, Expr, LogicalPlan, Operator,
        expr::{AggregateFunctionParams, InList, Sort, WindowFunctionParams},
    },
};

use super::{
    super::functions::{has_floats, same_float, same_float_named},
    is,
};

/// Functions that compare what they are given bit by bit.
const COMPARE: [&str; 13] = [
    "nullif",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_n",
    "array_remove_all",
    "array_replace",
    "array_replace_n",
    "array_replace_all",
    "array_distinct",
];

/// Has an expression compare zeros as equal, if it would not. What is in it has been looked at.
pub(super) fn with_equal_zeros(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut wrapping = Wrapping { schema, wrapped: false };
    let expr = match expr {
        Expr::InList(list) if wrapping.is_float(&list.expr) => Expr::InList(wrapping.in_list(list)),
        Expr::Case(mut case) if case.expr.as_ref().is_some_and(|base| wrapping.is_float(base)) => {
            case.expr = case.expr.map(|base| Box::new(wrapping.wrap(*base)));
            case.when_then_expr =
                case.when_then_expr.into_iter().map(|(when, then)| (Box::new(wrapping.wrap(*when)), then)).collect();
            Expr::Case(case)
        }
        // DataFusion takes care of plain floats.
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op) && is(&left, schema, |data_type| data_type.is_nested() && has_floats(data_type)) =>
        {
            let (left, right) = (wrapping.wrap(*left), wrapping.wrap(*right));
            Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
        }
        Expr::ScalarFunction(mut function) if COMPARE.contains(&function.func.name()) => {
            function.args = wrapping.wrap_all(function.args);
            Expr::ScalarFunction(function)
        }
        Expr::AggregateFunction(mut function) => {
            let in_group = function.func.supports_within_group_clause();
            wrapping.aggregate(&mut function.params, in_group);
            Expr::AggregateFunction(function)
        }
        Expr::WindowFunction(mut function) => {
            wrapping.window(&mut function.params);
            Expr::WindowFunction(function)
        }
        expr => expr,
    };
    Ok(if wrapping.wrapped { Transformed::yes(expr) } else { Transformed::no(expr) })
}

pub(super) const fn compares(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Makes floats that are equal the same.
struct Wrapping<'a> {
    schema: &'a DFSchema,
    wrapped: bool,
}

impl Wrapping<'_> {
    fn is_float(&self, expr: &Expr) -> bool {
        is(expr, self.schema, has_floats)
    }

    fn wrap(&mut self, expr: Expr) -> Expr {
        if !self.is_float(&expr) {
            return expr;
        }
        let wrapped = same_float(expr.clone());
        self.wrapped |= wrapped != expr;
        wrapped
    }

    fn wrap_all(&mut self, exprs: Vec<Expr>) -> Vec<Expr> {
        exprs.into_iter().map(|expr| self.wrap(expr)).collect()
    }

    /// Keeps a list of constants one, by which files are left out: it gets both zeros.
    fn in_list(&mut self, InList { expr, mut list, negated }: InList) -> InList {
        if !list.iter().all(|item| matches!(item, Expr::Literal(value, _) if !value.data_type().is_nested())) {
            return InList { expr: Box::new(self.wrap(*expr)), list: self.wrap_all(list), negated };
        }
        let missing = list.iter().find_map(|item| other_zero(item).filter(|other| !list.contains(other)));
        self.wrapped |= missing.is_some();
        list.extend(missing);
        InList { expr, list, negated }
    }

    fn aggregate(&mut self, params: &mut AggregateFunctionParams, in_group: bool) {
        if params.distinct {
            params.args = self.wrap_all(std::mem::take(&mut params.args));
        }
        // Those within a group are what the function is about.
        if !in_group {
            self.sorts(&mut params.order_by);
        }
    }

    fn window(&mut self, params: &mut WindowFunctionParams) {
        params.partition_by = self.wrap_all(std::mem::take(&mut params.partition_by));
        self.sorts(&mut params.order_by);
        if params.distinct {
            params.args = self.wrap_all(std::mem::take(&mut params.args));
        }
    }

    fn sorts(&mut self, sorts: &mut Vec<Sort>) {
        let wrapped = std::mem::take(sorts).into_iter().map(|sort| Sort { expr: self.wrap(sort.expr), ..sort });
        *sorts = wrapped.collect();
    }
}

/// Returns the other zero, if a constant is one.
fn other_zero(item: &Expr) -> Option<Expr> {
    let Expr::Literal(value, _) = item else { return None };
    let other = match value {
        ScalarValue::Float64(Some(zero)) if *zero == 0.0 => ScalarValue::Float64(Some(-zero)),
        ScalarValue::Float32(Some(zero)) if *zero == 0.0 => ScalarValue::Float32(Some(-zero)),
        _ => return None,
    };
    Some(Expr::Literal(other, None))
}

/// Has a join compare zeros as equal: it does, but what it finds on one side becomes a list for the
/// other.
pub(super) fn with_equal_keys(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
    let mut wrapped = false;
    for (left, right) in &mut join.on {
        if is(left, join.left.schema(), has_floats) {
            for key in [left, right] {
                let same = same_float_named(key.clone());
                wrapped |= same != *key;
                *key = same;
            }
        }
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(join), wrapped))
}
