//! `+`, `-` and `*` of integers, which fail where DataFusion's begin again from the other end.
//!
//! Not functions that statements can call: a rule puts them in the place of the operators. Never
//! changes what a column is called.

use std::sync::{Arc, LazyLock};

use arrow::{
    array::{Array, ArrayRef, Datum},
    compute::kernels::numeric::{add, mul, neg, sub},
    datatypes::{DataType, Field, FieldRef},
    error::ArrowError,
};
use datafusion::{
    common::{Result, ScalarValue, exec_err},
    logical_expr::{
        ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
        Volatility, binary_expr,
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CheckedKind {
    Add,
    Subtract,
    Multiply,
    Negate,
}

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
    [CheckedKind::Add, CheckedKind::Subtract, CheckedKind::Multiply, CheckedKind::Negate].map(|kind| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(CheckedFunction { kind, signature }))
    })
});

/// Returns all of them.
#[cfg(feature = "distributed")]
pub(super) fn functions() -> &'static [Arc<ScalarUDF>] {
    &*FUNCTIONS
}

/// Returns the operation, checked; or `None` for one that needs no check.
pub(in crate::query) fn checked(operator: Operator, left: Expr, right: Expr) -> Option<Expr> {
    let [add, subtract, multiply, _] = &*FUNCTIONS;
    let function = match operator {
        Operator::Plus => add,
        Operator::Minus => subtract,
        Operator::Multiply => multiply,
        _ => return None,
    };
    Some(function.call(vec![left, right]))
}

/// Returns the negative of an integer, checked.
pub(in crate::query) fn checked_negative(expr: Expr) -> Expr {
    let [.., negate] = &*FUNCTIONS;
    negate.call(vec![expr])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedFunction {
    kind: CheckedKind,
    signature: Signature,
}

impl ScalarUDFImpl for CheckedFunction {
    fn name(&self) -> &'static str {
        match self.kind {
            CheckedKind::Add => "add",
            CheckedKind::Subtract => "subtract",
            CheckedKind::Multiply => "multiply",
            CheckedKind::Negate => "negate",
        }
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let operator = match self.kind {
            CheckedKind::Add => Operator::Plus,
            CheckedKind::Subtract => Operator::Minus,
            CheckedKind::Multiply => Operator::Multiply,
            CheckedKind::Negate => Operator::Minus,
        };
        let operation = match arguments {
            [value] => Expr::Negative(Box::new(value.clone())),
            [left, right] => binary_expr(left.clone(), operator, right.clone()),
            _ => return exec_err!("{} takes one value or two", self.name()),
        };
        Ok(operation.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [data_type, ..] = arguments else { return exec_err!("{} takes a value", self.name()) };
        Ok(data_type.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [field, ..] = arguments.arg_fields else { return exec_err!("{} takes a value", self.name()) };
        let is_nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), field.data_type().clone(), is_nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (self.kind, arguments.args.as_slice()) {
            (CheckedKind::Add, [left, right]) => apply(left, right, add),
            (CheckedKind::Subtract, [left, right]) => apply(left, right, sub),
            (CheckedKind::Multiply, [left, right]) => apply(left, right, mul),
            (CheckedKind::Negate, [ColumnarValue::Array(value)]) => Ok(ColumnarValue::Array(neg(value)?)),
            (CheckedKind::Negate, [ColumnarValue::Scalar(value)]) => scalar(&neg(&*value.to_array()?)?),
            _ => exec_err!("{} takes other values", self.name()),
        }
    }
}

type ArithmeticKernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

fn apply(left: &ColumnarValue, right: &ColumnarValue, operation: ArithmeticKernel) -> Result<ColumnarValue> {
    use ColumnarValue::{Array, Scalar};
    Ok(match (left, right) {
        (Array(left), Array(right)) => Array(operation(left, right)?),
        (Array(left), Scalar(right)) => Array(operation(left, &right.to_scalar()?)?),
        (Scalar(left), Array(right)) => Array(operation(&left.to_scalar()?, right)?),
        (Scalar(left), Scalar(right)) => return scalar(&operation(&left.to_scalar()?, &right.to_scalar()?)?),
    })
}

fn scalar(array: &dyn Array) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(array, 0)?))
}
