//! Reading the log back: which frames are whole, where they end, and whether any are gone that had been synced.
//!
//! Never changes a file. Holds one segment in memory at a time, unless the visitor keeps bodies.

use std::{collections::VecDeque, path::Path};

use bytes::Bytes;

use crate::{Error, Result, SequenceNumber, vfs::Vfs};

use super::{
    ReplayedFrame,
    frame::{self, Damage, Decoded},
    live::LiveBytes,
    segment::{self, Found},
};

/// Called with each frame to replay.
pub(super) type Visit<'a> = dyn FnMut(ReplayedFrame<'_>) -> Result<()> + 'a;

/// What was found in the log's folder.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The segments of the log, in order.
    pub(super) segments: Vec<Found>,
    /// Segments behind the end of the log. Nothing in them was ever synced.
    pub(super) abandoned: Vec<Found>,
    /// Where the log ends in its last segment; `None` if the next frame needs a new segment.
    pub(super) tail: Option<Tail>,
    /// Whole frames that no later frame proves to have been synced.
    pub(super) unproven: VecDeque<Run>,
    pub(super) last_seq: SequenceNumber,
    pub(super) live: LiveBytes,
}

/// The end of the log in its last segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    pub(super) offset: u64,
    /// Whether there are frames behind the end, which are not part of the log and must not become it.
    pub(super) torn: bool,
}

/// Frames next to each other that were written while the same sequence number was durable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) segment: Found,
    pub(super) start: u64,
    pub(super) end: u64,
    last_seq: SequenceNumber,
    durable_seq: SequenceNumber,
}

/// Reads the log in `dir` and hands every frame after `replay_after` to `visit`.
pub(super) fn read(vfs: &dyn Vfs, dir: &Path, replay_after: SequenceNumber, visit: &mut Visit<'_>) -> Result<Findings> {
    let mut segments = segment::list(vfs, dir)?;
    let mut reader = Reader {
        vfs,
        dir,
        visit,
        next: replay_after.next(),
        durable_seq: SequenceNumber::default(),
        unproven: VecDeque::new(),
        live: LiveBytes::default(),
    };
    let mut walked = first_needed(&segments, reader.next);
    let mut stop = None;
    while let Some(found) = segments.get(walked).filter(|found| found.name.first_seq <= reader.next) {
        stop = Some(reader.walk(*found)?);
        walked += 1;
    }
    let abandoned = segments.split_off(walked);
    let tail = match stop {
        Some(stop) => reader.check_end(&stop, &abandoned)?,
        None => reader.check_start(&abandoned)?,
    };
    let last_seq = SequenceNumber(reader.next.0 - 1);
    Ok(Findings { segments, abandoned, tail, unproven: reader.unproven, last_seq, live: reader.live })
}

/// Returns the index of the first segment that may hold frame `next`; all before hold only frames before it.
///
/// Two segments begin with the same frame if the first of them took none, for want of room.
pub(super) fn first_needed(segments: &[Found], next: SequenceNumber) -> usize {
    let behind = segments.partition_point(|found| found.name.first_seq <= next);
    let last = behind.checked_sub(1).and_then(|last| segments.get(last));
    last.map_or(0, |last| segments.partition_point(|found| found.name.first_seq < last.name.first_seq))
}

struct Reader<'a, 'v> {
    vfs: &'a dyn Vfs,
    dir: &'a Path,
    visit: &'a mut Visit<'v>,
    /// The frame to replay next.
    next: SequenceNumber,
    /// The highest number that a frame says was durable.
    durable_seq: SequenceNumber,
    unproven: VecDeque<Run>,
    live: LiveBytes,
}

/// Where reading stopped in a segment, and why.
struct Stop {
    found: Found,
    bytes: Bytes,
    offset: usize,
    /// The frame expected there.
    seq: SequenceNumber,
    damage: Damage,
}

impl Reader<'_, '_> {
    /// Replays the frames of one segment up to the first that is not the one expected.
    fn walk(&mut self, found: Found) -> Result<Stop> {
        let bytes = self.load(&found)?;
        let (mut offset, seq) = self.skip(&bytes, &found);
        if seq < self.next {
            return Ok(Stop { found, bytes, offset, seq, damage: Damage::Header });
        }
        let damage = loop {
            match frame::decode(&bytes, offset, found.name.salt) {
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

    /// Moves over the frames before the next one to replay, and over any damage between them: nobody needs them.
    /// Returns where to go on, and which frame is expected there.
    fn skip(&mut self, bytes: &[u8], found: &Found) -> (usize, SequenceNumber) {
        let (mut offset, mut seq) = (0, found.name.first_seq);
        if seq < self.next {
            for (at, header) in frame::headers(bytes, 0, found.name.salt) {
                if header.seq >= self.next {
                    return if header.seq == self.next { (at, self.next) } else { (offset, seq) };
                }
                self.prove(header.durable_seq);
                seq = header.seq.next();
                offset = header.end(at);
            }
        }
        (offset, seq)
    }

    fn accept(&mut self, segment: Found, bytes: &Bytes, offset: usize, decoded: &Decoded) -> Result<()> {
        let Decoded { header, meta, body, end } = decoded;
        self.prove(header.durable_seq);
        self.live.add(header.seq, (end - offset) as u64);
        self.add_unproven(Run {
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

    fn add_unproven(&mut self, run: Run) {
        match self.unproven.back_mut() {
            Some(last) if last.segment.name == run.segment.name && last.durable_seq == run.durable_seq => {
                (last.end, last.last_seq) = (run.end, run.last_seq);
            }
            _ => self.unproven.push_back(run),
        }
    }

    /// Checks that nothing behind the end proves that the missing frame had been synced.
    fn check_end(&self, stop: &Stop, later: &[Found]) -> Result<Option<Tail>> {
        let mut torn = false;
        for (at, header) in frame::headers(&stop.bytes, stop.offset, stop.found.name.salt) {
            torn = true;
            if header.durable_seq >= self.next {
                return Err(self.lost(stop, &stop.found, at, header.seq));
            }
        }
        for found in later {
            let bytes = self.load(found)?;
            let mut headers = frame::headers(&bytes, 0, found.name.salt);
            if let Some((at, header)) = headers.find(|(_, header)| header.durable_seq >= self.next) {
                return Err(self.lost(stop, found, at, header.seq));
            }
        }
        Ok((stop.seq == self.next).then_some(Tail { offset: stop.offset as u64, torn }))
    }

    fn lost(&self, stop: &Stop, witness: &Found, at: usize, seq: SequenceNumber) -> Error {
        let witness = witness.name.path(self.dir);
        let witness = witness.file_name().unwrap_or_default().to_string_lossy();
        let (missing, damage) = (self.next, stop.damage);
        let reason =
            format!("frame {missing} {damage}, but it had been synced: frame {seq} says so, at byte {at} of {witness}");
        Error::corrupt(stop.found.name.path(self.dir), stop.offset as u64, reason)
    }

    /// Checks a log none of whose segments can hold the frame needed first: that is right only if there are none.
    fn check_start(&self, segments: &[Found]) -> Result<Option<Tail>> {
        let Some(first) = segments.first() else { return Ok(None) };
        let reason = format!("the log begins at frame {}, but frame {} is needed", first.name.first_seq, self.next);
        Err(Error::corrupt(first.name.path(self.dir), 0, reason))
    }

    fn load(&self, found: &Found) -> Result<Bytes> {
        let path = found.name.path(self.dir);
        let bytes = self.vfs.read(&path).map_err(|e| Error::io("read", path, e))?;
        Ok(bytes.into())
    }
}
