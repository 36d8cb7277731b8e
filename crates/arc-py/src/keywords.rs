//! The keyword arguments of a call that has many of them.
//!
//! In Python each setting stands with its name, so that a function with a dozen of them reads well there. Here they are taken
//! one by one by the struct that they are for. A name that nothing takes is refused, as Python does.

use pyo3::{conversion::FromPyObjectOwned, exceptions::PyTypeError, prelude::*, types::PyDict};

/// The keyword arguments of one call, which are its own to take.
pub(crate) struct Keywords<'py> {
    function: &'static str,
    given: Option<Bound<'py, PyDict>>,
}

impl<'py> Keywords<'py> {
    /// Returns the arguments `given` to `function`, whose name stands in what is raised.
    pub(crate) fn new(function: &'static str, given: Option<Bound<'py, PyDict>>) -> Self {
        Self { function, given }
    }

    /// Takes the argument called `name`; nothing if it was not given, or is `None`.
    pub(crate) fn take<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<Option<T>> {
        let Some(given) = &self.given else { return Ok(None) };
        let Some(value) = given.get_item(name)? else { return Ok(None) };
        given.del_item(name)?;
        if value.is_none() {
            return Ok(None);
        }
        value.extract::<T>().map(Some).map_err(|error| named(name, error.into(), value.py()))
    }

    /// Refuses the first argument that was not taken.
    pub(crate) fn finish(self) -> PyResult<()> {
        match self.given.iter().flat_map(|given| given.keys()).next() {
            None => Ok(()),
            Some(name) => {
                let reason = format!("{}() got an unexpected keyword argument '{name}'", self.function);
                Err(PyTypeError::new_err(reason))
            }
        }
    }
}

/// Says which argument has the wrong type, as for all other arguments.
fn named(name: &str, error: PyErr, py: Python<'_>) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let named = PyTypeError::new_err(format!("argument '{name}': {}", error.value(py)));
    named.set_cause(py, error.cause(py));
    named
}
