//! Texts of times without seconds, where a time is expected: Arrow reads none.

use datafusion::{
    arrow::datatypes::DataType,
    common::{DFSchema, ScalarValue, tree_node::Transformed},
    logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable, TryCast, expr::InList},
};

use crate::model::with_seconds;

/// Adds the seconds to the texts in an expression that are read as times.
pub(super) fn completed(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_time = |expr: &Expr| expr.get_type(schema).is_ok_and(|given| matches!(given, DataType::Timestamp(..)));
    let is_changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            complete(left, || is_time(right)) || complete(right, || is_time(left))
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            complete(low, || is_time(expr)) | complete(high, || is_time(expr))
        }
        Expr::InList(InList { expr, list, .. }) => {
            list.iter_mut().filter_map(|item| complete(item, || is_time(expr)).then_some(())).count() > 0
        }
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            complete(expr, || matches!(field.data_type(), DataType::Timestamp(..)))
        }
        Expr::ScalarFunction(call) if call.func.name().starts_with("to_timestamp") => {
            call.args.first_mut().is_some_and(|text| complete(text, || true))
        }
        _ => false,
    };
    Transformed::new_transformed(expr, is_changed)
}

/// Adds the seconds to a text that has none, if it is one `for_time`; returns whether it was.
fn complete(expr: &mut Expr, for_time: impl FnOnce() -> bool) -> bool {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = expr else { return false };
    let Some(whole) = with_seconds(text).filter(|_| for_time()) else { return false };
    *text = whole;
    true
}
