//! The log as its owner holds it: open, append, sync, release.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{Error, ErrorKind, Result, SequenceNumber, vfs::Vfs};

use super::{
    Frame, LogPart, SpareMaker, WalOptions,
    frame::{ALIGNMENT, HEADER_BYTES, Header},
    live::LiveBytes,
    reader::{self, Findings, Visit},
    repair,
    segment::{Segment, SegmentName},
    spare::NotPlaced,
    sync::{PendingSync, SyncState},
};

/// The write-ahead log in one folder; one thread at a time has it.
#[derive(Debug)]
pub(crate) struct Wal {
    dir: PathBuf,
    options: WalOptions,
    spare: SpareMaker,
    /// Segments that take no more frames, oldest first.
    sealed: VecDeque<Sealed>,
    /// The segment that takes frames; the first append makes it.
    active: Option<Segment>,
    last_seq: SequenceNumber,
    sync_state: Arc<SyncState>,
    /// The last frame that a thread waits for to be synced.
    wanted_seq: SequenceNumber,
    /// Up to where frames were synced, as some frame or seal in the log says.
    proven_seq: SequenceNumber,
    /// Whether there is a seal where the next frame goes.
    is_sealed: bool,
    live: LiveBytes,
    /// Up to where frames are released, and how many keep segments from being given up.
    released: SequenceNumber,
    holders: usize,
    kept: KeptLog,
}

/// Which released segments stay for those who ask what was in the log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeptLog {
    /// Those with frames after this one; none where there is no number.
    pub(crate) after: Option<SequenceNumber>,
    /// Most bytes of them.
    pub(crate) most_bytes: u64,
}

#[derive(Debug)]
struct Sealed {
    path: PathBuf,
    size: u64,
    first_seq: SequenceNumber,
    last_seq: SequenceNumber,
    /// There while something in it is in no sync.
    unsynced: Option<Segment>,
}

impl KeptLog {
    fn most_bytes_now(&self) -> u64 {
        if self.after.is_some() { self.most_bytes } else { 0 }
    }
}

impl Wal {
    /// Opens the log in `dir`, which is created if absent, and hands every frame after
    /// `replay_after` to `visit`, in order. The log is then ready to append after the last whole
    /// frame, and all that was visited is durable.
    ///
    /// Everything through `replay_after` must be durable elsewhere; damage to such frames does not
    /// matter.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] with file and offset if a frame is damaged or absent that had been
    /// synced: nothing is changed then. What `visit` returns.
    pub(crate) fn open(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        options: WalOptions,
        replay_after: SequenceNumber,
        visit: &mut Visit<'_>,
    ) -> Result<Self> {
        create_dir(&*vfs, dir)?;
        let findings = reader::read(&*vfs, dir, replay_after, visit)?;
        repair::repair(&*vfs, dir, &findings)?;
        let spare = SpareMaker::open(Arc::clone(&vfs), dir, options.segment_bytes)?;
        let kept = options.kept;
        let mut wal = Self {
            dir: dir.to_owned(),
            options,
            spare,
            sealed: VecDeque::new(),
            active: None,
            last_seq: findings.last_seq,
            sync_state: SyncState::new(findings.last_seq),
            wanted_seq: SequenceNumber::default(),
            proven_seq: findings.proven_seq,
            is_sealed: findings.is_sealed,
            live: LiveBytes::default(),
            released: SequenceNumber::default(),
            holders: 0,
            kept,
        };
        wal.take_over(&*vfs, findings)?;
        wal.release(replay_after)?;
        Ok(wal)
    }

    fn take_over(&mut self, vfs: &dyn Vfs, findings: Findings) -> Result<()> {
        let Findings { mut segments, tail, live, .. } = findings;
        self.live = live;
        if let Some((tail, found)) = tail.zip(segments.last().copied()) {
            segments.pop();
            let path = found.name.path(&self.dir);
            let file = vfs.open(&path).map_err(|e| Error::io("open", &path, e))?;
            self.active = Some(Segment { end: tail, ..Segment::new(found.name, path, file.into(), found.size) });
        }
        let firsts = segments.iter().map(|found| found.name.first_seq).skip(1);
        let next = self.active.as_ref().map_or(self.last_seq.next(), |active| active.name.first_seq);
        for (found, after) in segments.iter().zip(firsts.chain([next])) {
            let last_seq = SequenceNumber(after.0.saturating_sub(1));
            let path = found.name.path(&self.dir);
            self.sealed.push_back(Sealed {
                path,
                size: found.size,
                first_seq: found.name.first_seq,
                last_seq,
                unsynced: None,
            });
        }
        Ok(())
    }

