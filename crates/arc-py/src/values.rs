//! From Arrow's columns to Python's values, for rows without another library.
//!
//! What Python has a type of its own for that needs its modules (times, dates, decimals) is left as whole numbers or text
//! to `python/arc/rows.py`.

use std::sync::Arc;

use arc_core::Error;
use arrow::{
    array::{Array, ArrayRef, AsArray, GenericListArray, MapArray, OffsetSizeTrait, PrimitiveArray, StructArray},
    compute::cast,
    datatypes::{
        ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
        UInt16Type, UInt32Type, UInt64Type,
    },
};
use pyo3::{
    IntoPyObjectExt as _,
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};

use crate::errors::Raise as _;

/// Appends the values of a column.
pub(crate) fn append(py: Python<'_>, array: &ArrayRef, to: &mut Vec<Py<PyAny>>) -> PyResult<()> {
    match array.data_type() {
        DataType::Boolean => each(py, to, array.as_boolean().iter(), |value| value.into_py_any(py)),
        DataType::Int8 => numbers::<Int8Type>(py, array, to),
        DataType::Int16 => numbers::<Int16Type>(py, array, to),
        DataType::Int32 => numbers::<Int32Type>(py, array, to),
        DataType::Int64 => numbers::<Int64Type>(py, array, to),
        DataType::UInt8 => numbers::<UInt8Type>(py, array, to),
        DataType::UInt16 => numbers::<UInt16Type>(py, array, to),
        DataType::UInt32 => numbers::<UInt32Type>(py, array, to),
        DataType::UInt64 => numbers::<UInt64Type>(py, array, to),
        DataType::Float32 => numbers::<Float32Type>(py, array, to),
        DataType::Float64 => numbers::<Float64Type>(py, array, to),
        DataType::Utf8 => each(py, to, array.as_string::<i32>().iter(), |value| value.into_py_any(py)),
        DataType::Binary => {
            each(py, to, array.as_binary::<i32>().iter(), |value| PyBytes::new(py, value).into_py_any(py))
        }
        DataType::List(_) => lists(py, array.as_list::<i32>(), to),
        DataType::LargeList(_) => lists(py, array.as_list::<i64>(), to),
        DataType::Struct(_) => structures(py, array.as_struct(), to),
        DataType::Map(..) => maps(py, array.as_map(), to),
        DataType::Null => {
            to.extend((0..array.len()).map(|_| py.None()));
            Ok(())
        }
        other => append(py, &plainer(py, array, &plain_type(other))?, to),
    }
}

/// Returns the type above that says the same as one that is not.
fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => (**values).clone(),
        DataType::Float16 => DataType::Float32,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Timestamp(..) | DataType::Date64 | DataType::Time64(_) | DataType::Duration(_) => DataType::Int64,
        DataType::Date32 | DataType::Time32(_) => DataType::Int32,
        DataType::FixedSizeList(item, _) | DataType::ListView(item) => DataType::List(Arc::clone(item)),
        _ => DataType::Utf8,
    }
}

fn plainer(py: Python<'_>, array: &ArrayRef, to: &DataType) -> PyResult<ArrayRef> {
    cast(array, to).map_err(|e| Error::Sql { reason: e.to_string() }).raise(py)
}

fn each<T>(
    py: Python<'_>,
    to: &mut Vec<Py<PyAny>>,
    values: impl Iterator<Item = Option<T>>,
    convert: impl Fn(T) -> PyResult<Py<PyAny>>,
) -> PyResult<()> {
    for value in values {
        to.push(value.map_or_else(|| Ok(py.None()), &convert)?);
    }
    Ok(())
}

fn numbers<T>(py: Python<'_>, array: &ArrayRef, to: &mut Vec<Py<PyAny>>) -> PyResult<()>
where
    T: ArrowPrimitiveType,
    T::Native: for<'py> IntoPyObject<'py>,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    each(py, to, array.iter(), |value| value.into_py_any(py))
}

/// Returns the values of a column inside of another, also of the types that `arc/rows.py` makes values of.
fn inner(py: Python<'_>, array: &ArrayRef) -> PyResult<Vec<Py<PyAny>>> {
    let mut values = Vec::with_capacity(array.len());
    append(py, array, &mut values)?;
    let data_type = array.data_type();
    if !data_type.is_temporal() && !data_type.is_decimal() {
        return Ok(values);
    }
    py.import("arc.rows")?.call_method1("convert", (data_type.to_string(), values))?.extract()
}

fn lists<O: OffsetSizeTrait>(py: Python<'_>, array: &GenericListArray<O>, to: &mut Vec<Py<PyAny>>) -> PyResult<()> {
    each(py, to, array.iter(), |list| PyList::new(py, inner(py, &list)?)?.into_py_any(py))
}

/// As pyarrow has them: a key may come twice.
fn maps(py: Python<'_>, array: &MapArray, to: &mut Vec<Py<PyAny>>) -> PyResult<()> {
    each(py, to, array.iter(), |entries| {
        let (keys, values) = (inner(py, entries.column(0))?, inner(py, entries.column(1))?);
        PyList::new(py, keys.into_iter().zip(values))?.into_py_any(py)
    })
}

fn structures(py: Python<'_>, array: &StructArray, to: &mut Vec<Py<PyAny>>) -> PyResult<()> {
    let mut columns = Vec::new();
    for (field, column) in array.fields().iter().zip(array.columns()) {
        columns.push((field.name(), inner(py, column)?.into_iter()));
    }
    for row in 0..array.len() {
        let structure = PyDict::new(py);
        for (name, values) in &mut columns {
            structure.set_item(name.as_str(), values.next())?;
        }
        to.push(if array.is_null(row) { py.None() } else { structure.into_py_any(py)? });
    }
    Ok(())
}
