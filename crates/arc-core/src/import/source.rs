//! A file to import: what it is known by, and its bytes, decompressed as they are read.
//!
//! Owns the rule for a file's primary key, on which going on after an interruption rests: its
//! length, its first and its last 64 KiB, wherever it lies and whatever it is called. Two files
//! that agree in that much and differ between are found out later, for the bodies of their writes
//! differ under one key.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    GzipMembers, ImportFormat, ImportOptions,
    zip::{self, ZipEntry},
};
use crate::{Error, Result};

/// How much of a file's beginning and of its end goes into its primary key.
const IDENTITY_BYTES: u64 = 64 << 10;
const BUFFER_BYTES: usize = 256 << 10;
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// 128 MiB: what a zstd stream may ask for as its window; `zstd --long` does.
const MAX_ZSTD_WINDOW_LOG: u32 = 27;

/// A file to import.
#[derive(Debug)]
pub struct ImportFile {
    name: String,
    file: File,
}

impl ImportFile {
    /// Takes an open file; `name` is what it is called in reports, and its end may say the format.
    #[must_use]
    pub fn new(name: impl Into<String>, file: File) -> Self {
        Self { name: name.into(), file }
    }

    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be opened.
    #[expect(clippy::disallowed_methods, reason = "the file is the caller's, outside of the data directory")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        Ok(Self::new(path.display().to_string(), file))
    }

    /// Takes what a stream has to its end, and lays it down in a temporary file, since a file is
    /// read more than once.
    ///
    /// # Errors
    ///
    /// If the stream cannot be read, or there is no room for it.
    pub fn of_stream(name: impl Into<String>, stream: &mut dyn Read) -> io::Result<Self> {
        let mut file = tempfile::tempfile()?;
        io::copy(stream, &mut file)?;
        Ok(Self::new(name, file))
    }

    /// Returns how many bytes it has; 0 if that cannot be said.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Returns what the file is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A file, and what is known of it before it is read.
#[derive(Debug)]
pub(super) struct ImportSource {
    pub(super) name: String,
    pub(super) format: ImportFormat,
    primary_key: String,
    compression: Compression,
    file: File,
    /// How far the file was read, as it lies on disk.
    position: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Compression {
    None,
    Gzip,
    Zstd,
    Zip(ZipEntry),
}

impl ImportSource {
    pub(super) fn new(file: ImportFile, options: &ImportOptions) -> Result<Self> {
        let ImportFile { name, mut file } = file;
        let failed = |error| Error::io("read", &name, error);
        let (primary_key, head) = identify(&mut file).map_err(failed)?;
        let compression = match head.as_slice() {
            head if head.starts_with(GZIP_MAGIC) => Compression::Gzip,
            head if head.starts_with(ZSTD_MAGIC) => Compression::Zstd,
            head if head.starts_with(zip::MAGIC) => {
                let entry = ZipEntry::find(&file).map_err(|reason| Error::Import { file: name.clone(), reason })?;
                Compression::Zip(entry)
            }
            _ => Compression::None,
        };
        let unknown = || Error::Import {
            file: name.clone(),
            reason: "its name does not say its format; expected .lp, .csv, .parquet or .arrow, or the format"
                .to_owned(),
        };
        let format = options.format.or_else(|| ImportFormat::of_name(inner_name(&name, &compression)));
        let format = format.ok_or_else(unknown)?;
        Ok(Self { name, format, primary_key, compression, file, position: Arc::default() })
    }

    /// Returns the key of the piece of this file that begins at `offset`, a number that counts up
    /// along the file.
    ///
    /// Settings are not part of it: the same file with other settings is refused as another write
    /// under the same key, rather than stored twice.
    pub(super) fn key(&self, options: &ImportOptions, offset: u64) -> Option<String> {
        let mut name = crc32c::crc32c(options.id.as_ref()?.as_bytes());
        name = crc32c::crc32c_append(name, &[0]);
        name = crc32c::crc32c_append(name, options.table.as_deref().unwrap_or_default().as_bytes());
        Some(format!("import-{}-{name:08x}-{offset}", self.primary_key))
    }

