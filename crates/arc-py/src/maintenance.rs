//! Verification, backups and their restoration, as Python sees them.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyList};

use crate::{errors::Raise, interrupt};

/// Verifies the data directory at ``path``, which nobody may have open, and returns a ``VerifyReport``. Changes nothing.
///
/// Reads every byte of it. Damage is what the report says, and raises nothing.
#[pyfunction]
#[pyo3(text_signature = "(path)")]
pub(crate) fn verify(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    verify_report(py, &interrupt::run(py, "verify", move || arc_core::verify(path))?.raise(py)?)
}

/// Copies the backup at ``source`` to a data directory at ``target``, which has to be absent or empty.
///
/// Compares every byte with its checksum on the way and raises ``CorruptError``, naming the file, where one is damaged.
#[pyfunction]
#[pyo3(text_signature = "(source, target)")]
pub(crate) fn restore(py: Python<'_>, source: PathBuf, target: PathBuf) -> PyResult<()> {
    interrupt::run(py, "restore", move || arc_core::restore(source, target))?.raise(py).map(drop)
}

/// Returns the Python form of a verification's report.
pub(crate) fn verify_report<'py>(py: Python<'py>, report: &arc_core::VerifyReport) -> PyResult<Bound<'py, PyAny>> {
    let receipts = py.import("arc.receipts")?;
    let class = receipts.getattr("Finding")?;
    let findings = PyList::empty(py);
    for finding in &report.findings {
        let path = finding.path.as_os_str();
        findings.append(class.call1((finding.severity.to_string(), path, finding.offset, finding.what.as_str()))?)?;
    }
    let totals = report.totals;
    let parts = (report.is_clean(), findings, totals.files, totals.rows, report.to_string());
    receipts.getattr("VerifyReport")?.call1(parts)
}

/// Returns the Python form of a backup's report.
pub(crate) fn backup_report<'py>(py: Python<'py>, report: &arc_core::BackupReport) -> PyResult<Bound<'py, PyAny>> {
    let copies = (report.kept_files, report.linked_files, report.copied_files, report.removed_files);
    let parts = (report.files, report.rows, report.bytes, copies.0, copies.1, copies.2, copies.3, report.log_bytes);
    py.import("arc.receipts")?.getattr("BackupReport")?.call1(parts)
}
