//! The log after the data files: its bytes, and what its frames say.

use std::path::Path;

use super::{REPAIR, Severity, VerifyReport};
use crate::{
    Result, SequenceNumber,
    catalog::ManifestState,
    engine::{FrameChecker, GIVEN_UP},
    wal::{Survey, survey},
};

/// Checks all frames that opening would replay on top of `manifest`, and decodes them. Those up to
/// `logged` have to be there.
pub(super) fn check(
    vfs: &dyn crate::vfs::Vfs,
    dir: &Path,
    manifest: &ManifestState,
    logged: SequenceNumber,
    report: &mut VerifyReport,
) -> Result<()> {
    if is_missing(vfs, dir) {
        if logged > manifest.flushed {
            report.error(dir, None, format!("it is missing, but the backup had frames up to {logged}"), REPAIR);
        }
        return Ok(());
    }
    let mut checker = FrameChecker::new(manifest);
    let mut points = 0;
    let mut bad = Vec::new();
    let mut given_up = 0;
    let found = survey(vfs, dir, manifest.flushed, logged, &mut |location, frame| {
        given_up += u64::from(frame.kind == GIVEN_UP);
        match checker.check(&frame) {
            Ok(count) => points += count,
            Err(reason) => bad.push((location.clone(), format!("frame {}: {reason}", frame.seq))),
        }
        Ok(())
    })?;
    report.totals.points += points;
    report_survey(&found, report);
    if given_up > 0 {
        let what = format!("a repair has given up {given_up} frames of the log");
        report.add(Severity::Info, dir, None, what, "the next flush makes an end of their places");
    }
    for (location, what) in bad {
        report.error(location.path, Some(location.offset), what, REPAIR);
    }
    Ok(())
}

/// Checks the frames after `flushed` through `logged`, which all have to be there, but not what
/// they say.
pub(super) fn check_bytes(
    vfs: &dyn crate::vfs::Vfs,
    dir: &Path,
    flushed: SequenceNumber,
    logged: SequenceNumber,
    report: &mut VerifyReport,
) -> Result<()> {
    let mut found = survey(vfs, dir, flushed, logged, &mut |_, _| Ok(()))?;
    // Frames are being appended meanwhile.
    found.torn = None;
    report_survey(&found, report);
    Ok(())
}

fn report_survey(found: &Survey, report: &mut VerifyReport) {
    report.totals.segments += found.segments.len() as u64;
    report.totals.frames += found.frames;
    report.totals.frame_bytes += found.bytes;
    for gap in &found.gaps {
        let what = match gap.last.0 - gap.first.0 {
            0 => gap.reason.clone(),
            more => format!("{}; the {more} frames after it are gone as well", gap.reason),
        };
        report.error(&gap.location.path, Some(gap.location.offset), what, REPAIR);
    }
    if let Some(torn) = &found.torn {
        let what = "the log ends here, but not its segment: a crash cut off what follows, and nothing proves that it was synced";
        report.add(Severity::Warning, &torn.path, Some(torn.offset), what, "the next opening drops it");
    }
}

fn is_missing(vfs: &dyn crate::vfs::Vfs, dir: &Path) -> bool {
    vfs.list(dir).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}
