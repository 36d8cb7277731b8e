//! Columns of bytes that come row by row and leave column by column.
//!
//! What is more than a few megabytes lies in a file without a name in the data directory, so that an answer takes no more
//! memory for being long; all files together have a limit, lest answers fill the disk that points need. Never knows what
//! the bytes mean. Blocks on the disk: used on the query threads only.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Bytes in memory, of all columns together, that go to the file at once.
const MEMORY_BYTES: usize = 4 << 20;

/// Most bytes in the files of all spools.
const DISK_BYTES: u64 = 4 << 30;

/// Where spools have their files, and how many bytes those have.
#[derive(Debug)]
pub(crate) struct Spools {
    folder: PathBuf,
    bytes: AtomicU64,
    most_bytes: u64,
}

impl Spools {
    /// Returns the spools of one server, whose files are in `folder`.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, bytes: AtomicU64::new(0), most_bytes: DISK_BYTES }
    }

    /// Takes room on the disk, or says that there is none.
    fn take(&self, bytes: u64) -> io::Result<()> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.most_bytes {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            let text = format!("answers that wait on disk have {} bytes together at most", self.most_bytes);
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        Ok(())
    }
}

/// Bytes of columns.
#[derive(Debug)]
pub(super) struct Spool {
    spools: Arc<Spools>,
    /// What is not yet in the file.
    columns: Vec<Vec<u8>>,
    file: Option<File>,
    /// Where in the file the parts of each column are.
    parts: Vec<Vec<Range<u64>>>,
    end: u64,
    /// Room on the disk.
    taken: u64,
    /// The next that is taken: a column, a part of it, and a byte of the part.
    column: usize,
    part: usize,
    at: u64,
}

impl Spool {
    /// Returns an empty spool among others.
    pub(super) fn new(spools: &Arc<Spools>, columns: usize) -> Self {
        Self {
            spools: Arc::clone(spools),
            columns: vec![Vec::new(); columns],
            file: None,
            parts: vec![Vec::new(); columns],
            end: 0,
            taken: 0,
            column: 0,
            part: 0,
            at: 0,
        }
    }

    /// Returns the columns, for bytes to be added to their ends.
    pub(super) fn columns(&mut self) -> &mut [Vec<u8>] {
        &mut self.columns
    }

    /// Makes room in memory, if much is taken.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        let bytes = self.columns.iter().map(Vec::len).sum::<usize>();
        if bytes < MEMORY_BYTES {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.spools.folder)?,
        };
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.spools.take(bytes)?;
        self.taken += bytes;
        for (column, parts) in self.columns.iter_mut().zip(&mut self.parts) {
            file.write_all(column)?;
            let end = self.end + u64::try_from(column.len()).unwrap_or_default();
            parts.push(self.end..end);
            self.end = end;
            column.clear();
        }
        self.file = Some(file);
        Ok(())
    }

    /// Moves about `most` bytes of the first column that is not yet taken to the end of `out`; returns whether that was the
    /// rest of it.
    pub(super) fn take(&mut self, out: &mut Vec<u8>, most: usize) -> io::Result<bool> {
        let part = self.parts.get(self.column).and_then(|parts| parts.get(self.part));
        let (Some(part), Some(file)) = (part, &mut self.file) else {
            if let Some(column) = self.columns.get_mut(self.column) {
                out.append(column);
            }
            (self.column, self.part, self.at) = (self.column + 1, 0, 0);
            return Ok(true);
        };
        let start = part.start + self.at;
        let length = (part.end - start).min(u64::try_from(most).unwrap_or(u64::MAX));
        file.seek(SeekFrom::Start(start))?;
        if file.take(length).read_to_end(out)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += length;
        if start + length == part.end {
            (self.part, self.at) = (self.part + 1, 0);
        }
        Ok(false)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.spools.bytes.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spools_share_the_room_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut spools = Spools::new(folder.path().to_owned());
        spools.most_bytes = 10 << 20;
        let spools = Arc::new(spools);
        let fill = |spool: &mut Spool| {
            spool.columns()[0].resize(5 << 20, 7);
            spool.settle()
        };
        let (mut first, mut second) = (Spool::new(&spools, 1), Spool::new(&spools, 1));
        assert!(fill(&mut first).is_ok() && fill(&mut second).is_ok());
        assert_eq!(fill(&mut second).unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        drop(first);
        assert!(fill(&mut second).is_ok());
        drop(second);
        assert_eq!(spools.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn columns_come_out_whole_and_in_order_wherever_they_were() {
        for rounds in [0, 1, 10, 500] {
            let folder = tempfile::tempdir().unwrap();
            let mut spool = Spool::new(&Arc::new(Spools::new(folder.path().to_owned())), 3);
            let mut expected = vec![Vec::new(); 3];
            for round in 0..rounds {
                for (n, (column, expected)) in spool.columns().iter_mut().zip(&mut expected).enumerate() {
                    let bytes = vec![u8::try_from((round + n) % 251).unwrap(); n * 20_000];
                    column.extend_from_slice(&bytes);
                    expected.extend_from_slice(&bytes);
                }
                spool.settle().unwrap();
                assert!(spool.columns.iter().map(Vec::len).sum::<usize>() < MEMORY_BYTES);
            }
            assert_eq!(spool.file.is_some(), rounds >= 100);
            // Without a name, so that nothing stays behind.
            assert_eq!(folder.path().read_dir().unwrap().count(), 0);
            for expected in expected {
                let mut column = Vec::new();
                while !spool.take(&mut column, 100_000).unwrap() {}
                assert!(column == expected, "{rounds}");
            }
        }
    }
}
