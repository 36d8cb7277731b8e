//! What an import says while it runs and in the end: a bar, rows that were refused, a line for each file.
//!
//! The bar is on standard error and only there if that is a terminal; reports are on standard output.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::Path,
    time::Duration,
};

use arc_core::{
    Precision,
    import::{ImportColumn, ImportEvent, ImportReport, Refusal},
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::timestamp;

/// How many refused rows of a file are shown.
const SHOWN: usize = 10;
const BAR: &str = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
const REDRAW: Duration = Duration::from_millis(200);

/// Where rows go that were refused, if anywhere: a file of JSON lines.
#[derive(Debug)]
pub(super) struct Rejects(Option<BufWriter<File>>);

impl Rejects {
    #[expect(clippy::disallowed_methods, reason = "the file is the caller's, outside of the data directory")]
    pub(super) fn create(path: Option<&Path>) -> io::Result<Self> {
        path.map(File::create).transpose().map(|file| Self(file.map(BufWriter::new)))
    }

    fn write(&mut self, line: &Value) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), |file| writeln!(file, "{line}"))
    }

    /// Returns whether all of them are in the file, if there is one.
    pub(super) fn close(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |mut file| file.flush())
    }
}

/// Shows the import of one file.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    name: String,
    bar: ProgressBar,
    rejects: &'a mut Rejects,
    shown: usize,
    /// What could not be written to the file of refused rows.
    pub(super) failed: Option<io::Error>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(name: &str, bytes: u64, rejects: &'a mut Rejects) -> Self {
        let bar = ProgressBar::new(bytes);
        if let Ok(style) = ProgressStyle::with_template(BAR) {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(REDRAW);
        Self { name: name.to_owned(), bar, rejects, shown: 0, failed: None }
    }

    pub(super) fn event(&mut self, event: ImportEvent<'_>) {
        match event {
            ImportEvent::Progress { bytes, .. } => {
                self.bar.set_message(self.name.clone());
                self.bar.set_position(bytes);
            }
            ImportEvent::Refused(refusal) => self.refused(refusal),
            ImportEvent::AlsoRefused { count, after } => {
                self.note(&json!({ "file": self.name, "after_row": after, "refused": count }));
                self.show(&format!("{count} more behind row {after}, which the store counts and does not name"));
            }
            ImportEvent::Waiting { reason } => self.bar.set_message(format!("{} (waiting: {reason})", self.name)),
            _ => {}
        }
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn refused(&mut self, refusal: &Refusal) {
        let Refusal { row, column, reason, .. } = refusal;
        self.note(&json!({ "file": self.name, "row": row, "column": column, "reason": reason }));
        let position = if column.is_empty() { format!("row {row}") } else { format!("row {row}, column {column}") };
        self.show(&format!("{position}: {reason}"));
    }

    fn note(&mut self, line: &Value) {
        if let Err(error) = self.rejects.write(line) {
            self.failed.get_or_insert(error);
        }
    }

    fn show(&mut self, text: &str) {
        self.shown += 1;
        let line = match self.shown {
            ..=SHOWN => format!("{}, {text}", self.name),
            n if n == SHOWN + 1 => format!("{}: more rows are refused; --rejected FILE lists all of them", self.name),
            _ => return,
        };
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

/// What came of a file, or would.
#[derive(Debug)]
pub(super) struct ImportOutcome<'a> {
    pub(super) name: &'a str,
    pub(super) report: &'a ImportReport,
    /// How many of the rows are no rows of their own, where that is known.
    pub(super) merged: Option<u64>,
    pub(super) is_check: bool,
}

impl ImportOutcome<'_> {
    /// Returns a line of text, and what the columns were taken for.
    pub(super) fn text(&self) -> String {
        let Self { name, report, merged, is_check } = self;
        let stored = if *is_check { "would be stored" } else { "stored" };
        let mut text = format!("{name}: {} rows {stored}, {} refused", report.rows, report.refused);
        if let Some(merged) = merged.filter(|merged| *merged > 0) {
            text.push_str(&format!(", {merged} merged with rows of the same tags and time"));
        }
        if report.rows_before > 0 {
            let before = report.rows_before;
            text.push_str(&format!(
                ", {before} there from an earlier import of this file (to store them again, give another --id)"
            ));
        }
        let columns: Vec<String> = report.types.iter().filter(|column| column.kind != "time").map(one_column).collect();
        if !columns.is_empty() {
            text.push_str(&format!("\n  {}", columns.join(", ")));
        }
        if let Some(times) = &report.time_form {
            text.push_str(&format!("\n  times: {times}"));
        }
        text
    }

    /// Returns it as JSON.
    pub(super) fn as_json(&self) -> Value {
        let Self { name, report, merged, is_check } = self;
        json!({
            "file": name,
            "check": is_check,
            "rows": report.rows,
            "rows_before": report.rows_before,
            "rows_merged": merged,
            "refused": report.refused,
            "refusals": refusals(report),
            "tables": report.tables,
            "columns": report.columns,
            "types": types(report),
            "time_form": report.time_form,
            "time_min": report.times.map(|(oldest, _)| timestamp::format(oldest)),
            "time_max": report.times.map(|(_, newest)| timestamp::format(newest)),
        })
    }
}

fn one_column(column: &ImportColumn) -> String {
    let name = if column.name.is_empty() { "(no name)" } else { &column.name };
    // Why a column is no number is what one asks.
    let decided = column.decided_by.as_ref().filter(|_| column.kind == "string");
    let decided = decided.map(|(row, value)| format!(" (row {row}: {value:?})"));
    format!("{name} {}{}", column.kind, decided.unwrap_or_default())
}

/// Returns what the columns of a file were taken for.
pub(super) fn types(report: &ImportReport) -> Vec<Value> {
    let one = |column: &ImportColumn| {
        let decided = column.decided_by.as_ref();
        json!({
            "column": column.name,
            "type": column.kind,
            "row": decided.map(|(row, _)| *row),
            "value": decided.map(|(_, value)| value),
        })
    };
    report.types.iter().map(one).collect()
}

/// Returns the refused rows that a report names.
pub(super) fn refusals(report: &ImportReport) -> Vec<Value> {
    let one = |refusal: &Refusal| json!({ "row": refusal.row, "column": refusal.column, "reason": refusal.reason });
    report.refusals.iter().map(one).collect()
}

/// Returns how a precision is written in requests.
pub(super) fn precision_name(precision: Precision) -> &'static str {
    match precision {
        Precision::Microsecond => "us",
        Precision::Millisecond => "ms",
        Precision::Second => "s",
        Precision::Minute => "m",
        Precision::Hour => "h",
        _ => "ns",
    }
}
