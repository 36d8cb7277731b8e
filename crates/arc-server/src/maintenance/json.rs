//! Reports of the engine as JSON, for programs that run the commands.

use arc_core::{
    BackupReport, BranchReport, CompactionReport, Finding, RepairPlan, RestoreReport, VerifyReport, VerifyTotals,
};
use serde_json::{Value, json};

pub(super) fn verify(report: &VerifyReport) -> Value {
    let VerifyTotals { files, rows, file_bytes, manifest_objects, segments, frames, frame_bytes, points, .. } =
        report.totals;
    json!({
        "path": report.path.display().to_string(),
        "clean": report.is_clean(),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "totals": {
            "files": files,
            "rows": rows,
            "file_bytes": file_bytes,
            "manifest_objects": manifest_objects,
            "segments": segments,
            "frames": frames,
            "frame_bytes": frame_bytes,
            "points": points,
        },
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.to_string(),
        "path": finding.path.display().to_string(),
        "offset": finding.offset,
        "what": finding.what,
        "advice": finding.advice,
    })
}

/// A plan, and what verification says after it was carried out, if it was.
pub(super) fn repair(plan: &RepairPlan, report: Option<&VerifyReport>) -> Value {
    json!({
        "path": plan.path.display().to_string(),
        "steps": plan.steps.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "hopeless": plan.hopeless,
        "applied": report.is_some(),
        "verified": report.map(verify),
    })
}

pub(super) fn backup(report: &BackupReport) -> Value {
    json!({
        "files": report.files,
        "bytes": report.bytes,
        "rows": report.rows,
        "kept_files": report.kept_files,
        "linked_files": report.linked_files,
        "copied_files": report.copied_files,
        "copied_bytes": report.copied_bytes,
        "removed_files": report.removed_files,
        "log_bytes": report.log_bytes,
    })
}

pub(super) fn branch(report: &BranchReport) -> Value {
    json!({
        "number": report.number,
        "files": report.files,
        "bytes": report.bytes,
        "rows": report.rows,
        "linked_files": report.linked_files,
        "copied_files": report.copied_files,
        "copied_bytes": report.copied_bytes,
        "store_copied_files": report.store_copied_files,
        "frames": report.frames,
    })
}

pub(super) fn restore(report: &RestoreReport) -> Value {
    json!({ "files": report.files, "bytes": report.bytes, "rows": report.rows, "frames": report.frames })
}

pub(super) fn unpack(report: &CompactionReport) -> Value {
    json!({ "moved_files": report.moved_files })
}
