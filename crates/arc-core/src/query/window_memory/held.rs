//! Aggregates over windows whose values are long, or take long: `array_agg(v) OVER (ORDER BY v)` copies all values so far
//! for each row. What they make is counted, and they end with their query.

use std::sync::Arc;

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, FieldRef},
};
use datafusion::{
    common::{Result, ScalarValue},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, SetMonotonicity, Signature, WindowFrame, WindowFrameBound,
        WindowFrameUnits,
        expr::WindowFunctionParams,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::AggregateOrderSensitivity,
    },
};

use super::{account::WindowAccount, bytes_of};

/// Aggregates that do no more for each row than look at a few numbers, and can let go of rows.
const BRIEF: [&str; 25] = [
    "any_value",
    "avg",
    "bit_xor",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "first_value",
    "last_value",
    "max",
    "min",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

/// Rows after which a state is measured for the first time; then whenever there are twice as many.
const FIRST_MEASURED: usize = 8_192;

/// For which rows a value is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CopiedFor {
    OneRow,
    /// Those of the values.
    RowsOfValues,
    /// All of the partition, of which a filter may leave few values.
    RowsOfPartition,
}

/// Returns an aggregate over a window that counts what it makes, if that can be much.
pub(super) fn counted(
    inner: &Arc<AggregateUDF>,
    params: &WindowFunctionParams,
    has_any_size: bool,
) -> Option<Arc<AggregateUDF>> {
    let is_brief = BRIEF.contains(&inner.name()) && !params.distinct;
    let is_counted = inner.inner().is::<HeldAggregate>();
    let held = || Arc::new(AggregateUDF::from(HeldAggregate { inner: Arc::clone(inner), copies: copies(params) }));
    (!is_counted && (has_any_size || !is_brief)).then(held)
}

fn copies(params: &WindowFunctionParams) -> CopiedFor {
    let WindowFrame { units, start_bound, end_bound, .. } = &params.window_frame;
    let is_end = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => *units == WindowFrameUnits::Range && params.order_by.is_empty(),
        other => other.is_unbounded(),
    };
    match (is_end(start_bound) && is_end(end_bound), &params.filter) {
        (false, _) => CopiedFor::OneRow,
        (true, None) => CopiedFor::RowsOfValues,
        (true, Some(_)) => CopiedFor::RowsOfPartition,
    }
}

/// Has no reverse, which DataFusion would use where rows are in the opposite order: `array_agg` claims one, and has its values
/// in the order of the rows; for others rows would have to go that they cannot let go of (apache/datafusion#24885).
#[derive(Debug, PartialEq, Eq, Hash)]
struct HeldAggregate {
    inner: Arc<AggregateUDF>,
    copies: CopiedFor,
}

impl HeldAggregate {
    fn held(&self, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        let state = State { account: None, bytes: 0, rows: 0, measured_next: FIRST_MEASURED };
        Box::new(HeldAccumulator { inner, copies: self.copies, state })
    }

    fn around(&self, inner: AggregateUDF) -> AggregateUDF {
        AggregateUDF::from(Self { inner: Arc::new(inner), copies: self.copies })
    }
}

impl AggregateUDFImpl for HeldAggregate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_schema_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(arguments)
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.held(self.inner.accumulator(arguments)?))
    }

    fn create_sliding_accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.held(self.inner.create_sliding_accumulator(arguments)?))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(arguments)
    }

    fn with_beneficial_ordering(self: Arc<Self>, is_ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let inner = AggregateUDF::clone(&self.inner).with_beneficial_ordering(is_ordered)?;
        Ok(inner.map(|inner| Arc::clone(self.around(inner).inner())))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

#[derive(Debug)]
struct HeldAccumulator {
    inner: Box<dyn Accumulator>,
    copies: CopiedFor,
    state: State,
}

impl Accumulator for HeldAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)?;
        self.state.grow(values.first().map_or(0, |values| values.len()), &*self.inner)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.inner.evaluate()?;
        if let Some(account) = &self.state.account {
            let copies = match self.copies {
                CopiedFor::OneRow => 1,
                CopiedFor::RowsOfValues => self.state.rows.saturating_add(1),
                CopiedFor::RowsOfPartition => account.rows().saturating_add(1),
            };
            account.make(bytes_of(&value)?.saturating_mul(copies))?;
        }
        Ok(value)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }
}

/// What an aggregate keeps of the rows that it has seen.
#[derive(Debug)]
struct State {
    account: Option<Arc<WindowAccount>>,
    /// Bytes that the account has.
    bytes: usize,
    rows: usize,
    measured_next: usize,
}

impl State {
    fn grow(&mut self, rows: usize, accumulator: &dyn Accumulator) -> Result<()> {
        if self.account.is_none() {
            self.account = WindowAccount::current();
        }
        self.rows = self.rows.saturating_add(rows);
        if self.rows < self.measured_next {
            return Ok(());
        }
        self.measured_next = self.rows.saturating_mul(2);
        let bytes = accumulator.size();
        if let Some(account) = &self.account {
            account.resize_state(self.bytes, bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.shrink_state(self.bytes);
        }
    }
}
