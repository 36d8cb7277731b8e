//! `string_agg(DISTINCT tag, ',' ORDER BY tag)`: what is sorted by has to be what is collected, and
//! is the same but for the cast that makes a text of a tag.

use arrow::datatypes::DataType;
use datafusion::{
    common::{DFSchema, Result, tree_node::Transformed},
    logical_expr::Expr,
};

use super::is;

/// Sorts the different texts of an aggregate by the texts that it collects.
pub(super) fn sorted_by_themselves(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::AggregateFunction(mut function) = expr else { return Ok(Transformed::no(expr)) };
    let mut changed = false;
    if function.params.distinct {
        let params = &mut function.params;
        for sort in &mut params.order_by {
            let is_text_of = |argument: &&Expr| matches!(argument, Expr::Cast(cast) if *cast.expr == sort.expr);
            let is_tag = is(&sort.expr, schema, |data_type| matches!(data_type, DataType::Dictionary(..)));
            if let Some(text) = params.args.iter().find(is_text_of).filter(|_| is_tag) {
                sort.expr = text.clone();
                changed = true;
            }
        }
    }
    Ok(Transformed::new_transformed(Expr::AggregateFunction(function), changed))
}
