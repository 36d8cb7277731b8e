//! Blocks of packs that were fetched to read a part of them, and kept for the parts beside it.
//!
//! What reads many small data files goes from table to table, and so do packs: of each it reads one
//! file after the other. One request brings some hundred of them. Packs never change, so that a
//! block is right for as long as it is kept.

use std::{collections::VecDeque, io, ops::Range, time::SystemTime};

use bytes::Bytes;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStoreExt, path::Path as StorePath};
use parking_lot::Mutex;

use super::client::{StoreClient, check_length, io_error};

/// Bytes of a block, and how many are kept: some of each pack that a merge reads from.
const BLOCK_BYTES: u64 = 256 << 10;
const MAX_BLOCKS: usize = 32;

/// The blocks that were fetched last.
#[derive(Debug, Default)]
pub(super) struct BlockCache(Mutex<VecDeque<FetchedBlock>>);

/// Some bytes of an object, as many as there are.
#[derive(Debug, Clone)]
pub(super) struct FetchedBlock {
    key: StorePath,
    start: u64,
    pub(super) modified: SystemTime,
    pub(super) bytes: Bytes,
}

impl FetchedBlock {
    /// Returns a part of it, if it has all of that.
    fn part(&self, key: &StorePath, range: &Range<u64>) -> Option<Self> {
        let end = self.start + self.bytes.len() as u64;
        (self.key == *key && self.start <= range.start && range.end <= end).then(|| self.cut(range))
    }

    /// Returns as much of a range as it has.
    fn cut(&self, range: &Range<u64>) -> Self {
        let at = |offset: u64| {
            usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX).min(self.bytes.len())
        };
        let bytes = self.bytes.slice(at(range.start)..at(range.end.max(range.start)));
        Self { bytes, start: range.start, ..self.clone() }
    }
}

impl BlockCache {
    /// Returns some bytes of an object, as many of them as there are.
    pub(super) fn read(&self, client: &StoreClient, key: &StorePath, range: &Range<u64>) -> io::Result<FetchedBlock> {
        if let Some(part) = self.0.lock().iter().find_map(|block| block.part(key, range)) {
            return Ok(part);
        }
        let start = range.start - range.start % BLOCK_BYTES;
        let fetched = fetch(client, key, start..range.end.max(start + BLOCK_BYTES))?;
        let found = fetched.cut(range);
        // What is larger is none of many.
        if fetched.bytes.len() as u64 <= 2 * BLOCK_BYTES {
            let mut kept = self.0.lock();
            kept.truncate(MAX_BLOCKS - 1);
            kept.push_front(fetched);
        }
        Ok(found)
    }
}

fn fetch(client: &StoreClient, key: &StorePath, range: Range<u64>) -> io::Result<FetchedBlock> {
    let start = range.start;
    let get = || {
        let (store, key) = (client.store(), key.clone());
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), ..GetOptions::default() };
        async move {
            let size = match store.get_opts(&key, options).await {
                Ok(got) => {
                    let (meta, range) = (got.meta.clone(), got.range.clone());
                    let bytes = got.bytes().await?;
                    check_length(bytes.len(), range.end - range.start)?;
                    return Ok((meta, bytes));
                }
                // A range after the end is an error, which says that in as many ways as there are
                // stores.
                Err(error) => (store.head(&key).await?, error),
            };
            match size {
                (meta, _) if meta.size <= start => Ok((meta, Bytes::new())),
                (_, error) => Err(error),
            }
        }
    };
    let (ObjectMeta { last_modified, .. }, bytes) = client.ask(get).map_err(io_error)?;
    Ok(FetchedBlock { key: key.clone(), start, modified: last_modified.into(), bytes })
}
