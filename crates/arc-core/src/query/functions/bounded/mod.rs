//! Functions that make much of little, such as `repeat`, held to what one batch of rows may become.
//!
//! What a function returns is outside of the query's memory pool, so its size is estimated before
//! it is made. Owns the limit and the wrapper; never changes what a function returns, and never
//! guesses a type.

mod concat;
mod estimate;
mod sizes;

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::{cast, concat},
    datatypes::{DataType, FieldRef, Int64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err, plan_err},
    logical_expr::{
        ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        Volatility,
    },
};

pub(super) use self::sizes::bytes as bytes_by_row;
pub(in super::super) use self::sizes::{elements as elements_by_row, total_bytes};
use self::{concat::ConcatOperator, estimate::Growth};
use super::{
    super::{guard::check_levels, planning, sized},
    check_ended,
    pieces::slice,
};

/// Most bytes that one call of a function may make, however much memory there is.
const MAX_BYTES: usize = 64 << 20;

/// Share of a query's memory that one call of a function may take.
const SHARE: usize = 4;

/// Most bytes of a constant that is made while a statement is planned. Rules look at constants, copy
/// and compare them again and again, and none of them asks whether the statement has ended.
const PLANNED_BYTES: u64 = 1 << 20;

/// How many comparisons a call may make for each byte that it might.
const COMPARISONS: u64 = 16;

/// Bytes below which an estimate is as good as what was made.
const SURELY_SMALL: u64 = 64 << 10;

/// Parts that a type may have which a function makes: structures of structures double with a few
/// words each.
const MAX_TYPE_PARTS: usize = 4_096;

/// Returns the most bytes that one call of a function may make, in a query with `memory_bytes`.
pub(in super::super) fn limit(memory_bytes: usize) -> usize {
    MAX_BYTES.min(memory_bytes / SHARE)
}

/// Returns `functions`, with a limit on those that need one.
pub(in super::super) fn bounded(functions: Vec<Arc<ScalarUDF>>, limit_bytes: usize) -> Vec<Arc<ScalarUDF>> {
    functions.into_iter().map(|function| bound(function, limit_bytes as u64)).collect()
}

/// Returns whether a function has a limit.
pub(super) fn has_limit(function: &str) -> bool {
    Growth::of(function).is_some()
}

/// Returns the operator `||` of texts, with a limit.
pub(in super::super) fn concat_operator(limit_bytes: usize) -> Arc<ScalarUDF> {
    bound(Arc::new(ScalarUDF::from(ConcatOperator::new())), limit_bytes as u64)
}

fn bound(inner: Arc<ScalarUDF>, limit_bytes: u64) -> Arc<ScalarUDF> {
    let Some(growth) = Growth::of(inner.name()) else { return inner };
    let mut signature = inner.signature().clone();
    if growth.is_from_counts() {
        // Would otherwise be made once while planning, as a constant that later takes its size for
        // each row.
        signature.volatility = Volatility::Volatile;
    }
    Arc::new(ScalarUDF::from(Bounded { inner, growth, signature, limit_bytes }))
}

/// A function with a limit. Simplifications of the inner function are left out: they would bring it
/// back without one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
    signature: Signature,
    limit_bytes: u64,
}

