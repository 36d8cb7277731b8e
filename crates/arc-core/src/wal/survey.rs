//! Looking through the whole log, past any damage: which frames are whole, which are gone, where
//! the log ends.
//!
//! Judges as opening does (see [`reader`](super::reader)): a frame is *gone* if something proves
//! that it had been synced, and the log *ends* at the first frame that is not whole and that
//! nothing proves. Unlike opening it goes on after a gap. Never changes a file; holds one segment
//! in memory at a time.

use std::path::{Path, PathBuf};

use crate::{Result, SequenceNumber, vfs::Vfs};

use super::{
    ReplayedFrame,
    frame::{self, Damage},
    reader::first_needed,
    segment::{self, FoundSegment, SegmentName},
};

/// Called with each whole frame after the number asked for, in order, and its location.
pub(crate) type FrameVisit<'a> = dyn FnMut(&FrameLocation, ReplayedFrame<'_>) -> Result<()> + 'a;

/// Where a frame is, or was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameLocation {
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
}

/// Frames next to each other that are gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) location: FrameLocation,
    pub(crate) first: SequenceNumber,
    pub(crate) last: SequenceNumber,
    pub(crate) reason: String,
}

/// What is in the log after some number.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Segments looked into.
    pub(crate) segments: Vec<PathBuf>,
    /// Whole frames, and their bytes.
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) gaps: Vec<Gap>,
    /// Whether the segments that held the first frames are gone.
    pub(crate) begins_late: bool,
    /// Where the log ends though there are further frames, none of which is known to have been
    /// synced.
    pub(crate) torn: Option<FrameLocation>,
    /// The last frame that is whole or gone.
    pub(crate) last_seq: SequenceNumber,
}

/// Looks through the log in `dir` for the frames after `replay_after`.
///
/// `synced` is a number known to be in the log by other means, as a log that is open knows it: all
/// frames up to it have to be there. 0 otherwise.
///
/// # Errors
///
/// [`Error::Io`] where a file cannot be read; what `visit` returns.
pub(crate) fn survey(
    vfs: &dyn Vfs,
    dir: &Path,
    replay_after: SequenceNumber,
    synced: SequenceNumber,
    visit: &mut FrameVisit<'_>,
) -> Result<Survey> {
    let all = segment::list(vfs, dir)?;
    let needed = all.get(first_needed(&all, replay_after.next())..).unwrap_or_default();
    let mut surveyor = LogSurveyor {
        vfs,
        dir,
        visit,
        proven: synced.max(highest_proof(vfs, dir, needed)?),
        next: replay_after.next(),
        location: FrameLocation { path: dir.to_owned(), offset: 0 },
        survey: Survey::default(),
    };
    surveyor.check_start(needed);
    for found in needed {
        surveyor.survey.segments.push(found.name.path(dir));
        if !surveyor.walk(*found)? {
            break;
        }
    }
    surveyor.check_end();
    let LogSurveyor { mut survey, next, .. } = surveyor;
    survey.last_seq = SequenceNumber(next.0 - 1);
    Ok(survey)
}

/// Returns the highest number that any frame says was synced.
fn highest_proof(vfs: &dyn Vfs, dir: &Path, segments: &[FoundSegment]) -> Result<SequenceNumber> {
    let mut proven = SequenceNumber::default();
    for found in segments {
        let bytes = segment::load(vfs, dir, found)?;
        let durable = frame::headers(&bytes, 0, found.name).map(|(_, header)| header.durable_seq).max();
        proven = proven.max(durable.unwrap_or_default());
    }
    Ok(proven)
}

struct LogSurveyor<'a, 'v> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    visit: &'a mut FrameVisit<'v>,
    /// All frames up to this one had been synced.
    proven: SequenceNumber,
    next: SequenceNumber,
    /// Where frame `next` is expected.
    location: FrameLocation,
    survey: Survey,
}

impl LogSurveyor<'_, '_> {
    /// A log whose first segment begins after the frame needed first has lost what was before,
    /// proven or not.
    fn check_start(&mut self, segments: &[FoundSegment]) {
        let Some(first) = segments.first().filter(|first| first.name.first_seq > self.next) else { return };
        self.location = FrameLocation { path: first.name.path(self.dir), offset: 0 };
        self.survey.begins_late = true;
        self.gap(
            first.name.first_seq,
            format!("the log begins at frame {}, but frame {} is needed", first.name.first_seq, self.next),
        );
    }

