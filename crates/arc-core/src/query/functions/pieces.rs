//! Functions that take rows a few at a time, for their work is more than reading them: whether the query has ended is looked
//! at between.

use std::{fmt::Debug, hash::Hash, ops::Range, sync::Arc};

use arrow::{
    array::Array,
    compute::concat,
    datatypes::{DataType, FieldRef},
};
use datafusion::{
    common::Result,
    logical_expr::{
        ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        simplify::{ExprSimplifyResult, SimplifyContext},
    },
};

use super::{check_ended, theirs::named_as_theirs};

/// Which rows a function takes at a time.
pub(super) trait CutRows: Debug + Eq + Hash + Send + Sync + 'static {
    /// Returns these rows, in order; all of them where it makes no difference. May change the arguments.
    fn pieces(&self, function: &str, arguments: &mut ScalarFunctionArgs) -> Result<Vec<Range<usize>>>;
}

/// Returns a function that takes rows as `cut` says, and is `inner` otherwise.
pub(super) fn wrapped(inner: Arc<ScalarUDF>, cut: impl CutRows) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(InPieces { inner, cut }))
}

/// Calls `work` for each of `pieces`.
pub(super) fn call(
    arguments: ScalarFunctionArgs,
    pieces: &[Range<usize>],
    work: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    check_ended(&arguments)?;
    if pieces.len() < 2 {
        return work(arguments);
    }
    let mut made = Vec::with_capacity(pieces.len());
    for piece in pieces {
        check_ended(&arguments)?;
        made.push(work(slice(&arguments, piece))?.into_array(piece.len())?);
    }
    let made: Vec<&dyn Array> = made.iter().map(AsRef::as_ref).collect();
    Ok(ColumnarValue::Array(concat(&made)?))
}

/// Returns the arguments of some rows.
pub(super) fn slice(arguments: &ScalarFunctionArgs, rows: &Range<usize>) -> ScalarFunctionArgs {
    let mut part = arguments.clone();
    part.number_rows = rows.len();
    for argument in &mut part.args {
        if let ColumnarValue::Array(array) = argument {
            *array = array.slice(rows.start, rows.len());
        }
    }
    part
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InPieces<C> {
    inner: Arc<ScalarUDF>,
    cut: C,
}

impl<C: CutRows> ScalarUDFImpl for InPieces<C> {
    named_as_theirs!();

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        self.inner.schema_name(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn simplify(&self, arguments: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(arguments, context)
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let pieces = self.cut.pieces(self.inner.name(), &mut arguments)?;
        call(arguments, &pieces, |piece| self.inner.invoke_with_args(piece))
    }
}
