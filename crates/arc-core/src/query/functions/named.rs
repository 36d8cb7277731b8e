//! A value under another name, for planning: names leave casts out, and two columns of a step
//! cannot have one name.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::{
    common::{Result, internal_err},
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
        simplify::{ExprSimplifyResult, SimplifyContext},
    },
};

/// The name of the function, which statements have no need to know.
pub(in super::super) const NAME: &str = "arc_named";

/// `arc_named(value, name)` is `value`, and its column is called `name`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Named {
    signature: Signature,
}

impl Default for Named {
    fn default() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Named {
    fn name(&self) -> &'static str {
        NAME
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        match arguments {
            [_, Expr::Literal(name, _)] => Ok(name.try_as_str().flatten().unwrap_or_default().to_owned()),
            _ => internal_err!("{NAME} takes a value and a constant"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [value, _] => Ok(value.clone()),
            _ => internal_err!("{NAME} takes two arguments"),
        }
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match arguments.arg_fields {
            [value, _] => Ok(FieldRef::clone(value)),
            _ => internal_err!("{NAME} takes two arguments"),
        }
    }

    fn simplify(&self, mut arguments: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        arguments.truncate(1);
        match arguments.pop() {
            Some(value) => Ok(ExprSimplifyResult::Simplified(value)),
            None => internal_err!("{NAME} takes two arguments"),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match arguments.args.into_iter().next() {
            Some(value) => Ok(value),
            None => internal_err!("{NAME} takes two arguments"),
        }
    }
}
