//! The columns of an answer.

use arrow::datatypes::SchemaRef;
use pyo3::{prelude::*, types::PyCapsule};

/// The columns of an answer: their names and Arrow types.
///
/// Exports ``__arrow_c_schema__``: ``pyarrow.schema(answer.schema)``.
#[pyclass(frozen, module = "arc")]
#[derive(Debug)]
pub(crate) struct Schema(pub(crate) SchemaRef);

#[pymethods]
impl Schema {
    /// The names of the columns, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The Arrow types of the columns, in order, as text: ``Int64``, ``Timestamp(ns, "UTC")``.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(pyo3_arrow::ffi::to_schema_pycapsule(py, self.0.as_ref())?)
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __repr__(&self) -> String {
        let columns = self.0.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("<arc.Schema {}>", columns.collect::<Vec<_>>().join(", "))
    }
}
