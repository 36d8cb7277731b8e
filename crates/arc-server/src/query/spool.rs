//! Columns of bytes that come row by row and leave column by column.
//!
//! What is more than a few megabytes lies in a file without a name in the data directory, so that an answer takes no more
//! memory for being long. Never knows what the bytes mean. Blocks on the disk: used on the query threads only.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::PathBuf,
};

/// Bytes in memory, of all columns together, that go to the file at once.
const MEMORY_BYTES: usize = 4 << 20;

/// Bytes of columns.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    /// What is not yet in the file.
    columns: Vec<Vec<u8>>,
    file: Option<File>,
    /// Where in the file the parts of each column are.
    parts: Vec<Vec<Range<u64>>>,
    end: u64,
    /// The next that is taken: a column, a part of it, and a byte of the part.
    column: usize,
    part: usize,
    at: u64,
}

impl Spool {
    /// Returns an empty spool that keeps its file in `folder`.
    pub(super) fn new(folder: PathBuf, columns: usize) -> Self {
        Self {
            folder,
            columns: vec![Vec::new(); columns],
            file: None,
            parts: vec![Vec::new(); columns],
            end: 0,
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
        if self.columns.iter().map(Vec::len).sum::<usize>() < MEMORY_BYTES {
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.folder)?,
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_out_whole_and_in_order_wherever_they_were() {
        for rounds in [0, 1, 10, 500] {
            let folder = tempfile::tempdir().unwrap();
            let mut spool = Spool::new(folder.path().to_owned(), 3);
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
