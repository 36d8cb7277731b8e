//! The log without the frames that are lost: which can be kept, and what stands for the others.

use std::path::Path;

use bytes::Bytes;

use super::plan::{GivenUp, RepairStep};
use crate::{
    Result, SequenceNumber,
    catalog::ManifestState,
    engine::{FrameChecker, GIVEN_UP, SchemaChange},
    maintenance::backup::logged,
    vfs::Vfs,
    wal::{Frame, FrameLocation, Rebuild, ReplayedFrame, Survey, body_checksum, segments, survey},
};

/// Most frames that may be missing in a row. Each gets a frame of 40 bytes in its place, so that
/// numbers stay as they are.
const MAX_MISSING: u64 = 1 << 20;

/// Returns the last frame of the log if it reaches back to `state`, whatever is damaged in it.
pub(super) fn end_if_reaching_back(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<Option<SequenceNumber>> {
    if vfs.list(dir).is_err() {
        return Ok(None);
    }
    let found = survey(vfs, dir, state.flushed, SequenceNumber::default(), &mut |_, _| Ok(()))?;
    Ok((!found.begins_late).then_some(found.last_seq))
}

/// Returns the step that makes the log whole on top of `state`, or `None` if it is, and the reason
/// if it cannot be.
pub(super) fn plan(vfs: &dyn Vfs, dir: &Path, state: &ManifestState) -> Result<Result<Option<RepairStep>, String>> {
    let (found, fixer) = walk(vfs, dir, state, None)?;
    if found.gaps.is_empty() && fixer.bad.is_empty() {
        return Ok(Ok(None));
    }
    if let Some(gap) = found.gaps.iter().find(|gap| gap.last.0 - gap.first.0 >= MAX_MISSING) {
        let reason =
            format!("{} frames of the log are missing before frame {}", gap.last.0 - gap.first.0 + 1, gap.last.next());
        return Ok(Err(format!("{}: {reason}", gap.location.path.display())));
    }
    let gaps = found.gaps.into_iter().map(|gap| (gap.location, gap.first, gap.last, gap.reason));
    let bad = fixer.bad.into_iter().map(|(location, seq, reason)| (location, seq, seq, reason));
    let given_up = |(location, first, last, reason): (FrameLocation, _, _, _)| GivenUp {
        first,
        last,
        path: location.path,
        offset: location.offset,
        reason,
    };
    let mut given_up: Vec<GivenUp> = gaps.chain(bad).map(given_up).collect();
    given_up.sort_by_key(|lost| lost.first);
    Ok(Ok(Some(RepairStep::RewriteLog {
        segments: segments(vfs, dir)?,
        frames: fixer.frames,
        points: fixer.points,
        given_up,
        recreated: fixer.recreated,
        widened: fixer.widened,
    })))
}

/// Writes what [`plan`] said.
pub(super) fn write(vfs: &dyn Vfs, dir: &Path, state: &ManifestState, mut rebuild: Rebuild) -> Result<()> {
    let (found, mut fixer) = walk(vfs, dir, state, Some(&mut rebuild))?;
    // So that no number is ever used twice.
    fixer.fill(found.last_seq.next(), Some(&mut rebuild))?;
    rebuild.publish()
}

fn walk(vfs: &dyn Vfs, dir: &Path, state: &ManifestState, mut to: Option<&mut Rebuild>) -> Result<(Survey, Fixer)> {
    let next = state.flushed.next();
    let mut checker = FrameChecker::new(state);
    let logged = logged(vfs, dir.parent().unwrap_or(dir))?;
    survey(vfs, dir, state.flushed, logged, &mut |_, frame| {
        checker.note(&frame);
        Ok(())
    })?;
    let mut fixer = Fixer { checker, next, frames: 0, points: 0, recreated: 0, widened: Vec::new(), bad: Vec::new() };
    let mut visit =
        |location: &FrameLocation, frame: ReplayedFrame<'_>| fixer.take(location, &frame, to.as_deref_mut());
    let found = survey(vfs, dir, state.flushed, logged, &mut visit)?;
    Ok((found, fixer))
}

struct Fixer {
    checker: FrameChecker,
    /// The first frame that nothing was decided about; those up to the next whole one are lost.
    next: SequenceNumber,
    frames: u64,
    points: u64,
    recreated: u64,
    widened: Vec<String>,
    /// Frames that are whole and make no sense without those that are lost.
    bad: Vec<(FrameLocation, SequenceNumber, String)>,
}

impl Fixer {
    fn take(
        &mut self,
        location: &FrameLocation,
        frame: &ReplayedFrame<'_>,
        mut to: Option<&mut Rebuild>,
    ) -> Result<()> {
        let missing = frame.seq.0.saturating_sub(self.next.0);
        match self.check(frame, missing) {
            Ok((points, changes)) => {
                self.recreated += changes.len() as u64;
                self.fill(SequenceNumber(frame.seq.0 - changes.len() as u64), to.as_deref_mut())?;
                for change in changes {
                    self.widened.extend(change.widened);
                    self.append(change.kind, &change.meta, &change.body, to.as_deref_mut())?;
                }
                self.frames += 1;
                self.points += points;
                self.append(frame.kind, frame.meta, &frame.body, to)
            }
            Err(reason) => {
                self.bad.push((location.clone(), frame.seq, format!("frame {}: {reason}", frame.seq)));
                Ok(())
            }
        }
    }

    /// Decodes a frame, if need be with the changes of schema that stood in the last of the
    /// `missing` frames before it.
    fn check(&mut self, frame: &ReplayedFrame<'_>, missing: u64) -> Result<(u64, Vec<SchemaChange>), String> {
        let reason = match self.checker.check(frame) {
            Ok(points) => return Ok((points, Vec::new())),
            Err(reason) => reason,
        };
        let changes = self.checker.missing_changes(frame);
        if changes.is_empty() || changes.len() as u64 > missing {
            return Err(reason);
        }
        for change in &changes {
            let SchemaChange { kind, meta, body, .. } = change;
            self.checker.check(&ReplayedFrame { seq: frame.seq, kind: *kind, meta, body: body.clone() })?;
        }
        Ok((self.checker.check(frame)?, changes))
    }

    /// Puts something in the place of all frames before `end` that are lost.
    fn fill(&mut self, end: SequenceNumber, mut to: Option<&mut Rebuild>) -> Result<()> {
        while self.next < end {
            self.append(GIVEN_UP, &[], &Bytes::new(), to.as_deref_mut())?;
        }
        Ok(())
    }

    fn append(&mut self, kind: u8, meta: &[u8], body: &Bytes, to: Option<&mut Rebuild>) -> Result<()> {
        if let Some(rebuild) = to {
            rebuild.append(&Frame { seq: self.next, kind, meta, body, body_crc: body_checksum(body) })?;
        }
        self.next = self.next.next();
        Ok(())
    }
}
