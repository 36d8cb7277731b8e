//! `mode` and `histogram`: what the values of a group tell once it is known how often each is
//! there.
//!
//! `mode` is the value that is there most often, the least of them where several are; `histogram`
//! is all values in order, each with its count. Nulls do not count, and zeros are one value
//! whatever their sign; of no value at all both are null.

use std::{cmp::Reverse, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, Float64Array, ListArray, MapArray, StructArray, UInt64Array},
    buffer::OffsetBuffer,
    datatypes::{DataType, Field, FieldRef, Fields, Float64Type, UInt64Type},
    row::{RowConverter, SortField},
};
use datafusion::{
    common::{DataFusionError, Result, ScalarValue, exec_err, plan_err},
    logical_expr::{
        Accumulator, AggregateUDFImpl, Signature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::format_state_name,
    },
};
use hashbrown::HashMap;

/// Which of the functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CountKind {
    Mode,
    Histogram,
}

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CountFunction {
    kind: CountKind,
    signature: Signature,
    /// Most bytes that a histogram may be made of.
    limit_bytes: usize,
}

impl CountFunction {
    /// Returns both; no histogram is made of more than `limit_bytes`.
    pub(super) fn all(limit_bytes: usize) -> [Self; 2] {
        [CountKind::Mode, CountKind::Histogram].map(|kind| {
            let signature = Signature::user_defined(Volatility::Immutable);
            Self { kind, signature, limit_bytes }
        })
    }
}