    /// Looks through one segment; returns false where the log ends in it.
    fn walk(&mut self, found: FoundSegment) -> Result<bool> {
        let bytes = segment::load(self.vfs, self.dir, &found)?;
        let path = found.name.path(self.dir);
        if found.name.first_seq <= self.next {
            self.location = FrameLocation { path: path.clone(), offset: 0 };
        }
        for (at, header) in frame::headers(&bytes, 0, found.name).filter(|(_, header)| !header.is_seal()) {
            if header.seq < self.next {
                self.location = FrameLocation { path: path.clone(), offset: header.end(at) as u64 };
                continue;
            }
            if header.seq > self.next {
                let damage = damage_at(&bytes, &self.location, &path, found.name);
                if !self.pass(header.seq, damage) {
                    return Ok(false);
                }
            }
            match frame::decode(&bytes, at, found.name) {
                Ok(decoded) => {
                    let location = FrameLocation { path: path.clone(), offset: at as u64 };
                    let meta = bytes.get(decoded.meta.clone()).unwrap_or_default();
                    let body = bytes.slice(decoded.body.clone());
                    (self.visit)(&location, ReplayedFrame { seq: header.seq, kind: header.kind, meta, body })?;
                    self.survey.frames += 1;
                    self.survey.bytes += (decoded.end - at) as u64;
                    self.next = header.seq.next();
                }
                Err(damage) => {
                    self.location = FrameLocation { path: path.clone(), offset: at as u64 };
                    if !self.pass(header.seq.next(), damage) {
                        return Ok(false);
                    }
                }
            }
            self.location = FrameLocation { path: path.clone(), offset: header.end(at) as u64 };
        }
        Ok(true)
    }

    /// Goes on to frame `to`, the frames before which are not there; returns false if the log ends
    /// here instead.
    fn pass(&mut self, to: SequenceNumber, damage: Damage) -> bool {
        let end = to.min(self.proven.next());
        if self.next < end {
            let reason = format!("frame {} {damage}, but it had been synced: later frames say so", self.next);
            self.gap(end, reason);
        }
        if self.next < to {
            self.survey.torn = Some(self.location.clone());
        }
        self.next == to
    }

    /// What is known to have been synced and stood after the last whole frame.
    fn check_end(&mut self) {
        if self.next <= self.proven {
            let reason = format!("frame {} {}, but it had been synced", self.next, Damage::Header);
            self.gap(self.proven.next(), reason);
        }
    }

    fn gap(&mut self, to: SequenceNumber, reason: String) {
        let last = SequenceNumber(to.0 - 1);
        self.survey.gaps.push(Gap { location: self.location.clone(), first: self.next, last, reason });
        self.next = to;
    }
}

/// Says what is at the place of a frame that is not there: as opening words it.
fn damage_at(bytes: &[u8], location: &FrameLocation, path: &Path, name: SegmentName) -> Damage {
    let offset = usize::try_from(location.offset).ok().filter(|_| location.path == path);
    match offset.map(|offset| frame::decode(bytes, offset, name)) {
        Some(Ok(_)) => Damage::Sequence,
        Some(Err(damage)) => damage,
        None => Damage::Header,
    }
}

/// Returns the frames of a segment: offset, length, sequence number.
#[cfg(test)]
pub(crate) fn frame_locations(segment: &[u8], path: &Path) -> Vec<(usize, usize, u64)> {
    let unpadded = |header: &frame::Header| frame::HEADER_BYTES + (header.meta_len + header.body_len) as usize;
    let frames = frame::headers(segment, 0, segment::name(path)).filter(|(_, header)| !header.is_seal());
    frames.map(|(at, header)| (at, unpadded(&header), header.seq.0)).collect()
}

/// Replaces the body of the frame at `offset` by zeros and makes its checksums right again.
#[cfg(test)]
pub(crate) fn forge_body(segment: &mut [u8], path: &Path, offset: usize) {
    let mut header = frame::Header::decode(segment, offset, segment::name(path)).unwrap();
    let start = offset + frame::HEADER_BYTES + header.meta_len as usize;
    let body = &mut segment[start..start + header.body_len as usize];
    body.fill(0);
    header.body_crc = crc32c::crc32c(body);
    segment[offset..offset + frame::HEADER_BYTES].copy_from_slice(&header.encode(segment::name(path).salt));
}
