//! Pushes to what Python reaches: another engine of this process, or a server, whose requests `arc/push.py` makes.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use arc_core::{AdoptOutcome, AdoptReport, CutName, Error, PushOptions, PushReport, PushTarget, Result, Upload};
use bytes::Bytes;
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{engine::Engine, errors::Raise as _, interrupt};

/// Hands the rows of an engine to `to`, an engine or an object that makes requests of a server.
///
/// # Errors
///
/// Those of the engine; what the object raised; what a signal handler raised, which ends the push.
pub(crate) fn run<'py>(
    py: Python<'py>,
    engine: arc_core::Engine,
    to: &Bound<'py, PyAny>,
    bytes_per_second: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut options = PushOptions::default();
    options.bytes_per_second = bytes_per_second;
    let centre = match to.cast::<Engine>() {
        Ok(centre) => Centre::Engine(centre.get().native(py)?.clone()),
        Err(_) => Centre::Server { requests: to.clone().unbind(), raised: Mutex::new(None) },
    };
    let target = Arc::new(Target { centre, is_ended: AtomicBool::new(false) });
    let pushing = Arc::clone(&target);
    let waited = interrupt::run(py, "push", move || engine.push(&*pushing, &options, &mut |_| {}));
    target.is_ended.store(true, Ordering::Relaxed);
    match (waited?, target.take_raised()) {
        (Err(_), Some(raised)) => Err(raised),
        (pushed, _) => report(py, &pushed.raise(py)?),
    }
}

/// Returns the Python form of a push's report.
fn report<'py>(py: Python<'py>, report: &PushReport) -> PyResult<Bound<'py, PyAny>> {
    let parts = (report.cuts, report.files, report.rows, report.bytes, report.sent_bytes);
    py.import("arc.receipts")?.getattr("PushReport")?.call1(parts)
}

/// Where the rows go, until the thread that asked for it stops waiting.
#[derive(Debug)]
struct Target {
    centre: Centre,
    is_ended: AtomicBool,
}

#[derive(Debug)]
enum Centre {
    Engine(arc_core::Engine),
    Server {
        requests: Py<PyAny>,
        /// What a request raised.
        raised: Mutex<Option<PyErr>>,
    },
}

impl Target {
    fn centre(&self) -> Result<&Centre> {
        let reason = || "the push was ended; the next one goes on where it was".to_owned();
        if self.is_ended.load(Ordering::Relaxed) { Err(Error::Closed { reason: reason() }) } else { Ok(&self.centre) }
    }

    fn take_raised(&self) -> Option<PyErr> {
        match &self.centre {
            Centre::Engine(_) => None,
            Centre::Server { raised, .. } => raised.lock().unwrap_or_else(PoisonError::into_inner).take(),
        }
    }
}

/// Makes a request with the interpreter's lock; keeps what it raised.
fn ask<T>(
    requests: &Py<PyAny>,
    raised: &Mutex<Option<PyErr>>,
    request: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> Result<T> {
    let asked = Python::try_attach(|py| request(requests.bind(py)));
    let Some(asked) = asked else { return Err(Error::Closed { reason: "the interpreter ends".to_owned() }) };
    asked.map_err(|error| {
        let reason = error.to_string();
        *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        Error::Internal { reason }
    })
}

/// Returns what names a file in a request.
fn named<'py>(py: Python<'py>, upload: &Upload) -> PyResult<Bound<'py, PyDict>> {
    let names = PyDict::new(py);
    names.set_item("origin", &upload.origin)?;
    names.set_item("cut", &upload.cut)?;
    names.set_item("name", &upload.name)?;
    names.set_item("bytes", upload.bytes)?;
    Ok(names)
}

impl PushTarget for Target {
    fn adopted(&self, origin: &str) -> Result<Option<CutName>> {
        match self.centre()? {
            Centre::Engine(engine) => PushTarget::adopted(engine, origin),
            Centre::Server { requests, raised } => ask(requests, raised, |server| {
                let cut: Option<(u64, String)> = server.call_method1("adopted", (origin,))?.extract()?;
                Ok(cut.map(|(number, id)| CutName { number, id }))
            }),
        }
    }

    fn received(&self, upload: &Upload) -> Result<u64> {
        match self.centre()? {
            Centre::Engine(engine) => PushTarget::received(engine, upload),
            Centre::Server { requests, raised } => ask(requests, raised, |server| {
                server.call_method1("received", (named(server.py(), upload)?,))?.extract()
            }),
        }
    }

    fn send(&self, upload: &Upload, offset: u64, bytes: &Bytes) -> Result<u64> {
        match self.centre()? {
            Centre::Engine(engine) => PushTarget::send(engine, upload, offset, bytes),
            Centre::Server { requests, raised } => ask(requests, raised, |server| {
                let py = server.py();
                server.call_method1("send", (named(py, upload)?, offset, PyBytes::new(py, bytes)))?.extract()
            }),
        }
    }

    fn adopt(&self, adoption: &Bytes) -> Result<AdoptOutcome> {
        match self.centre()? {
            Centre::Engine(engine) => PushTarget::adopt(engine, adoption),
            Centre::Server { requests, raised } => ask(requests, raised, |server| {
                let missing: Vec<String> =
                    server.call_method1("adopt", (PyBytes::new(server.py(), adoption),))?.extract()?;
                Ok(if missing.is_empty() {
                    AdoptOutcome::Adopted(AdoptReport::default())
                } else {
                    AdoptOutcome::Missing(missing)
                })
            }),
        }
    }
}
