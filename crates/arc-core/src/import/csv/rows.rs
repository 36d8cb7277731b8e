//! The bytes of a CSV file, of which no row may take too many: a reader keeps a row whole.

use std::io::{self, BufRead, Read};

/// See the module.
pub(super) struct RowBytes {
    bytes: Box<dyn BufRead + Send>,
    longest: usize,
    left: usize,
}

impl RowBytes {
    pub(super) fn new(bytes: Box<dyn BufRead + Send>, longest: usize) -> Self {
        Self { bytes, longest, left: longest }
    }

    /// Says that a row has ended.
    pub(super) fn next_row(&mut self) {
        self.left = self.longest;
    }

    /// Passes over one line.
    pub(super) fn skip_line(&mut self) -> io::Result<()> {
        self.next_row();
        let mut line = Vec::new();
        let (most, longest) = (self.longest as u64 + 1, self.longest);
        if self.bytes.as_mut().take(most).read_until(b'\n', &mut line)? > longest {
            return Err(too_long(longest));
        }
        Ok(())
    }
}

impl Read for RowBytes {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(self.left);
        if most == 0 && !out.is_empty() && !self.bytes.fill_buf()?.is_empty() {
            return Err(too_long(self.longest));
        }
        let read = self.bytes.read(out.get_mut(..most).unwrap_or_default())?;
        self.left -= read;
        Ok(read)
    }
}

fn too_long(longest: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a row is longer than {longest} bytes"))
}
