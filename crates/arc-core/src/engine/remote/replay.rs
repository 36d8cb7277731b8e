//! Opening the log in the object store: keeping earlier writers out of it, and taking from it what this
//! machine's log has not.
//!
//! On the machine that has put the groups that is nothing, for only what is synced is put. On a new
//! one it is all that was not flushed; and so it is where the disk came back without the end of its
//! log.

use crate::{
    Result, SequenceNumber,
    catalog::Manifest,
    model::{WAL_DIR, WRITER},
    remote_log::{LogWriter, RemoteLog},
    store::{OpenStorage, Patience},
    wal::{Frame, ReplayedFrame, Wal, body_checksum},
};

/// Bytes of frames that are appended to the log at once.
const APPEND_BYTES: usize = 4 << 20;

/// A frame that is to be appended.
struct TakenFrame {
    seq: SequenceNumber,
    kind: u8,
    meta: Vec<u8>,
    body: bytes::Bytes,
}

/// Opens the log of a store whose manifest this engine has claimed, by its newest commit. Appends to
/// `wal` what that has not, and hands it to `visit`; it is on disk then.
///
/// Returns also the last frame that the store has.
pub(in crate::engine) fn open(
    storage: &OpenStorage,
    manifest: &Manifest,
    wal: &mut Wal,
    visit: &mut dyn FnMut(ReplayedFrame<'_>) -> Result<()>,
) -> Result<(RemoteLog, SequenceNumber)> {
    let state = manifest.state();
    let writer = LogWriter { epoch: manifest.number(), directory: state.directory.clone().unwrap_or_default() };
    let location = |patience| storage.location_with([WAL_DIR, WRITER], patience);
    if !state.remote_log {
        return Ok((RemoteLog::begin(location(Patience::Once), writer), state.flushed));
    }
    let (log, last_seq) = RemoteLog::take_over(location(Patience::Tries), writer)?;
    let own = wal.last_seq();
    if last_seq > own {
        take(&log, own, wal, visit)?;
        tracing::info!(after = own.0, through = last_seq.0, "replayed the log in the object store");
    }
    Ok((log.with_location(location(Patience::Once)), last_seq.max(state.flushed)))
}

/// Takes all frames after `own`.
fn take(
    log: &RemoteLog,
    own: SequenceNumber,
    wal: &mut Wal,
    visit: &mut dyn FnMut(ReplayedFrame<'_>) -> Result<()>,
) -> Result<()> {
    let (mut taken, mut bytes) = (Vec::new(), 0);
    log.read_after(own, &mut |frame| {
        let ReplayedFrame { seq, kind, meta, body } = &frame;
        bytes += meta.len() + body.len();
        taken.push(TakenFrame { seq: *seq, kind: *kind, meta: meta.to_vec(), body: body.clone() });
        visit(frame)?;
        if bytes >= APPEND_BYTES {
            append(wal, &taken)?;
            taken.clear();
            bytes = 0;
        }
        Ok(())
    })?;
    append(wal, &taken)?;
    wal.want_sync();
    wal.begin_sync().map_or(Ok(()), |sync| sync.run().map(drop))
}

fn append(wal: &mut Wal, taken: &[TakenFrame]) -> Result<()> {
    let frames: Vec<Frame<'_>> = taken.iter().map(TakenFrame::frame).collect();
    wal.append(&frames)
}

impl TakenFrame {
    fn frame(&self) -> Frame<'_> {
        let Self { seq, kind, meta, body } = self;
        Frame { seq: *seq, kind: *kind, meta, body, body_crc: body_checksum(body) }
    }
}
