//! How far the log is acknowledged, for the processes that read it while another writes it
//! (docs/format.md, "How far the log is acknowledged").
//!
//! One small file beside the segments, which the writer overwrites for each group before it
//! acknowledges it; a copy of a log gets one when it is whole. Never synced, and of no use after a crash: it says which of the frames that
//! other processes see in the system's memory they may take. The log proves by itself, a little
//! later, what was synced; so nothing is lost where the file is missing or cannot be written.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::{
    Error, Result, SequenceNumber,
    vfs::{Vfs, VfsFile},
};

/// The file's name in the log's folder.
pub(crate) const ACKNOWLEDGED_FILE: &str = "acknowledged";
const BYTES: usize = 16;

/// The file, open for the writer.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    /// `None` if it could not be opened.
    file: Option<Box<dyn VfsFile>>,
    has_failed: AtomicBool,
    /// What was noted last.
    last: AtomicU64,
    /// What tells processes on other machines whose log this is.
    #[cfg_attr(not(feature = "object-store"), expect(dead_code, reason = "other machines share an object store"))]
    identity: LogIdentity,
}

/// Whose log it is: the name of the data directory, if it has one, and the number of the commit with
/// which it was opened.
#[derive(Debug, Default)]
#[cfg_attr(not(feature = "object-store"), expect(dead_code, reason = "other machines share an object store"))]
pub(crate) struct LogIdentity {
    pub(crate) directory: Option<String>,
    pub(crate) opening: u64,
}

impl Acknowledged {
    /// Opens the file in the log's folder, and says that everything up to `seq` is acknowledged.
    pub(crate) fn open(vfs: &Arc<dyn Vfs>, dir: &Path, seq: SequenceNumber) -> Self {
        let path = dir.join(ACKNOWLEDGED_FILE);
        let file = match vfs.open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => vfs.create_new(&path),
            opened => opened,
        };
        let file = file.inspect_err(|error| Self::warn(&path, error)).ok();
        let (has_failed, last, identity) = (AtomicBool::new(false), AtomicU64::new(seq.0), LogIdentity::default());
        let acknowledged = Self { vfs: Arc::clone(vfs), path, file, has_failed, last, identity };
        acknowledged.note(seq);
        acknowledged
    }

    /// Says whose log it is.
    pub(crate) fn of(self, identity: LogIdentity) -> Self {
        Self { identity, ..self }
    }

    /// Returns whose log it is.
    #[cfg(feature = "object-store")]
    pub(crate) fn identity(&self) -> &LogIdentity {
        &self.identity
    }

    /// Returns what was noted last.
    pub(crate) fn last(&self) -> SequenceNumber {
        SequenceNumber(self.last.load(Ordering::Acquire))
    }

    /// Notes that all frames up to `seq` are acknowledged, or are about to be.
    pub(crate) fn note(&self, seq: SequenceNumber) {
        self.last.store(seq.0, Ordering::Release);
        let Some(file) = self.file.as_ref().filter(|_| !self.has_failed.load(Ordering::Relaxed)) else { return };
        if let Err(error) = file.write_all_at(&[&encode(seq)], 0) {
            Self::warn(&self.path, &error);
            self.has_failed.store(true, Ordering::Relaxed);
            // Without it readers go by what the log proves. If it cannot be removed either, what it
            // says stays true.
            let _ = self.vfs.remove_file(&self.path);
        }
    }

    fn warn(path: &Path, error: &io::Error) {
        let path = path.display();
        tracing::warn!(%path, %error, "other processes that read here see points a second or two later");
    }
}

/// Returns what the writer of the log in `dir` has said last; 0 if it says nothing.
///
/// # Errors
///
/// [`Error::Io`]: to go on without would be to miss what was acknowledged.
pub(crate) fn acknowledged(vfs: &dyn Vfs, dir: &Path) -> Result<SequenceNumber> {
    let path = dir.join(ACKNOWLEDGED_FILE);
    let mut bytes = [0; BYTES];
    // The writer may be about to write it.
    for _ in 0..3 {
        match vfs.open_read(&path).and_then(|file| file.read_at(&mut bytes, 0)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => break,
            read => read.map_err(|e| Error::io("read", &path, e))?,
        };
        if let Some(seq) = decode(&bytes) {
            return Ok(seq);
        }
    }
    Ok(SequenceNumber::default())
}

/// Takes back what was said last, where frames are about to be given up.
pub(super) fn forget(vfs: &dyn Vfs, dir: &Path) {
    // Where it cannot be removed, readers miss frames until the directory is opened for writing.
    let _ = vfs.remove_file(&dir.join(ACKNOWLEDGED_FILE));
}

fn encode(seq: SequenceNumber) -> [u8; BYTES] {
    let seq = seq.0.to_le_bytes();
    let crc = crc32c::crc32c(&seq).to_le_bytes();
    let mut bytes = [0; BYTES];
    bytes.iter_mut().zip(seq.iter().chain(&crc)).for_each(|(to, from)| *to = *from);
    bytes
}

fn decode(bytes: &[u8; BYTES]) -> Option<SequenceNumber> {
    let (seq, rest) = bytes.split_first_chunk::<8>()?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    (crc32c::crc32c(seq) == u32::from_le_bytes(*crc)).then(|| SequenceNumber(u64::from_le_bytes(*seq)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{CrashFs, Fault, FaultFs};

    const DIR: &str = "/wal";

    #[test]
    fn what_is_noted_is_read_and_nonsense_is_nothing() {
        let fs: Arc<dyn Vfs> = Arc::new(CrashFs::new());
        let dir = Path::new(DIR);
        fs.create_dir_all(dir).unwrap();
        assert_eq!(acknowledged(&*fs, dir).unwrap(), SequenceNumber(0), "there is none");
        let noted = Acknowledged::open(&fs, dir, SequenceNumber(3));
        assert_eq!(acknowledged(&*fs, dir).unwrap(), SequenceNumber(3));
        noted.note(SequenceNumber(u64::MAX));
        assert_eq!(acknowledged(&*fs, dir).unwrap(), SequenceNumber(u64::MAX));
        drop(Acknowledged::open(&fs, dir, SequenceNumber(7)));
        assert_eq!(acknowledged(&*fs, dir).unwrap(), SequenceNumber(7), "it is opened again");
        for bytes in [&[0; BYTES][..], &[0xFF; BYTES], &[1]] {
            fs.open(&dir.join(ACKNOWLEDGED_FILE)).unwrap().write_all_at(&[bytes], 0).unwrap();
            assert_eq!(acknowledged(&*fs, dir).unwrap(), SequenceNumber(0), "{bytes:?}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_given_up() {
        let disk = CrashFs::new();
        disk.create_dir_all(Path::new(DIR)).unwrap();
        let faults = Arc::new(FaultFs::new(Arc::new(disk.clone())));
        let fs: Arc<dyn Vfs> = Arc::<FaultFs>::clone(&faults);
        let noted = Acknowledged::open(&fs, Path::new(DIR), SequenceNumber(3));
        faults.set(Fault::nth(1, io::ErrorKind::Other));
        noted.note(SequenceNumber(4));
        noted.note(SequenceNumber(5));
        assert_eq!(faults.failed().len(), 1);
        assert_eq!(acknowledged(&disk, Path::new(DIR)).unwrap(), SequenceNumber(0), "it is not there any more");
    }
}