    /// Returns the number of the last frame, or the `replay_after` of [`Wal::open`] if that is
    /// higher.
    pub(crate) fn last_seq(&self) -> SequenceNumber {
        self.last_seq
    }

    /// Returns the number up to which everything survives the loss of power.
    pub(crate) fn durable_seq(&self) -> SequenceNumber {
        self.sync_state.durable_seq()
    }

    /// Returns the bytes of frames that are not released, those of a partly released 64 KiB (or
    /// group) included.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live.bytes()
    }

    /// Returns whether the log has had a frame.
    pub(crate) fn has_segments(&self) -> bool {
        self.active.is_some() || !self.sealed.is_empty()
    }

    /// Returns whether the next segment should be made ahead of need, by [`SpareMaker::make`].
    /// Never waits.
    pub(crate) fn spare_needed(&self) -> bool {
        self.spare.needed()
    }

    /// Returns the handle that makes the next segment, for another thread.
    pub(crate) fn spare_maker(&self) -> SpareMaker {
        self.spare.clone()
    }

    /// Returns whether an append or sync has failed, after which every call fails.
    pub(crate) fn is_failed(&self) -> bool {
        self.sync_state.is_failed()
    }

    /// Appends a group of frames whose numbers follow [`Wal::last_seq`] one by one; it then
    /// survives the end of the process, but not the loss of power before a [`PendingSync`] that
    /// begins later has run.
    ///
    /// One write, unless the group is larger than a segment.
    ///
    /// # Errors
    ///
    /// After an error the log is failed: how much of the group was written is unknown, all later
    /// calls return [`Error::Closed`], and the next [`Wal::open`] decides from disk. Only where
    /// nothing can have been written is the log as it was, and [`Wal::is_failed`] false: no space
    /// for a new segment, no file descriptor or memory for one, or frames that are no valid group.
    pub(crate) fn append(&mut self, frames: &[Frame<'_>]) -> Result<()> {
        self.check_usable()?;
        let headers = self.headers(frames)?;
        let (mut frames, mut headers) = (frames, headers.as_slice());
        let mut written = false;
        while let Some(first) = headers.first() {
            let count = self.fitting(headers);
            if count == 0 {
                let reserved = self.reserve(first.frame_bytes()).map_err(NotPlaced::Unchanged);
                match reserved.and_then(|size| self.roll(size)) {
                    Ok(()) => continue,
                    Err(NotPlaced::Unchanged(error)) if !written => return Err(error),
                    Err(NotPlaced::Unchanged(error) | NotPlaced::Unknown(error)) => return Err(self.fail(error)),
                }
            }
            let ((now, later), (now_headers, later_headers)) = (frames.split_at(count), headers.split_at(count));
            self.write(now, now_headers).map_err(|e| self.fail(e))?;
            (frames, headers, written) = (later, later_headers, true);
        }
        Ok(())
    }

    /// Notes that a thread waits until all that is appended is durable.
    pub(crate) fn want_sync(&mut self) {
        self.wanted_seq = self.last_seq;
    }

    /// Begins to make all appended frames durable, if a thread waits for that and no sync is under
    /// way: the thread that runs that one asks again afterwards. [`PendingSync::run`] does it,
    /// without the log, so that more can be appended meanwhile.
    pub(crate) fn begin_sync(&mut self) -> Option<PendingSync> {
        if self.is_failed() || self.wanted_seq <= self.durable_seq() || self.sync_state.is_under_way() {
            return None;
        }
        let sealed = self.sealed.iter_mut().filter_map(|sealed| sealed.unsynced.take());
        let mut files: Vec<_> = sealed.map(|segment| segment.sync_file()).collect();
        if let Some(active) = self.active.as_mut().filter(|active| active.unsynced) {
            active.unsynced = false;
            files.push(active.sync_file());
        }
        Some(self.sync_state.begin(self.last_seq, files))
    }

    /// Begins to prove that the frames which are durable by now are, where no frame in the log says
    /// so: damage to them would be taken for the torn tail of a crash. Returns what is to be run
    /// for it as after [`Wal::begin_sync`], or nothing where nothing is to be proven, a sync is
    /// under way, or the segment is full.
    ///
    /// The proof is a *seal*, in the place that the next frame takes. It is wiped once all is
    /// released, so that a build that knows no seals can open what was closed.
    ///
    /// # Errors
    ///
    /// As of [`Wal::append`].
    pub(crate) fn begin_seal(&mut self) -> Result<Option<PendingSync>> {
        self.check_usable()?;
        let durable_seq = self.durable_seq();
        let is_released = durable_seq <= self.released;
        let is_due = if is_released { self.is_sealed } else { durable_seq > self.proven_seq };
        if !is_due || self.sync_state.is_under_way() {
            return Ok(None);
        }
        let Some(active) = self.active.as_ref().filter(|active| active.remaining() >= HEADER_BYTES as u64) else {
            return Ok(None);
        };
        let seal = Header::seal(self.last_seq.next(), durable_seq).encode(active.name.salt);
        let bytes = if is_released { [0; HEADER_BYTES] } else { seal };
        let written = active.file.write_all_at(&[&bytes], active.end);
        written.map_err(|e| self.fail(Error::io("write", &active.path, e)))?;
        (self.proven_seq, self.is_sealed) = (self.proven_seq.max(durable_seq), !is_released);
        Ok(Some(self.sync_state.begin(durable_seq, vec![active.sync_file()])))
    }

    /// Makes all appended frames durable, and waits for it.
    #[cfg(test)]
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.want_sync();
        self.check_usable()?;
        self.begin_sync().map_or(Ok(()), |sync| sync.run().map(drop))
    }

    /// Gives up all frames through `through`, which must be durable elsewhere: segments with no
    /// others, except the last one, become the spare or are removed. A log that has had a frame is
    /// never without a segment.
    ///
    /// # Errors
    ///
    /// If a file cannot be renamed or removed. The log stays usable; the next release tries again.
    pub(crate) fn release(&mut self, through: SequenceNumber) -> Result<()> {
        self.check_usable()?;
        self.released = self.released.max(through);
        while self.holders == 0 && self.released_bytes() > self.kept.most_bytes_now() && self.give_up_oldest()? {}
        while self.holders == 0
            && self.sealed.front().is_some_and(|oldest| self.kept.after.is_none_or(|kept| oldest.last_seq <= kept))
            && self.give_up_oldest()?
        {}
        self.live.release(through);
        Ok(())
    }

    /// Says which segments stay although they are released; the next release heeds it.
    pub(crate) fn keep(&mut self, kept: KeptLog) {
        self.kept = kept;
    }

    /// Returns the first frame that can be read back, 0 where there is none at all.
    pub(crate) fn first_seq(&self) -> SequenceNumber {
        let active = || self.active.as_ref().map(|active| active.name.first_seq);
        self.sealed.front().map(|sealed| sealed.first_seq).or_else(active).unwrap_or_default()
    }

    /// Returns the bytes of segments that are released and still there.
    pub(crate) fn released_bytes(&self) -> u64 {
        self.sealed.iter().take_while(|sealed| sealed.last_seq <= self.released).map(|sealed| sealed.size).sum()
    }

    /// Makes the oldest segment a spare, if all in it is released; returns whether it was.
    fn give_up_oldest(&mut self) -> Result<bool> {
        let keeps_last = usize::from(self.active.is_none());
        match self.sealed.front() {
            Some(oldest) if self.sealed.len() > keeps_last && oldest.last_seq <= self.released => {
                self.spare.recycle(oldest.size, &oldest.path)?;
                self.sealed.pop_front();
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Returns where the frames after `after` are, oldest first, and keeps all segments from now on
    /// until [`Wal::let_go`], so that they can be copied while frames are appended and released.
    pub(crate) fn hold(&mut self, after: SequenceNumber) -> Vec<LogPart> {
        self.holders += 1;
        let sealed = self.sealed.iter().filter(|sealed| sealed.last_seq > after);
        let sealed = sealed.map(|sealed| LogPart { path: sealed.path.clone(), bytes: sealed.size });
        let active = self.active.as_ref().filter(|active| active.end > 0 && self.last_seq > after);
        sealed.chain(active.map(|active| LogPart { path: active.path.clone(), bytes: active.end })).collect()
    }

    /// Ends a [`Wal::hold`]; what was released meanwhile is given up.
    ///
    /// # Errors
    ///
    /// As of [`Wal::release`].
    pub(crate) fn let_go(&mut self) -> Result<()> {
        self.holders = self.holders.saturating_sub(1);
        self.release(self.released)
    }

    fn check_usable(&self) -> Result<()> {
        self.sync_state.check_usable()
    }

    fn fail(&self, error: Error) -> Error {
        self.sync_state.fail(error)
    }

    fn headers(&self, frames: &[Frame<'_>]) -> Result<Vec<Header>> {
        let (mut last_seq, durable_seq) = (self.last_seq, self.sync_state.durable_seq());
        let mut header = |frame: &Frame<'_>| {
            if frame.seq != last_seq.next() {
                return Err(Error::internal(format!("frame {} was appended after frame {last_seq}", frame.seq)));
            }
            last_seq = frame.seq;
            Header::new(frame, durable_seq)
        };
        frames.iter().map(&mut header).collect()
    }

    /// Returns how many of the frames go into the active segment now: all of them or none, so that
    /// a group is one write, unless no segment can take them all.
    fn fitting(&self, headers: &[Header]) -> usize {
        let remaining = self.active.as_ref().map_or(0, Segment::remaining);
        let mut total = 0;
        let sizes = headers.iter().map(|header| {
            total += header.frame_bytes();
            total
        });
        let fitting = sizes.take_while(|total| *total <= remaining).count();
        let whole: u64 = headers.iter().map(Header::frame_bytes).sum();
        if fitting < headers.len() && whole <= self.options.segment_bytes { 0 } else { fitting }
    }

    /// Makes sure that there is a file for a segment. On a full disk the segments that are only kept
    /// to be read are given up for it.
    fn reserve(&mut self, bytes: u64) -> Result<u64> {
        let reserved = self.spare.reserve(bytes);
        match reserved {
            Err(error) if error.kind() == ErrorKind::StorageFull && self.holders == 0 && self.give_up_oldest()? => {
                tracing::warn!(%error, "the disk is full: the history in the log is given up");
                while self.give_up_oldest()? {}
                self.spare.reserve(bytes)
            }
            other => other,
        }
    }

    /// Goes on in a new segment.
    fn roll(&mut self, size: u64) -> Result<(), NotPlaced> {
        let name = SegmentName::new(self.last_seq.next(), &*self.options.random);
        let path = name.path(&self.dir);
        let file = self.spare.place(size, &path)?;
        if let Some(full) = self.active.take() {
            self.sealed.push_back(Sealed {
                path: full.path.clone(),
                size: full.size,
                first_seq: full.name.first_seq,
                last_seq: self.last_seq,
                unsynced: full.unsynced.then_some(full),
            });
        }
        self.active = Some(Segment::new(name, path, file.into(), size));
        Ok(())
    }

    fn write(&mut self, frames: &[Frame<'_>], headers: &[Header]) -> Result<()> {
        let Some(active) = &mut self.active else { return Err(Error::internal("the log has no active segment")) };
        let encoded: Vec<_> = headers.iter().map(|header| header.encode(active.name.salt)).collect();
        let zeros = [0; ALIGNMENT];
        let mut parts = Vec::with_capacity(4 * frames.len());
        for ((frame, header), encoded) in frames.iter().zip(headers).zip(&encoded) {
            let padding = zeros.get(..header.padding()).unwrap_or_default();
            parts.extend([encoded.as_slice(), frame.meta, frame.body, padding]);
        }
        let start = active.end;
        active.write(&parts)?;
        if let Some((last, header)) = frames.last().zip(headers.last()) {
            self.last_seq = last.seq;
            (self.proven_seq, self.is_sealed) = (self.proven_seq.max(header.durable_seq), false);
            self.live.add(last.seq, active.end - start);
        }
        Ok(())
    }
}

/// Creates the log's folder and makes its name durable.
fn create_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    vfs.create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
    let parent = match dir.parent() {
        Some(parent) if parent == Path::new("") => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    vfs.sync_dir(parent).map_err(|e| Error::io("sync", parent, e))
}
