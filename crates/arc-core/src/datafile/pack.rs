//! Packs: files in which small data files of many tables lie one after the other, each of them
//! whole.
//!
//! Owns the bytes of a pack (docs/format.md, "Packs") and the paths of the data files in one: those
//! of no file, but of a range in the pack. A thread that opens a data file does it through
//! [`open_data_file`], and need not know where it is. Never decides which data files are packed,
//! and never removes a pack: it goes with the last of them.

use std::{
    io,
    path::{Path, PathBuf},
};

use ulid::Ulid;

use super::{folders::create_with_folders, past::where_it_lies, sink::Sink};
use crate::{
    Error, Result,
    model::{PartitionDay, TEMPORARY_SUFFIX, pack_path, packed},
    sync::Mutex,
    vfs::{Vfs, VfsFile},
};

/// Bytes of an [`PackEntry`] and the end of its line without the names, at most.
const ENTRY_BYTES: u64 = 128;
/// What a pack begins and ends with.
const MAGIC: [u8; 8] = *b"ARCPACK1";

/// Opens a data file for reading, wherever it is.
pub(crate) fn open_data_file(vfs: &dyn Vfs, path: &Path) -> io::Result<Box<dyn VfsFile>> {
    match path.to_str().and_then(packed) {
        Some((pack, range)) => vfs.open_range(Path::new(pack), range),
        None => where_it_lies(path, |path| vfs.open_read(path)),
    }
}

/// Whose rows a packed data file has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) database: &'a str,
    pub(crate) table: &'a str,
    pub(crate) day: PartitionDay,
}

/// What a pack says of a data file in it, for those who have no manifest.
#[derive(Debug, serde::Serialize)]
struct PackEntry<'a> {
    database: &'a str,
    table: &'a str,
    day: String,
    offset: u64,
    bytes: u64,
}

/// A pack that is being written. It is made with its first data file, and has its name once it is
/// finished.
#[derive(Debug)]
pub(crate) struct PackWriter<'a> {
    vfs: &'a dyn Vfs,
    root: &'a Path,
    path: String,
    state: Mutex<Option<PackState>>,
}

#[derive(Debug)]
struct PackState {
    sink: Sink,
    offset: u64,
    /// One line for each data file.
    entries: Vec<u8>,
}

impl<'a> PackWriter<'a> {
    /// Begins a pack; touches nothing yet.
    pub(crate) fn new(vfs: &'a dyn Vfs, root: &'a Path, id: Ulid) -> Self {
        Self { vfs, root, path: pack_path(id), state: Mutex::default() }
    }

    /// Returns the pack's path below the data directory.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns its size by now; 0 while nothing is in it.
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().as_ref().map_or(0, |state| state.offset)
    }

    /// Returns how many bytes a pack takes, at most, to say whose a data file is.
    pub(crate) fn most_bytes_about(database: &str, table: &str) -> u64 {
        // A quotation mark becomes two bytes; names have nothing that becomes more.
        2 * (database.len() + table.len()) as u64 + ENTRY_BYTES
    }

    /// Appends a whole data file of a table; returns the path that it has from now on.
    pub(crate) fn append(&self, owner: Owner<'_>, file: &[u8]) -> Result<String> {
        let mut state = self.state.lock();
        let state = match state.as_mut() {
            Some(state) => state,
            None => state.insert(self.create()?),
        };
        let (offset, bytes) = (state.offset, file.len() as u64);
        state.append(file).map_err(|e| self.failed("write", e))?;
        let Owner { database, table, day } = owner;
        let entry = PackEntry { database, table, day: day.to_string(), offset, bytes };
        serde_json::to_writer(&mut state.entries, &entry).map_err(|e| self.failed("write", e.into()))?;
        state.entries.push(b'\n');
        Ok(format!("{}/{offset}-{bytes}.parquet", self.path))
    }

    fn create(&self) -> Result<PackState> {
        let file = create_with_folders(self.vfs, &self.temporary())?;
        let mut state = PackState { sink: Sink::new(file), offset: 0, entries: Vec::new() };
        state.append(&MAGIC).map_err(|e| self.failed("write", e))?;
        Ok(state)
    }

    /// Syncs the pack and gives it its name, which its folder makes durable. Returns its path, or
    /// `None` if nothing is in it.
    pub(crate) fn finish(self) -> Result<Option<String>> {
        let Some(state) = self.state.lock().take() else { return Ok(None) };
        let result = self.publish(state);
        if result.is_err() {
            self.remove_temporary();
        }
        result.map(|()| Some(self.path.clone()))
    }

    fn publish(&self, mut state: PackState) -> Result<()> {
        let entries = std::mem::take(&mut state.entries);
        let length = (entries.len() as u64).to_le_bytes();
        [&entries, &length[..], &MAGIC]
            .into_iter()
            .try_for_each(|bytes| state.append(bytes))
            .and_then(|()| state.sink.finish().map(drop))
            .map_err(|e| self.failed("sync", e))?;
        let temporary = self.temporary();
        self.vfs.rename(&temporary, &self.root.join(&self.path)).map_err(|e| Error::io("rename", temporary, e))
    }

    fn temporary(&self) -> PathBuf {
        self.root.join(format!("{}{TEMPORARY_SUFFIX}", self.path))
    }

    fn failed(&self, action: &'static str, error: io::Error) -> Error {
        Error::io(action, self.temporary(), error)
    }

    fn remove_temporary(&self) {
        // Best effort: what stays is in no manifest and is removed as an orphan on the next open.
        let _ = self.vfs.remove_file(&self.temporary());
    }
}