impl AggregateUDFImpl for CountFunction {
    fn name(&self) -> &'static str {
        match self.kind {
            CountKind::Mode => "mode",
            CountKind::Histogram => "histogram",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let plain = |data_type: &DataType| match data_type {
            DataType::Dictionary(_, values) => (**values).clone(),
            other => other.clone(),
        };
        match arguments {
            [values] if !values.is_nested() => Ok(vec![plain(values)]),
            _ => plan_err!("{} takes one column of numbers, texts, booleans or times", self.name()),
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [values] = arguments else { return plan_err!("{} takes one column", self.name()) };
        Ok(match self.kind {
            CountKind::Mode => values.clone(),
            CountKind::Histogram => DataType::Map(entries_field(values), false),
        })
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let [values] = arguments.expr_fields else { return plan_err!("{} takes one column", self.name()) };
        let data_type = values.data_type().clone();
        Ok(Box::new(ValueCounts {
            kind: self.kind,
            is_distinct: arguments.is_distinct,
            converter: RowConverter::new(vec![SortField::new(data_type.clone())])?,
            data_type,
            counts: HashMap::default(),
            key_bytes: 0,
            limit_bytes: if self.kind == CountKind::Histogram { self.limit_bytes } else { usize::MAX },
        }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let [values] = arguments.input_fields else { return plan_err!("{} takes one column", self.name()) };
        let list = |name: &str, item: &DataType| {
            let item = Field::new_list_field(item.clone(), true);
            Field::new_list(format_state_name(arguments.name, name), item, true).into()
        };
        Ok(vec![list("values", values.data_type()), list("counts", &DataType::UInt64)])
    }
}

/// Returns what a histogram is a list of.
fn entries_field(values: &DataType) -> FieldRef {
    Arc::new(Field::new_struct("entries", entry_fields(values), false))
}

fn entry_fields(values: &DataType) -> Fields {
    vec![Field::new("key", values.clone(), false), Field::new("value", DataType::UInt64, true)].into()
}

/// How often each value of one group is there.
struct ValueCounts {
    kind: CountKind,
    /// Whether each value counts once.
    is_distinct: bool,
    data_type: DataType,
    converter: RowConverter,
    /// By the value in a form whose bytes have the order of the values.
    counts: HashMap<Box<[u8]>, u64, foldhash::fast::FixedState>,
    /// Bytes of the values in that form.
    key_bytes: usize,
    limit_bytes: usize,
}

impl std::fmt::Debug for ValueCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counted").field("kind", &self.kind).field("values", &self.counts.len()).finish_non_exhaustive()
    }
}

impl ValueCounts {
    /// Calls `change` for the count of each value that is not null, with its index in `values`.
    fn for_each(&mut self, values: &ArrayRef, mut change: impl FnMut(&mut u64, usize)) -> Result<()> {
        let values = without_negative_zero(values);
        let rows = self.converter.convert_columns(std::slice::from_ref(&values))?;
        let nulls = values.logical_nulls();
        for (index, row) in rows.iter().enumerate() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
                continue;
            }
            let key = row.as_ref();
            match self.counts.get_mut(key) {
                Some(count) => change(count, index),
                None => {
                    let mut count = 0;
                    change(&mut count, index);
                    self.key_bytes += key.len();
                    self.counts.insert(key.into(), count);
                }
            }
        }
        let bytes = self.size();
        if bytes > self.limit_bytes {
            let (values, limit) = (self.counts.len(), self.limit_bytes);
            return exec_err!("histogram has about {bytes} bytes of {values} different values; the limit is {limit}");
        }
        Ok(())
    }

    /// Returns values in the form of keys as they are in columns.
    fn array<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let arrays = self.converter.convert_rows(keys.map(|key| parser.parse(key)))?;
        arrays.into_iter().next().ok_or_else(|| DataFusionError::Internal("no column of values".to_owned()))
    }

    /// Returns the values that are there, and how often they count.
    fn counts(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let most = if self.is_distinct { 1 } else { u64::MAX };
        self.counts.iter().filter(|(_, count)| **count > 0).map(move |(key, count)| (&**key, most.min(*count)))
    }

    fn mode(&self) -> Result<ScalarValue> {
        match self.counts().max_by_key(|(key, count)| (*count, Reverse(*key))) {
            Some((key, _)) => ScalarValue::try_from_array(&self.array(std::iter::once(key))?, 0),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn histogram(&self) -> Result<ScalarValue> {
        let mut counts: Vec<(&[u8], u64)> = self.counts().collect();
        counts.sort_unstable();
        let entries: Vec<ArrayRef> = vec![
            self.array(counts.iter().map(|(key, _)| *key))?,
            Arc::new(UInt64Array::from_iter_values(counts.iter().map(|(_, count)| *count))),
        ];
        if counts.is_empty() {
            return ScalarValue::try_from(&DataType::Map(entries_field(&self.data_type), false));
        }
        let entries = StructArray::try_new(entry_fields(&self.data_type), entries, None)?;
        let offsets = OffsetBuffer::from_lengths([entries.len()]);
        let map = MapArray::try_new(entries_field(&self.data_type), offsets, entries, None, false)?;
        Ok(ScalarValue::Map(Arc::new(map)))
    }
}

/// Returns the same values, with zeros that have no sign.
fn without_negative_zero(values: &ArrayRef) -> ArrayRef {
    match values.as_primitive_opt::<Float64Type>() {
        Some(floats) => Arc::new(floats.unary::<_, Float64Type>(|float| float + 0.0) as Float64Array),
        None => Arc::clone(values),
    }
}

impl Accumulator for ValueCounts {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        columns.iter().try_for_each(|values| self.for_each(values, |count, _| *count += 1))
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        columns.iter().try_for_each(|values| self.for_each(values, |count, _| *count = count.saturating_sub(1)))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts] = states else { return exec_err!("two states are needed") };
        for (values, counts) in values.as_list::<i32>().iter().zip(counts.as_list::<i32>().iter()) {
            if let (Some(values), Some(counts)) = (values, counts) {
                let counts = counts.as_primitive::<UInt64Type>().values();
                self.for_each(&values, |count, index| *count += counts.get(index).copied().unwrap_or(0))?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.array(self.counts.keys().map(AsRef::as_ref))?;
        let counts = UInt64Array::from_iter_values(self.counts.values().copied());
        Ok(vec![list(values), list(Arc::new(counts))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.kind {
            CountKind::Mode => self.mode(),
            CountKind::Histogram => self.histogram(),
        }
    }

    fn size(&self) -> usize {
        let slots = self.counts.capacity() * (size_of::<(Box<[u8]>, u64)>() + 1);
        size_of_val(self) + self.converter.size() + slots + self.key_bytes
    }
}

/// Makes a list of all values of an array.
pub(super) fn list(items: ArrayRef) -> ScalarValue {
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    ScalarValue::List(Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([items.len()]), items, None)))
}
