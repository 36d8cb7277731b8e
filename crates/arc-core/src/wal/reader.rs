//! Reading the log back: which frames are whole, where they end, and whether any are gone that had
//! been synced.
//!
//! Never changes a file. Holds one segment in memory at a time, or those of one first number,
//! unless the visitor keeps bodies.

use std::{collections::VecDeque, path::Path};

use bytes::Bytes;

use crate::{Error, Result, SequenceNumber, vfs::Vfs};

use super::{
    ReplayedFrame,
    frame::{self, Damage, DecodedFrame},
    live::LiveBytes,
    segment::{self, FoundSegment},
};

/// Called with each frame to replay.
pub(super) type Visit<'a> = dyn FnMut(ReplayedFrame<'_>) -> Result<()> + 'a;

/// What was found in the log's folder.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The segments of the log, in order.
    pub(super) segments: Vec<FoundSegment>,
    /// Segments after the end of the log. Nothing in them was ever synced.
    pub(super) abandoned: Vec<FoundSegment>,
    /// Where the log ends in its last segment; `None` if the next frame needs a new segment.
    pub(super) tail: Option<u64>,
    /// Segments with frames after the end, which are not part of the log and must not become it,
    /// and where the end is.
    pub(super) torn: Vec<(FoundSegment, u64)>,
    /// The highest number that a frame says was durable.
    pub(super) proven_seq: SequenceNumber,
    /// Whether the log ends in a seal.
    pub(super) is_sealed: bool,
    /// Whole frames that no later frame proves to have been synced.
    pub(super) unproven: VecDeque<FrameRun>,
    pub(super) last_seq: SequenceNumber,
    pub(super) live: LiveBytes,
}

/// Frames next to each other that were written while the same sequence number was durable.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameRun {
    pub(super) segment: FoundSegment,
    pub(super) start: u64,
    pub(super) end: u64,
    last_seq: SequenceNumber,
    durable_seq: SequenceNumber,
}

/// Reads the log in `dir` and hands every frame after `replay_after` to `visit`.
pub(super) fn read(vfs: &dyn Vfs, dir: &Path, replay_after: SequenceNumber, visit: &mut Visit<'_>) -> Result<Findings> {
    let mut segments = segment::list(vfs, dir)?;
    let mut reader = SegmentReader::new(vfs, dir, replay_after, visit);
    let mut walked = first_needed(&segments, reader.next);
    // Of several segments with one first number all but one are empty, whichever of them comes
    // last.
    let mut stops: Vec<Stop> = Vec::new();
    while let Some(found) = segments.get(walked).filter(|found| found.name.first_seq <= reader.next) {
        stops.retain(|before| before.found.name.first_seq == found.name.first_seq);
        stops.push(reader.walk(*found)?);
        walked += 1;
    }
    let abandoned = segments.split_off(walked);
    let torn = if walked == 0 { reader.check_start(&abandoned)? } else { reader.check_end(&stops, &abandoned)? };
    let tail = stops.last().filter(|stop| stop.seq == reader.next).map(|stop| stop.offset as u64);
    let is_sealed = stops.last().is_some_and(|stop| stop.damage == Damage::Sealed);
    let last_seq = SequenceNumber(reader.next.0 - 1);
    let SegmentReader { unproven, durable_seq: proven_seq, live, .. } = reader;
    Ok(Findings { segments, abandoned, tail, torn, unproven, last_seq, proven_seq, is_sealed, live })
}

/// Returns the index of the first segment that may hold frame `next`; all before hold only frames
/// before it.
///
/// Two segments begin with the same frame if the first of them took none, for want of room.
pub(super) fn first_needed(segments: &[FoundSegment], next: SequenceNumber) -> usize {
    let behind = segments.partition_point(|found| found.name.first_seq <= next);
    let last = behind.checked_sub(1).and_then(|last| segments.get(last));
    last.map_or(0, |last| segments.partition_point(|found| found.name.first_seq < last.name.first_seq))
}

pub(super) struct SegmentReader<'a, 'v> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    visit: &'a mut Visit<'v>,
    /// The frame to replay next.
    pub(super) next: SequenceNumber,
    /// The highest number that a frame says was durable.
    durable_seq: SequenceNumber,
    unproven: VecDeque<FrameRun>,
    live: LiveBytes,
}

/// Where reading stopped in a segment, and why.
pub(super) struct Stop {
    found: FoundSegment,
    bytes: Bytes,
    offset: usize,
    /// The frame expected there.
    seq: SequenceNumber,
    damage: Damage,
}

impl Stop {
    /// Returns whether a frame was ever begun where one was expected.
    fn is_written(&self) -> bool {
        self.bytes.iter().skip(self.offset).take(frame::HEADER_BYTES).any(|byte| *byte != 0)
    }
}

impl<'a, 'v> SegmentReader<'a, 'v> {
    pub(super) fn new(vfs: &'a dyn Vfs, dir: &'a Path, replay_after: SequenceNumber, visit: &'a mut Visit<'v>) -> Self {
        Self {
            vfs,
            dir,
            visit,
            next: replay_after.next(),
            durable_seq: SequenceNumber::default(),
            unproven: VecDeque::new(),
            live: LiveBytes::default(),
        }
    }

