//! What a verification says: findings, and what was looked at.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::Error;

/// How bad a [`Finding`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// Opening gives something up that was never known to be durable.
    Warning,
    /// What is on disk is not what was written there, or contradicts itself.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Something that a verification noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file or folder.
    pub path: PathBuf,
    /// Where in the file, if that can be told.
    pub offset: Option<u64>,
    /// What was found and what was expected.
    pub what: String,
    /// What to do about it.
    pub advice: &'static str,
}

/// How much a verification looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyTotals {
    /// Live data files.
    pub files: u64,
    /// Rows in them.
    pub rows: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Objects of the manifest.
    pub manifest_objects: u64,
    /// Segments of the log that hold, or may hold, what is not in data files.
    pub segments: u64,
    /// Whole frames in them that are not in data files.
    pub frames: u64,
    /// Bytes of these frames.
    pub frame_bytes: u64,
    /// Points in these frames; 0 where a log is verified that is in use.
    pub points: u64,
}

/// What a verification says. Prints as text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The data directory.
    pub path: PathBuf,
    /// What was noticed, in the order: marker, manifest, data files, log.
    pub findings: Vec<Finding>,
    /// How much was looked at.
    pub totals: VerifyTotals,
    /// The data directory that the manifest names, in an object store.
    pub(super) directory: Option<String>,
}

impl VerifyReport {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), findings: Vec::new(), totals: VerifyTotals::default(), directory: None }
    }

    /// Returns whether there is no finding of severity [`Severity::Error`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// # arc_core::Engine::open(&path)?.close()?;
    /// let report = arc_core::verify(&path)?;
    /// if !report.is_clean() {
    ///     eprintln!("{report}"); // one line for each finding, with its file and byte
    /// }
    /// # assert!(report.is_clean());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// Returns the number of findings of one severity.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data");
    /// use arc_core::Severity;
    ///
    /// # arc_core::Engine::open(&path)?.close()?;
    /// let report = arc_core::verify(&path)?;
    /// assert_eq!((report.count(Severity::Error), report.count(Severity::Warning)), (0, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    pub(super) fn add(
        &mut self,
        severity: Severity,
        path: impl Into<PathBuf>,
        offset: Option<u64>,
        what: impl Into<String>,
        advice: &'static str,
    ) {
        self.findings.push(Finding { severity, path: path.into(), offset, what: what.into(), advice });
    }

    pub(super) fn error(
        &mut self,
        path: impl Into<PathBuf>,
        offset: Option<u64>,
        what: impl Into<String>,
        advice: &'static str,
    ) {
        self.add(Severity::Error, path, offset, what, advice);
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, ", byte {offset}")?;
        }
        write!(f, ": {}", self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.advice) }
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.findings.iter().try_for_each(|finding| writeln!(f, "{finding}"))?;
        let VerifyTotals { files, rows, file_bytes, manifest_objects, segments, frames, frame_bytes, points } =
            self.totals;
        writeln!(f, "manifest: {manifest_objects} objects")?;
        writeln!(f, "data files: {files}, with {rows} rows in {file_bytes} bytes")?;
        writeln!(
            f,
            "log: {frames} frames not in data files, with {points} points in {frame_bytes} bytes of {segments} segments"
        )?;
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let verdict = if self.is_clean() { "clean" } else { "DAMAGED" };
        write!(f, "{}: {verdict} ({errors} errors, {warnings} warnings)", self.path.display())
    }
}

/// Returns an error's text with those of its causes.
pub(crate) fn describe(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
