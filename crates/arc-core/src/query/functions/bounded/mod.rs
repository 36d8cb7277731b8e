//! Functions that make much of little, such as `repeat`, held to what one batch of rows may become.
//!
//! What a function returns is outside of the query's memory pool, so its size is estimated before it is made. Owns the
//! limit and the wrapper; never changes what a function returns, and never guesses a type.

mod concat;
mod estimate;
mod lambda;
mod sizes;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::{
    common::{Result, exec_err, plan_err},
    logical_expr::{
        ColumnarValue, Documentation, Expr, HigherOrderUDF, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature, Volatility,
    },
};

pub(in super::super) use self::sizes::total_bytes;
use self::{concat::ConcatOperator, estimate::Growth, lambda::BoundedLambda};

/// Most bytes that one call of a function may make, however much memory there is.
const MAX_BYTES: usize = 64 << 20;

/// Share of a query's memory that one call of a function may take.
const SHARE: usize = 4;

/// How far an estimate that is an upper bound, and mostly far off, may exceed the limit.
const SLACK: u64 = 16;

/// Parts that a type may have which a function makes: structures of structures double with a few words each.
const MAX_TYPE_PARTS: usize = 4_096;

/// Returns the most bytes that one call of a function may make, in a query with `memory_bytes`.
pub(in super::super) fn limit(memory_bytes: usize) -> usize {
    MAX_BYTES.min(memory_bytes / SHARE)
}

/// Returns `functions`, with a limit on those that need one.
pub(in super::super) fn bounded(functions: Vec<Arc<ScalarUDF>>, limit_bytes: usize) -> Vec<Arc<ScalarUDF>> {
    functions.into_iter().map(|function| bound(function, limit_bytes as u64)).collect()
}

/// Returns `functions`, which take lambdas, with a limit.
pub(in super::super) fn bounded_lambdas(
    functions: Vec<Arc<HigherOrderUDF>>,
    limit_bytes: usize,
) -> Vec<Arc<HigherOrderUDF>> {
    let bound = |inner| Arc::new(HigherOrderUDF::from(BoundedLambda { inner, limit_bytes: limit_bytes as u64 }));
    functions.into_iter().map(bound).collect()
}

/// Returns the operator `||` of texts, with a limit.
pub(in super::super) fn concat_operator(limit_bytes: usize) -> Arc<ScalarUDF> {
    bound(Arc::new(ScalarUDF::from(ConcatOperator::new())), limit_bytes as u64)
}

fn bound(inner: Arc<ScalarUDF>, limit_bytes: u64) -> Arc<ScalarUDF> {
    let Some(growth) = Growth::of(inner.name()) else { return inner };
    let mut signature = inner.signature().clone();
    if growth.is_from_counts() {
        // Would otherwise be made once while planning, as a constant that later takes its size for each row.
        signature.volatility = Volatility::Volatile;
    }
    Arc::new(ScalarUDF::from(Bounded { inner, growth, signature, limit_bytes }))
}

/// A function with a limit. Simplifications of the inner function are left out: they would bring it back without one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
    signature: Signature,
    limit_bytes: u64,
}

impl Bounded {
    fn check(&self, arguments: &ScalarFunctionArgs) -> Result<()> {
        let bytes = self.growth.estimate(&arguments.args, arguments.number_rows)?;
        let allowed = if self.growth.is_loose() { self.limit_bytes.saturating_mul(SLACK) } else { self.limit_bytes };
        if bytes <= allowed {
            return Ok(());
        }
        let (name, rows) = (self.inner.name(), arguments.number_rows);
        let unit = self.growth.unit();
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
        let field = self.inner.return_field_from_args(arguments)?;
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
        self.check(&arguments)?;
        self.inner.invoke_with_args(arguments)
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
