//! The logical plan node.

use std::{cmp::Ordering, fmt, hash::Hash, sync::Arc};

use arrow::datatypes::SchemaRef;
use datafusion::{
    common::{DFSchemaRef, JoinType, Result, internal_err},
    logical_expr::{Expr, LogicalPlan, Operator, UserDefinedLogicalNodeCore, logical_plan::builder::build_join_schema},
};

/// Which row of the right side is matched, of those with equal keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Match {
    /// The nearest later one, else the nearest earlier one.
    pub(super) later: bool,
    /// Whether one of the same time is none.
    pub(super) strictly: bool,
}

impl Match {
    /// Returns what `left operator right` asks for.
    pub(super) fn of(operator: Operator) -> Option<Self> {
        let (later, strictly) = match operator {
            Operator::GtEq => (false, false),
            Operator::Gt => (false, true),
            Operator::LtEq => (true, false),
            Operator::Lt => (true, true),
            _ => return None,
        };
        Some(Self { later, strictly })
    }

    const fn operator(self) -> &'static str {
        match (self.later, self.strictly) {
            (false, false) => ">=",
            (false, true) => ">",
            (true, false) => "<=",
            (true, true) => "<",
        }
    }
}

/// All columns of both sides; of the right side the nearest row with equal keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::query) struct AsOf {
    pub(super) left: LogicalPlan,
    pub(super) right: LogicalPlan,
    /// What has to be equal; then the time. The left side's and the right side's.
    pub(super) by: Vec<(Expr, Expr)>,
    pub(super) nearest: Match,
    /// Whether rows of the left side stay that have no match.
    pub(super) outer: bool,
    schema: DFSchemaRef,
}

impl AsOf {
    pub(super) fn try_new(
        left: LogicalPlan,
        right: LogicalPlan,
        by: Vec<(Expr, Expr)>,
        nearest: Match,
        outer: bool,
    ) -> Result<Self> {
        let join_type = if outer { JoinType::Left } else { JoinType::Inner };
        let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &join_type)?);
        Ok(Self { left, right, by, nearest, outer, schema })
    }

    /// Returns the columns that come out.
    pub(super) fn columns(&self) -> &SchemaRef {
        self.schema.inner()
    }

    /// Returns the node with other inputs.
    pub(super) fn with_inputs(&self, left: LogicalPlan, right: LogicalPlan) -> Result<Self> {
        Self::try_new(left, right, self.by.clone(), self.nearest, self.outer)
    }
}

impl PartialOrd for AsOf {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let parts = |node: &Self| (node.left.clone(), node.right.clone(), node.by.clone(), node.nearest, node.outer);
        parts(self).partial_cmp(&parts(other)).filter(|order| *order != Ordering::Equal || self == other)
    }
}

impl UserDefinedLogicalNodeCore for AsOf {
    fn name(&self) -> &'static str {
        "AsOfJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.by.iter().flat_map(|(left, right)| [left.clone(), right.clone()]).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsOfJoin: {}", if self.outer { "Left" } else { "Inner" })?;
        for (at, (left, right)) in self.by.iter().enumerate() {
            let operator = if at + 1 == self.by.len() { self.nearest.operator() } else { "=" };
            write!(f, "{} {left} {operator} {right}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let (Some(right), Some(left)) = (inputs.pop(), inputs.pop()) else {
            return internal_err!("an AsOfJoin has two inputs");
        };
        let (pairs, []) = exprs.as_chunks::<2>() else { return internal_err!("an AsOfJoin has pairs of expressions") };
        let by = pairs.iter().map(|[left, right]| (left.clone(), right.clone())).collect();
        Self::try_new(left, right, by, self.nearest, self.outer)
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let left = self.left.schema().fields().len();
        let (of_left, of_right): (Vec<usize>, Vec<usize>) = output_columns.iter().partition(|column| **column < left);
        Some(vec![of_left, of_right.into_iter().map(|column| column - left).collect()])
    }
}
