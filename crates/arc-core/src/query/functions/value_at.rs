//! `arg_max(value, by)` and `arg_min(value, by)`: the value of the row where `by` is greatest or
//! least.
//!
//! `last(value, time)` and `first(value, time)` are the same, as are `max_by` and `min_by`. Rows
//! without a value or without a `by` do not count. The planner replaces them by
//! `last_value(value ORDER BY by)` and its sister, which are faster; as window functions they run
//! here.

use std::cmp::Ordering;

use arrow::{
    array::{Array, ArrayRef, make_comparator},
    compute::SortOptions,
    datatypes::{DataType, Field, FieldRef},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    functions_aggregate::first_last::{first_value_udaf, last_value_udaf},
    logical_expr::{
        Accumulator, AggregateUDFImpl, Expr, ExprFunctionExt, Signature, Volatility,
        function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs},
        utils::format_state_name,
    },
};

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueAt {
    name: &'static str,
    aliases: Vec<String>,
    greatest: bool,
    signature: Signature,
}

impl ValueAt {
    pub(super) fn greatest() -> Self {
        Self::new("arg_max", ["last", "max_by", "argmax"], true)
    }

    pub(super) fn least() -> Self {
        Self::new("arg_min", ["first", "min_by", "argmin"], false)
    }

    fn new(name: &'static str, aliases: [&str; 3], greatest: bool) -> Self {
        let aliases = aliases.into_iter().map(str::to_owned).collect();
        Self { name, aliases, greatest, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for ValueAt {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [value, _] = arguments else { return exec_err!("{} takes a value and what to order by", self.name) };
        Ok(value.clone())
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let [value, by] = arguments.expr_fields else { return exec_err!("{} takes two arguments", self.name) };
        let none = |field: &FieldRef| ScalarValue::try_from(field.data_type());
        Ok(Box::new(BestRow { value: none(value)?, by: none(by)?, greatest: self.greatest }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let named = arguments.input_fields.iter().zip(["value", "by"]);
        let fields = named.map(|(field, name)| {
            Field::new(format_state_name(arguments.name, name), field.data_type().clone(), true).into()
        });
        Ok(fields.collect())
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        let function = if self.greatest { last_value_udaf() } else { first_value_udaf() };
        Some(Box::new(move |called, _| {
            let mut params = called.params;
            let (Some(by), Some(value)) = (params.args.pop(), params.args.pop()) else {
                return exec_err!("two arguments are needed");
            };
            let counts = value.clone().is_not_null().and(by.clone().is_not_null());
            let counts = match params.filter {
                Some(filter) => filter.and(counts),
                None => counts,
            };
            let call: Expr = function.call(vec![value]);
            call.order_by(vec![by.sort(true, true)]).filter(counts).build()
        }))
    }
}

/// The best row so far.
#[derive(Debug)]
struct BestRow {
    value: ScalarValue,
    by: ScalarValue,
    greatest: bool,
}

impl Accumulator for BestRow {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let [values, by] = columns else { return exec_err!("two columns are needed") };
        let held = self.by.to_array()?;
        let (among, with_held) =
            (make_comparator(by, by, SortOptions::default())?, make_comparator(by, &held, SortOptions::default())?);
        let better = if self.greatest { Ordering::Greater } else { Ordering::Less };
        let (values_set, by_set) = (values.logical_nulls(), by.logical_nulls());
        let mut best: Option<usize> = None;
        for row in 0..by.len() {
            let counts = [&values_set, &by_set].into_iter().flatten().all(|nulls| nulls.is_valid(row));
            if counts && best.is_none_or(|best| among(row, best) == better) {
                best = Some(row);
            }
        }
        if let Some(row) = best.filter(|row| self.by.is_null() || with_held(*row, 0) == better) {
            self.value = ScalarValue::try_from_array(values, row)?;
            self.by = ScalarValue::try_from_array(by, row)?;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), self.by.clone()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size() + self.by.size()
    }
}
