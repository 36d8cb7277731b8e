//! A value in which both zeros are `0.0`: floats that are equal become the same bits.
//!
//! Not a function that statements can call: rules put it around what DataFusion compares bit by
//! bit. Never changes what a column is called.

use std::sync::{Arc, LazyLock};

use arrow::{
    array::{Array, ArrayRef, AsArray, FixedSizeListArray, GenericListArray, OffsetSizeTrait, StructArray},
    datatypes::{DataType, Field, FieldRef},
};
use datafusion::{
    common::{
        Result, exec_err,
        utils::{normalize_float_zero, normalize_float_zero_scalar},
    },
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};

const NAME: &str = "same_float";

static UNSEEN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| SameFloat::function(true));
static NAMED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| SameFloat::function(false));

#[derive(Debug, PartialEq, Eq, Hash)]
struct SameFloat {
    /// Whether columns are called as if it were not there.
    unseen: bool,
    signature: Signature,
}

impl SameFloat {
    fn function(unseen: bool) -> Arc<ScalarUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { unseen, signature }))
    }
}

/// Returns the function whose column has the name that it had.
#[cfg(feature = "distributed")]
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::clone(&UNSEEN)
}

/// Returns an expression in which floats that are equal are the same, and whose column has the name
/// that it had.
pub(in crate::query) fn same_float(expr: Expr) -> Expr {
    if is_same_float(&expr) { expr } else { UNSEEN.call(vec![expr]) }
}

/// As [`same_float`], with another name: for where both stand side by side.
pub(in crate::query) fn same_float_named(expr: Expr) -> Expr {
    if is_same_float(&expr) { expr } else { NAMED.call(vec![expr]) }
}

fn is_same_float(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.func.name() == NAME)
}

/// Returns whether there may be floats in values of a type.
pub(in crate::query) fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_floats(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => false,
    }
}

impl ScalarUDFImpl for SameFloat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        let [argument] = arguments else { return exec_err!("{NAME} takes one value") };
        Ok(match self.unseen {
            true => argument.schema_name().to_string(),
            false => format!("{NAME}({})", argument.schema_name()),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [data_type] = arguments else { return exec_err!("{NAME} takes one value") };
        Ok(data_type.clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [field] = arguments.arg_fields else { return exec_err!("{NAME} takes one value") };
        Ok(Arc::new(Field::new(NAME, field.data_type().clone(), field.is_nullable())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Ok([value]) = <[ColumnarValue; 1]>::try_from(arguments.args) else {
            return exec_err!("{NAME} takes one value");
        };
        Ok(match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(same_floats(&array)?),
            ColumnarValue::Scalar(scalar) if scalar.data_type().is_nested() => {
                let array = same_floats(&scalar.to_array()?)?;
                ColumnarValue::Scalar(datafusion::scalar::ScalarValue::try_from_array(&array, 0)?)
            }
            ColumnarValue::Scalar(scalar) => ColumnarValue::Scalar(normalize_float_zero_scalar(scalar)),
        })
    }
}

/// Returns the same values with one kind of zero.
pub(in crate::query) fn same_floats(array: &ArrayRef) -> Result<ArrayRef> {
    if !has_floats(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    Ok(match array.data_type() {
        DataType::List(item) => in_list(array.as_list::<i32>(), item)?,
        DataType::LargeList(item) => in_list(array.as_list::<i64>(), item)?,
        DataType::FixedSizeList(item, size) => {
            let lists = array.as_fixed_size_list();
            let values = same_floats(lists.values())?;
            Arc::new(FixedSizeListArray::try_new(Arc::clone(item), *size, values, lists.nulls().cloned())?)
        }
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let columns = structs.columns().iter().map(same_floats).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, structs.nulls().cloned())?)
        }
        _ => normalize_float_zero(array),
    })
}

fn in_list<O: OffsetSizeTrait>(lists: &GenericListArray<O>, item: &FieldRef) -> Result<ArrayRef> {
    let values = same_floats(lists.values())?;
    let lists = GenericListArray::try_new(Arc::clone(item), lists.offsets().clone(), values, lists.nulls().cloned())?;
    Ok(Arc::new(lists))
}
