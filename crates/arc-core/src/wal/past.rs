//! Reading frames back that were released, or are still needed, while others are appended.
//!
//! Never changes a file, and judges nothing: what is asked for was in the log as a whole, so
//! anything that is missing is an error.

use std::{cell::Cell, path::Path};

use super::{
    ReplayedFrame,
    reader::{SegmentReader, first_needed},
    segment,
};
use crate::{Error, Result, SequenceNumber, vfs::Vfs};

/// Hands each frame after `after`, up to `through`, to `visit`, in order, until that says false.
///
/// The segments have to stay meanwhile ([`Wal::hold`](super::Wal::hold)). Costs the reading of all
/// segments that hold such frames.
///
/// # Errors
///
/// [`Error::Corrupt`] if a frame is missing or damaged; what `visit` returns.
pub(crate) fn read_between(
    vfs: &dyn Vfs,
    dir: &Path,
    (after, through): (SequenceNumber, SequenceNumber),
    visit: &mut dyn FnMut(ReplayedFrame<'_>) -> Result<bool>,
) -> Result<()> {
    let segments = segment::list(vfs, dir)?;
    let goes_on = Cell::new(true);
    let mut visit_wanted = |frame: ReplayedFrame<'_>| {
        if goes_on.get() && frame.seq <= through {
            goes_on.set(visit(frame)?);
        }
        Ok(())
    };
    let mut reader = SegmentReader::new(vfs, dir, after, &mut visit_wanted);
    for found in segments.iter().skip(first_needed(&segments, after.next())) {
        if reader.next > through || !goes_on.get() {
            break;
        }
        reader.walk(*found)?;
    }
    if reader.next <= through && goes_on.get() {
        let reason = format!("frame {} of it is missing, and {through} is needed", reader.next);
        return Err(Error::corrupt(dir, 0, reason));
    }
    Ok(())
}