    /// Returns whether its name says that tabs stand between its values.
    pub(super) fn is_tabbed(&self) -> bool {
        let name = inner_name(&self.name, &self.compression).to_ascii_lowercase();
        let inner = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        inner.ends_with(".tsv") || inner.ends_with(".tab")
    }

    pub(super) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Returns the bytes from the beginning, decompressed.
    pub(super) fn read(&self) -> Result<Box<dyn BufRead + Send>> {
        let from = match &self.compression {
            Compression::Zip(entry) => entry.start,
            _ => 0,
        };
        let counted = BufReader::with_capacity(BUFFER_BYTES, self.counted(from)?);
        let failed = |error| Error::io("read", &self.name, error);
        Ok(match &self.compression {
            Compression::None => Box::new(counted),
            Compression::Gzip => Box::new(BufReader::with_capacity(BUFFER_BYTES, GzipMembers::new(counted))),
            Compression::Zstd => {
                let mut plain = zstd::stream::read::Decoder::with_buffer(counted).map_err(failed)?;
                plain.window_log_max(MAX_ZSTD_WINDOW_LOG).map_err(failed)?;
                Box::new(BufReader::with_capacity(BUFFER_BYTES, plain))
            }
            Compression::Zip(entry) => {
                Box::new(BufReader::with_capacity(BUFFER_BYTES, entry.unpacked(counted.take(entry.stored_bytes))))
            }
        })
    }

    /// Returns the bytes as a file that can be read at any place; one that is compressed is written
    /// out first.
    pub(super) fn seekable(&self, options: &ImportOptions) -> Result<File> {
        let failed = |error| Error::io("decompress", &self.name, error);
        if matches!(self.compression, Compression::None) {
            return self.file.try_clone().map_err(failed);
        }
        let plain = options.unpack_in.as_ref().map_or_else(tempfile::tempfile, tempfile::tempfile_in);
        let (mut plain, most) = (plain.map_err(failed)?, options.unpacked_bytes);
        let written = io::copy(&mut self.read()?.take(most.saturating_add(1)), &mut plain).map_err(failed)?;
        if written > most {
            return Err(self.bad(format!("it has more than {most} bytes when it is unpacked")));
        }
        Ok(plain)
    }

    /// Says what is wrong with the file.
    pub(super) fn bad(&self, reason: impl Into<String>) -> Error {
        Error::Import { file: self.name.clone(), reason: reason.into() }
    }

    fn counted(&self, from: u64) -> Result<CountedReader> {
        let failed = |error| Error::io("read", &self.name, error);
        let file = self.file.try_clone().map_err(failed)?;
        Ok(CountedReader { file, at: from, position: Arc::clone(&self.position) })
    }
}

/// Reads a file from some place on, and says how far it came.
///
/// All readings of one file share its cursor, so that each goes to its own place first.
struct CountedReader {
    file: File,
    at: u64,
    position: Arc<AtomicU64>,
}

impl Read for CountedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.at))?;
        let read = self.file.read(buffer)?;
        self.at += read as u64;
        self.position.store(self.at, Ordering::Relaxed);
        Ok(read)
    }
}

/// Returns what a file is called whose bytes are read.
fn inner_name<'a>(name: &'a str, compression: &'a Compression) -> &'a str {
    match compression {
        Compression::Zip(entry) => &entry.name,
        _ => name,
    }
}

/// Returns a file's primary key, and its first bytes.
fn identify(file: &mut File) -> io::Result<(String, Vec<u8>)> {
    let length = file.metadata()?.len();
    let mut part = |from: u64| {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        (&mut *file).take(IDENTITY_BYTES).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    let (head, tail) = (part(0)?, part(length.saturating_sub(IDENTITY_BYTES))?);
    Ok((format!("{length:x}-{:08x}{:08x}", crc32c::crc32c(&head), crc32c::crc32c(&tail)), head))
}