impl Bounded {
    fn invoke(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        check_ended(&arguments)?;
        if self.growth == Growth::Pad
            && let Some(length) = arguments.args.get_mut(1)
        {
            *length = not_negative(length)?;
        }
        let bytes = self.growth.estimate(&arguments.args, arguments.number_rows)?;
        let is_comparing = self.growth == Growth::Compare;
        let allowed = if is_comparing { self.limit_bytes.saturating_mul(COMPARISONS) } else { self.limit_bytes };
        if bytes <= allowed {
            let made = self.inner.invoke_with_args(arguments)?;
            if bytes > PLANNED_BYTES && planning::is_under_way() && bytes_of(&made)? > PLANNED_BYTES {
                // The call stays in the plan, and is made when it runs.
                return exec_err!("{} would make a constant of more than {PLANNED_BYTES} bytes", self.inner.name());
            }
            if let ColumnarValue::Array(array) = &made
                && !is_comparing
            {
                let made_bytes = if bytes < SURELY_SMALL { bytes } else { total_bytes(array)?.min(bytes) };
                sized::count_made(made_bytes, self.limit_bytes)?;
            }
            return Ok(made);
        }
        let is_array = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Array(_));
        if self.growth.is_loose() && arguments.number_rows > 1 && arguments.args.iter().any(is_array) {
            let (mut made, mut left) = (Vec::new(), allowed);
            self.invoke_in_pieces(&arguments, &mut left, &mut made)?;
            let made: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
            return Ok(ColumnarValue::Array(concat(&made)?));
        }
        self.refuse(bytes, arguments.number_rows, allowed)
    }

    /// Calls the function for a few rows at a time: what an estimate takes for too much may be
    /// little.
    fn invoke_in_pieces(
        &self,
        arguments: &ScalarFunctionArgs,
        left_bytes: &mut u64,
        made: &mut Vec<ArrayRef>,
    ) -> Result<()> {
        let rows = arguments.number_rows;
        let bytes = self.growth.estimate(&arguments.args, rows)?;
        if bytes > self.limit_bytes && rows > 1 {
            let half = rows / 2;
            for (start, length) in [(0, half), (half, rows - half)] {
                let piece = slice(arguments, &(start..start + length));
                self.invoke_in_pieces(&piece, left_bytes, made)?;
            }
            return Ok(());
        }
        if bytes > self.limit_bytes {
            return self.refuse(bytes, rows, self.limit_bytes);
        }
        let array = self.inner.invoke_with_args(arguments.clone())?.into_array(rows)?;
        let bytes = total_bytes(&array)?;
        sized::count_made(bytes, self.limit_bytes)?;
        match left_bytes.checked_sub(bytes) {
            Some(left) => *left_bytes = left,
            None => return self.refuse(self.limit_bytes.saturating_add(bytes), rows, self.limit_bytes),
        }
        made.push(array);
        Ok(())
    }

    fn refuse<T>(&self, bytes: u64, rows: usize, allowed: u64) -> Result<T> {
        let (name, unit) = (self.inner.name(), self.growth.unit());
        exec_err!("{name} would make about {bytes} {unit} for {rows} rows at once; the limit is {allowed}")
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        planning::check()?;
        self.inner.schema_name(arguments)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if self.inner.name() == "array_concat" {
            check_kinds(arguments.arg_fields)?;
        }
        let field = self.inner.return_field_from_args(arguments)?;
        check_levels(field.data_type())?;
        let mut left = MAX_TYPE_PARTS;
        if !is_small(field.data_type(), &mut left) {
            return plan_err!("{} would make a type of more than {MAX_TYPE_PARTS} parts", self.inner.name());
        }
        Ok(field)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.invoke(arguments)
    }
}

fn bytes_of(made: &ColumnarValue) -> Result<u64> {
    match made {
        ColumnarValue::Array(array) => total_bytes(array),
        ColumnarValue::Scalar(value) => Ok(value.size() as u64),
    }
}

/// Returns lengths or positions of which none is negative: these are as good as none, and DataFusion takes some for huge ones.
pub(super) fn not_negative(lengths: &ColumnarValue) -> Result<ColumnarValue> {
    Ok(match lengths {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(length))) => {
            ColumnarValue::Scalar(ScalarValue::Int64(Some((*length).max(0))))
        }
        ColumnarValue::Scalar(_) => lengths.clone(),
        ColumnarValue::Array(array) => {
            let lengths = cast(array, &DataType::Int64)?;
            let lengths = lengths.as_primitive::<Int64Type>().unary::<_, Int64Type>(|length| length.max(0));
            ColumnarValue::Array(Arc::new(lengths))
        }
    })
}

/// Returns an error for lists of several kinds and depths: DataFusion makes them of one depth without making them of one kind, and
/// a kernel panics.
fn check_kinds(fields: &[FieldRef]) -> Result<()> {
    let kinds: Vec<Vec<bool>> = fields.iter().map(|field| kinds(field.data_type())).collect();
    let deepest = kinds.iter().max_by_key(|kinds| kinds.len()).cloned().unwrap_or_default();
    if kinds.iter().any(|kinds| !deepest.ends_with(kinds)) {
        return plan_err!(
            "array_concat of lists of different depths takes one kind of them, List or LargeList: cast the others"
        );
    }
    Ok(())
}

/// Returns of each list in a type whether it is large, from the outermost on.
fn kinds(mut data_type: &DataType) -> Vec<bool> {
    let mut kinds = Vec::new();
    loop {
        data_type = match data_type {
            DataType::List(inner) | DataType::FixedSizeList(inner, _) | DataType::LargeList(inner) => {
                kinds.push(matches!(data_type, DataType::LargeList(_)));
                inner.data_type()
            }
            _ => return kinds,
        };
    }
}

/// Returns whether a type has no more than `left` parts, of which it takes its own.
fn is_small(data_type: &DataType, left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    *left > 0
        && match data_type {
            DataType::List(inner)
            | DataType::LargeList(inner)
            | DataType::ListView(inner)
            | DataType::LargeListView(inner)
            | DataType::FixedSizeList(inner, _)
            | DataType::Map(inner, _) => is_small(inner.data_type(), left),
            DataType::Struct(fields) => fields.iter().all(|field| is_small(field.data_type(), left)),
            DataType::Union(fields, _) => fields.iter().all(|(_, field)| is_small(field.data_type(), left)),
            _ => true,
        }
}
