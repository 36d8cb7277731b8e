//! `lead` and `lag` with `IGNORE NULLS`, over whole partitions.
//!
//! DataFusion's row by row lose count of the rows that have no value (apache/datafusion#25471); over a partition at once
//! they are right.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::ArrayRef,
    compute::SortOptions,
    datatypes::{DataType, FieldRef},
};
use datafusion::{
    common::Result,
    logical_expr::{
        Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
        function::{ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs},
    },
    physical_expr::PhysicalExpr,
};

use super::theirs::window_as_theirs;

/// Returns a window function as it is here.
pub(super) fn replaced(theirs: Arc<WindowUDF>) -> Arc<WindowUDF> {
    match theirs.name() {
        "lead" | "lag" => Arc::new(WindowUDF::from(Shifted(theirs))),
        _ => theirs,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shifted(Arc<WindowUDF>);

impl WindowUDFImpl for Shifted {
    window_as_theirs!();

    fn partition_evaluator(&self, arguments: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        let ignores_nulls = arguments.ignore_nulls();
        let theirs = self.0.partition_evaluator_factory(arguments)?;
        Ok(if ignores_nulls { Box::new(WholePartition(theirs)) } else { theirs })
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.0.reverse_expr() {
            ReversedUDWF::Reversed(theirs) => ReversedUDWF::Reversed(replaced(theirs)),
            other => other,
        }
    }
}

#[derive(Debug)]
struct WholePartition(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for WholePartition {
    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.0.get_range(row, rows)
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }
}
