//! `+`, `-` and `*` of integers, which fail where DataFusion's begin again from the other end.
//!
//! Not functions that statements can call: a rule puts them in the place of the operators. Never changes what a column is
//! called.

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
enum Kind {
    Add,
    Subtract,
    Multiply,
    Negate,
}

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
    [Kind::Add, Kind::Subtract, Kind::Multiply, Kind::Negate].map(|kind| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Checked { kind, signature }))
    })
});

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
struct Checked {
    kind: Kind,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Add => "add",
            Kind::Subtract => "subtract",
            Kind::Multiply => "multiply",
            Kind::Negate => "negate",
        }
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let operator = match self.kind {
            Kind::Add => Operator::Plus,
            Kind::Subtract => Operator::Minus,
            Kind::Multiply => Operator::Multiply,
            Kind::Negate => Operator::Minus,
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
            (Kind::Add, [left, right]) => apply(left, right, add),
            (Kind::Subtract, [left, right]) => apply(left, right, sub),
            (Kind::Multiply, [left, right]) => apply(left, right, mul),
            (Kind::Negate, [ColumnarValue::Array(value)]) => Ok(ColumnarValue::Array(neg(value)?)),
            (Kind::Negate, [ColumnarValue::Scalar(value)]) => scalar(&neg(&*value.to_array()?)?),
            _ => exec_err!("{} takes other values", self.name()),
        }
    }
}

type Operation = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

fn apply(left: &ColumnarValue, right: &ColumnarValue, operation: Operation) -> Result<ColumnarValue> {
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
