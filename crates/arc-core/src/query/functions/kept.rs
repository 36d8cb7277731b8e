//! A value that is compared as it was computed.
//!
//! Not a function that statements can call: a rule puts it around what DataFusion would compute otherwise.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::{
    common::{Result, exec_err},
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};

const NAME: &str = "kept";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Kept { signature: Signature::any(1, Volatility::Immutable) })));

#[derive(Debug, PartialEq, Eq, Hash)]
struct Kept {
    signature: Signature,
}

#[cfg(feature = "distributed")]
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

/// Returns a value that no rule takes apart.
pub(in crate::query) fn kept(value: Expr) -> Expr {
    FUNCTION.call(vec![value])
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [value] => Ok(value.clone()),
            _ => exec_err!("{NAME} takes one value"),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match arguments.arg_fields {
            [value] => Ok(Arc::clone(value)),
            _ => exec_err!("{NAME} takes one value"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.into_iter().next() {
            Some(value) => Ok(value),
            None => exec_err!("{NAME} takes one value"),
        }
    }
}
