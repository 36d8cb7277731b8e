//! An archive of ZIP, as spreadsheets and data portals hand out one file.
//!
//! Where a file lies in an archive is read with the library's own bounds; nothing is unpacked to disk, and no name of a file
//! in it is taken for a path.

use std::{
    fs::File,
    io::{self, BufRead, Read},
};

use flate2::{CrcReader, bufread::DeflateDecoder};
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder, ZipVerification};

pub(super) const MAGIC: &[u8] = b"PK\x03\x04";

/// What macOS puts beside each file.
const BESIDE: &str = "__MACOSX/";

/// The one file in an archive, and where its bytes lie.
#[derive(Debug)]
pub(super) struct ZipEntry {
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) stored_bytes: u64,
    is_deflated: bool,
    expected: ZipVerification,
}

/// A file that an archive names.
struct Listed {
    name: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    is_encrypted: bool,
}

impl ZipEntry {
    /// Finds the one file in an archive.
    ///
    /// # Errors
    ///
    /// What is wrong with the archive, as a sentence to go behind its name.
    pub(super) fn find(file: &File) -> Result<Self, String> {
        let damaged = |error: rawzip::Error| format!("it is a ZIP archive that cannot be read: {error}");
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let file = file.try_clone().map_err(|error| error.to_string())?;
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(damaged)?;
        let mut entries = archive.entries(&mut buffer);
        let mut found: Option<Listed> = None;
        while let Some(entry) = entries.next_entry().map_err(damaged)? {
            let name = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
            if entry.is_dir() || name.starts_with(BESIDE) {
                continue;
            }
            if let Some(other) = &found {
                let names = format!("{:?}, {name:?}", other.name);
                return Err(format!("it is a ZIP archive of several files ({names}); unpack it, and import each"));
            }
            let (place, method) = (entry.wayfinder(), entry.compression_method());
            found = Some(Listed { name, place, method, is_encrypted: entry.flags().is_encrypted() });
        }
        let Listed { name, place, method, is_encrypted } =
            found.ok_or_else(|| "it is a ZIP archive without a file".to_owned())?;
        if is_encrypted {
            return Err(format!("{name:?} in it needs a password; unpack it before"));
        }
        let is_deflated = method == CompressionMethod::DEFLATE;
        if !is_deflated && method != CompressionMethod::STORE {
            return Err(format!("{name:?} in it is packed by {method}; expected DEFLATE; unpack it before"));
        }
        let entry = archive.get_entry(place).map_err(damaged)?;
        let (start, end) = entry.compressed_data_range();
        let stored_bytes = end.saturating_sub(start);
        Ok(Self { name, start, stored_bytes, is_deflated, expected: entry.reader().claim_verifier() })
    }

    /// Returns the file's bytes, of those that lie in the archive. Reading them to the end fails if they are not what the
    /// archive says.
    pub(super) fn unpacked(&self, stored: impl BufRead + Send + 'static) -> Box<dyn Read + Send> {
        let plain: Box<dyn Read + Send> = match self.is_deflated {
            true => Box::new(DeflateDecoder::new(stored)),
            false => Box::new(stored),
        };
        Box::new(Checked { plain: CrcReader::new(plain), read: 0, expected: self.expected })
    }
}

/// Bytes whose sum is compared at their end.
struct Checked<R> {
    plain: CrcReader<R>,
    read: u64,
    expected: ZipVerification,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.plain.read(buffer)?;
        self.read += read as u64;
        if read == 0 && !buffer.is_empty() {
            let found = ZipVerification { crc: self.plain.crc().sum(), uncompressed_size: self.read };
            self.expected.valid(found).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Ok(read)
    }
}