impl PackState {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.sink, bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for PackWriter<'_> {
    fn drop(&mut self) {
        if self.state.get_mut().take().is_some() {
            self.remove_temporary();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::stored_path, vfs::CrashFs};

    const PACK: &str = "data/_packs/01ARZ3NDEKTSV4RRFFQ69G5FAV.pack";

    #[test]
    fn only_a_place_in_a_pack_of_ours_is_one() {
        let cases = [
            ("8-100.parquet", Some(8..108)),
            ("0-0.parquet", Some(0..0)),
            ("18446744073709551615-1.parquet", None),
            ("8-100", None),
            ("8.parquet", None),
            ("-8-100.parquet", None),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAV.parquet", None),
        ];
        for (name, range) in cases {
            let path = format!("{PACK}/{name}");
            assert_eq!(packed(&path), range.clone().map(|range| (PACK, range)), "{name}");
            assert_eq!(stored_path(&path), if range.is_some() { PACK } else { &*path });
            assert_eq!(packed(&format!("data/d/t/day=1970-01-01/{name}")), None);
            assert_eq!(packed(&format!("data/_packs/mine.pack/{name}")), None);
        }
        assert_eq!((packed(PACK), packed("")), (None, None));
    }

    #[test]
    fn a_pack_that_is_not_finished_leaves_nothing_and_an_empty_one_is_never_made() {
        let fs = CrashFs::new();
        let root = Path::new("/r");
        let pack = || PackWriter::new(&fs, root, Ulid::from_parts(1, 2));
        assert_eq!(pack().finish().unwrap(), None);
        let owner = Owner { database: "d", table: "t", day: PartitionDay::from_time_ns(0) };
        let dropped = pack();
        dropped.append(owner, b"file").unwrap();
        drop(dropped);
        assert_eq!(fs.current().files().count(), 0);
        let finished = pack();
        let paths = [b"one".as_slice(), b"", b"three"].map(|file| finished.append(owner, file).unwrap());
        assert_eq!(finished.bytes(), 8 + 8);
        assert!(finished.finish().unwrap().is_some());
        let read = |path: &str| {
            let file = open_data_file(&fs, &root.join(path)).unwrap();
            let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap() + 1];
            let read = file.read_at(&mut bytes, 0).unwrap();
            bytes.truncate(read);
            bytes
        };
        assert_eq!(paths.map(|path| read(&path)), [b"one".to_vec(), Vec::new(), b"three".to_vec()]);
        // Where the pack ends before it, there is as much of it as there is.
        let beyond = format!("{}/16-100000.parquet", stored_path(&pack().path));
        assert!(read(&beyond).ends_with(&MAGIC));
    }
}
