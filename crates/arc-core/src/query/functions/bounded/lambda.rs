//! Functions that take a lambda, held to a limit: what a lambda uses of a row is made again for each element of its lists.

use std::sync::Arc;

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, FieldRef},
};
use datafusion::{
    common::{Result, exec_err},
    logical_expr::{
        ColumnarValue, Documentation, Expr, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
        HigherOrderUDF, HigherOrderUDFImpl, LambdaArgument, LambdaParametersProgress, ValueOrLambda,
    },
};

use super::{
    estimate::products,
    sizes::{PerRow, bytes, elements},
};

/// Bytes that an element is taken to have which a lambda makes and whose type has no width.
const MADE_BYTES: u64 = 64;

/// A function with a limit.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct BoundedLambda {
    pub(super) inner: Arc<HigherOrderUDF>,
    pub(super) limit_bytes: u64,
}

impl BoundedLambda {
    /// Returns about how many bytes it takes to go through the lists.
    fn estimate(&self, arguments: &HigherOrderFunctionArgs) -> Result<u64> {
        let list = arguments.args.iter().find_map(|argument| match argument {
            ValueOrLambda::Value(list) if list.data_type().is_list() => Some(list),
            _ => None,
        });
        let Some(list) = list else { return Ok(0) };
        let (elements, rows) = (elements(list)?, arguments.number_rows);
        let lambdas = arguments.args.iter().zip(&arguments.arg_fields);
        lambdas.into_iter().try_fold(0, |total: u64, (argument, field)| match (argument, field) {
            (ValueOrLambda::Lambda(lambda), ValueOrLambda::Lambda(field)) => {
                let made = match field.data_type().primitive_width() {
                    None if *field.data_type() != DataType::Boolean => elements.total(rows).saturating_mul(MADE_BYTES),
                    _ => 0,
                };
                Ok(total.saturating_add(made).saturating_add(captured(lambda, &elements, rows)?))
            }
            _ => Ok(total),
        })
    }
}

/// Returns how many bytes the columns take that a lambda uses besides its elements.
fn captured(lambda: &LambdaArgument, elements: &PerRow, rows: usize) -> Result<u64> {
    let mut total: u64 = 0;
    let measure = |columns: &[ArrayRef]| {
        for column in columns {
            let of_row = bytes(&ColumnarValue::Array(Arc::clone(column)))?;
            total = total.saturating_add(products(rows, &of_row, 0, elements));
        }
        // It was only to be measured.
        exec_err!("not evaluated")
    };
    let not_evaluated = || exec_err!("not evaluated");
    // Fails in any case: those columns are asked for first.
    let _ = lambda.evaluate(&[&not_evaluated, &not_evaluated], measure);
    Ok(total)
}

impl HigherOrderUDFImpl for BoundedLambda {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        self.inner.schema_name(arguments)
    }

    fn signature(&self) -> &HigherOrderSignature {
        self.inner.signature()
    }

    fn lambda_parameters(
        &self,
        step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        self.inner.lambda_parameters(step, fields)
    }

    fn coerce_values_for_lambdas(&self, fields: &[ValueOrLambda<DataType, DataType>]) -> Result<Option<Vec<DataType>>> {
        self.inner.coerce_values_for_lambdas(fields)
    }

    fn return_field_from_args(&self, arguments: HigherOrderReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(arguments)
    }

    fn clear_null_values(&self) -> bool {
        self.inner.clear_null_values()
    }

    fn invoke_with_args(&self, arguments: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let (bytes, limit) = (self.estimate(&arguments)?, self.limit_bytes);
        if bytes > limit {
            let (name, rows) = (self.inner.name(), arguments.number_rows);
            return exec_err!("{name} would make about {bytes} bytes for {rows} rows at once; the limit is {limit}");
        }
        self.inner.invoke_with_args(arguments)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(&self, arguments: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(arguments)
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_value_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}