    /// Replays the frames of one segment up to the first that is not the one expected.
    pub(super) fn walk(&mut self, found: FoundSegment) -> Result<Stop> {
        let bytes = self.load(&found)?;
        let (mut offset, seq) = self.skip(&bytes, &found);
        if seq < self.next {
            return Ok(Stop { found, bytes, offset, seq, damage: Damage::Header });
        }
        let damage = loop {
            match frame::decode(&bytes, offset, found.name) {
                Ok(decoded) if decoded.header.is_seal() => {
                    self.prove(decoded.header.durable_seq);
                    break Damage::Sealed;
                }
                Ok(decoded) if decoded.header.seq == self.next => {
                    self.accept(found, &bytes, offset, &decoded)?;
                    offset = decoded.end;
                }
                Ok(_) => break Damage::Sequence,
                Err(damage) => break damage,
            }
        };
        Ok(Stop { found, bytes, offset, seq: self.next, damage })
    }

    /// Moves over the frames before the next one to replay, and over any damage between them:
    /// nothing needs them. Returns where to go on, and which frame is expected there.
    fn skip(&mut self, bytes: &[u8], found: &FoundSegment) -> (usize, SequenceNumber) {
        let (mut offset, mut seq) = (0, found.name.first_seq);
        if seq < self.next {
            for (at, header) in frame::headers(bytes, 0, found.name) {
                if header.seq >= self.next {
                    return if header.seq == self.next { (at, self.next) } else { (offset, seq) };
                }
                self.prove(header.durable_seq);
                if header.is_seal() {
                    continue;
                }
                seq = header.seq.next();
                offset = header.end(at);
            }
        }
        (offset, seq)
    }

    fn accept(&mut self, segment: FoundSegment, bytes: &Bytes, offset: usize, decoded: &DecodedFrame) -> Result<()> {
        let DecodedFrame { header, meta, body, end } = decoded;
        self.prove(header.durable_seq);
        self.live.add(header.seq, (end - offset) as u64);
        self.add_unproven(FrameRun {
            segment,
            start: offset as u64,
            end: *end as u64,
            last_seq: header.seq,
            durable_seq: header.durable_seq,
        });
        self.next = header.seq.next();
        let meta = bytes.get(meta.clone()).unwrap_or_default();
        (self.visit)(ReplayedFrame { seq: header.seq, kind: header.kind, meta, body: bytes.slice(body.clone()) })
    }

    /// Takes note that all frames through `durable_seq` were synced.
    fn prove(&mut self, durable_seq: SequenceNumber) {
        self.durable_seq = self.durable_seq.max(durable_seq);
        while self.unproven.pop_front_if(|run| run.last_seq <= self.durable_seq).is_some() {}
    }

    fn add_unproven(&mut self, run: FrameRun) {
        match self.unproven.back_mut() {
            Some(last) if last.segment.name == run.segment.name && last.durable_seq == run.durable_seq => {
                (last.end, last.last_seq) = (run.end, run.last_seq);
            }
            _ => self.unproven.push_back(run),
        }
    }

    /// Checks that nothing after the end proves that the missing frame had been synced. Returns in
    /// which segments frames are after it, and from where on.
    fn check_end(&self, stops: &[Stop], later: &[FoundSegment]) -> Result<Vec<(FoundSegment, u64)>> {
        let mut torn = Vec::new();
        for stop in stops {
            let mut is_torn = false;
            for (at, header) in frame::headers(&stop.bytes, stop.offset, stop.found.name) {
                is_torn |= !header.is_seal();
                if header.durable_seq >= self.next {
                    return Err(self.lost(stop, &stop.found, at, header.seq));
                }
            }
            torn.extend(is_torn.then_some((stop.found, stop.offset as u64)));
        }
        for found in later {
            let bytes = self.load(found)?;
            let mut headers = frame::headers(&bytes, 0, found.name);
            let expected = stops.iter().max_by_key(|stop| (stop.seq == self.next, stop.is_written()));
            if let Some(((at, header), stop)) = headers.find(|(_, h)| h.durable_seq >= self.next).zip(expected) {
                return Err(self.lost(stop, found, at, header.seq));
            }
        }
        Ok(torn)
    }

    fn lost(&self, stop: &Stop, witness: &FoundSegment, at: usize, seq: SequenceNumber) -> Error {
        let witness = witness.name.path(self.dir);
        let witness = witness.file_name().unwrap_or_default().to_string_lossy();
        let (missing, damage) = (self.next, stop.damage);
        let reason =
            format!("frame {missing} {damage}, but it had been synced: frame {seq} says so, at byte {at} of {witness}");
        Error::corrupt(stop.found.name.path(self.dir), stop.offset as u64, reason)
    }

    /// Checks a log none of whose segments can hold the frame needed first: that is right only if
    /// there are none.
    fn check_start(&self, segments: &[FoundSegment]) -> Result<Vec<(FoundSegment, u64)>> {
        let Some(first) = segments.first() else { return Ok(Vec::new()) };
        let reason = format!("the log begins at frame {}, but frame {} is needed", first.name.first_seq, self.next);
        Err(Error::corrupt(first.name.path(self.dir), 0, reason))
    }

    fn load(&self, found: &FoundSegment) -> Result<Bytes> {
        segment::load(self.vfs, self.dir, found)
    }
}
