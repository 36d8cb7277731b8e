//! Functions of windows whose values are long: `nth_value(text, 1) OVER ()` copies one text for each row.

use std::{ops::Range, sync::Arc};

use arrow::{
    array::ArrayRef,
    compute::SortOptions,
    datatypes::{DataType, FieldRef},
};
use datafusion::{
    common::{Result, ScalarValue},
    logical_expr::{
        Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
        function::{ExpressionArgs, PartitionEvaluatorArgs, WindowFunctionSimplification, WindowUDFFieldArgs},
        window_state::WindowAggState,
    },
    physical_expr::PhysicalExpr,
};

use super::{super::functions::window_as_theirs, account, bytes_of};

/// A function that counts the values that it makes.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct HeldWindow(pub(super) Arc<WindowUDF>);

impl WindowUDFImpl for HeldWindow {
    window_as_theirs!();

    fn partition_evaluator(&self, arguments: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(HeldEvaluator(self.0.partition_evaluator_factory(arguments)?)))
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.0.reverse_expr() {
            ReversedUDWF::Reversed(inner) => ReversedUDWF::Reversed(Arc::new(WindowUDF::from(Self(inner)))),
            other => other,
        }
    }
}

#[derive(Debug)]
struct HeldEvaluator(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for HeldEvaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.0.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.0.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.0.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let value = self.0.evaluate(values, range)?;
        account::make(bytes_of(&value)?)?;
        Ok(value)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        self.0.evaluate_all_with_rank(rows, ranks)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.0.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.0.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.0.include_rank()
    }
}
