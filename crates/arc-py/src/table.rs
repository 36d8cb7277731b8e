//! A table in memory: built of Python's values, of Arrow's bytes or of an answer, and read as any of them.

use std::{io::Cursor, sync::Arc};

use arc_core::Error;
use arrow::{
    array::{
        ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchOptions,
        StringArray, StructArray, TimestampNanosecondArray, UInt64Array,
    },
    datatypes::{Field, Schema as ArrowSchema, SchemaRef},
    error::ArrowError,
    ipc::{reader::StreamReader, writer::StreamWriter},
};
use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    pybacked::{PyBackedBytes, PyBackedStr},
    types::{PyBytes, PyCapsule, PyDict, PyList, PyTuple},
};
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

use crate::{
    errors::{Raise as _, invalid},
    schema::Schema,
    values,
};

/// A table in memory: an Arrow stream that can be read any number of times.
#[pyclass(frozen, module = "arc")]
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// Builds a table of ``(name, kind, values)``, one for each column, where a value may be ``None``.
    ///
    /// kind: ``"int"``, ``"uint"``, ``"float"``, ``"bool"``, ``"text"``, ``"bytes"``, ``"time"`` (nanoseconds since
    ///     1970) or ``"null"``.
    #[staticmethod]
    fn build(columns: Vec<(String, PyBackedStr, Bound<'_, PyList>)>, rows: usize) -> PyResult<Self> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays = Vec::with_capacity(columns.len());
        for (name, kind, values) in &columns {
            let array = array(kind, values)?;
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema = Arc::new(ArrowSchema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options);
        let batch = batch.map_err(|e| invalid("columns", e.to_string()));
        match columns.first() {
            Some((_, _, first)) => Ok(Self { schema, batches: vec![batch.raise(first.py())?] }),
            None => Ok(Self { schema, batches: Vec::new() }),
        }
    }

    /// Reads an Arrow IPC stream.
    #[staticmethod]
    fn from_ipc(py: Python<'_>, data: PyBackedBytes) -> PyResult<Self> {
        let read = py.detach(|| {
            let reader = StreamReader::try_new(Cursor::new(&*data), None)?;
            let schema = reader.schema();
            Ok(Self { schema, batches: reader.collect::<Result<_, _>>()? })
        });
        read.map_err(|e: ArrowError| Error::InvalidPayload { format: "Arrow", reason: e.to_string() }).raise(py)
    }

    /// Reads all of anything that exports an Arrow stream or array.
    #[staticmethod]
    fn from_arrow(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let batches = crate::arguments::batches(data)?;
        let schema = batches.first().map_or_else(|| Arc::new(ArrowSchema::empty()), RecordBatch::schema);
        Ok(Self { schema, batches })
    }

    /// Returns the table as an Arrow IPC stream.
    fn ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let written = py.detach(|| {
            let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
            for batch in &self.batches {
                writer.write(batch)?;
            }
            writer.into_inner()
        });
        let written = written.map_err(|e: ArrowError| Error::InvalidPayload { format: "Arrow", reason: e.to_string() });
        Ok(PyBytes::new(py, &written.raise(py)?))
    }

    /// The names and types of the columns.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(Arc::clone(&self.schema))
    }

    /// Returns a list of values for each column. Times, dates and spans are whole numbers of their unit, decimals text.
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<Vec<Py<PyAny>>>> {
        let mut columns = Vec::new();
        for at in 0..self.schema.fields().len() {
            let mut column = Vec::with_capacity(self.__len__());
            for batch in &self.batches {
                let Some(array) = batch.columns().get(at) else { continue };
                values::append(py, array, &mut column)?;
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// Returns ``rows`` rows from ``offset`` on, without a copy.
    fn slice(&self, offset: usize, rows: usize) -> Self {
        let (mut skip, mut left) = (offset, rows);
        let mut batches = Vec::new();
        for batch in &self.batches {
            let skipped = skip.min(batch.num_rows());
            let taken = left.min(batch.num_rows() - skipped);
            skip -= skipped;
            left -= taken;
            if taken > 0 {
                batches.push(batch.slice(skipped, taken));
            }
        }
        Self { schema: Arc::clone(&self.schema), batches }
    }

    /// The bytes that the columns take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    /// Raises: pandas and numpy would make one value of the whole.
    #[pyo3(signature = (*_arguments, **_settings))]
    fn __array__(
        &self,
        _arguments: &Bound<'_, PyTuple>,
        _settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'_, PyAny>> {
        Err(PyTypeError::new_err(
            "a table is no array; pandas.DataFrame.from_arrow(table), polars.DataFrame(table) and pyarrow.table(table) read it",
        ))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let item = Field::new_struct("", self.schema.fields().clone(), false);
        let item = item.with_metadata(self.schema.metadata().clone());
        let arrays = self.batches.clone().into_iter().map(|batch| Ok(Arc::new(StructArray::from(batch)) as ArrayRef));
        Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(arrays, Arc::new(item))), requested_schema)?)
    }

    fn __repr__(&self) -> String {
        format!("<arc.Table of {} rows and {} columns>", self.__len__(), self.schema.fields().len())
    }
}

/// Returns a column of Python's values.
fn array(kind: &str, values: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    Ok(match kind {
        "int" => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
        "uint" => Arc::new(UInt64Array::from(values.extract::<Vec<Option<u64>>>()?)),
        "float" => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
        "bool" => Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?)),
        "text" => Arc::new(StringArray::from_iter(values.extract::<Vec<Option<PyBackedStr>>>()?)),
        "bytes" => Arc::new(BinaryArray::from_iter(values.extract::<Vec<Option<PyBackedBytes>>>()?)),
        "time" => {
            let times = TimestampNanosecondArray::from(values.extract::<Vec<Option<i64>>>()?);
            Arc::new(times.with_timezone("UTC"))
        }
        "null" => Arc::new(NullArray::new(values.len())),
        other => return Err(invalid("kind", format!("{other} is not a kind of column"))).raise(values.py()),
    })
}
