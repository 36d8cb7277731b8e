//! Asking an object store whether it keeps the promises that an engine lives by.
//!
//! Owns what these are and how each is tried. Everything is put below `probe/` of the prefix and removed again;
//! nothing else is touched. One request that fails ends it: an unclear answer proves nothing.

use std::{fmt, future::Future, time::Duration};

use futures::{FutureExt, StreamExt, TryStreamExt, future::join_all, stream};
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, path::Path as StorePath,
};
use ulid::Ulid;

use super::{ObjectStorage, OpenStorage, PutError, client::io_error};
use crate::{
    Error, Result,
    random::{RandomSource, SystemRandom},
    sync,
};

/// The folder, below the prefix.
const PROBE_DIR: &str = "probe";
/// Clients that put the same name at once, and how often.
const RACERS: u8 = 8;
const RACES: usize = 8;

/// What an object store was found to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbeReport {
    /// The promises that it has kept, in the order in which they were tried.
    pub kept: Vec<KeptPromise>,
}

/// One promise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptPromise {
    /// What it is.
    pub promise: &'static str,
    /// How many requests it took to find out.
    pub requests: u32,
    /// How long they took together.
    pub took: Duration,
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for KeptPromise { promise, requests, took } in &self.kept {
            writeln!(f, "kept: {promise} ({requests} requests, {:.1} ms)", took.as_secs_f64() * 1e3)?;
        }
        write!(f, "the object store keeps its promises")
    }
}

/// Tries whether an object store does what an engine needs of it: that an object is put only if there is
/// none, also where eight clients try at once; that what was put is seen by everybody, by name and in
/// listings; that ranges are read, and objects removed.
///
/// Takes some 100 requests, of which 70 are puts, and leaves nothing there. May be called while engines use the store.
///
/// ```
/// use std::sync::Arc;
///
/// use arc_core::store::{ObjectStorage, probe};
/// use object_store::memory::InMemory;
///
/// let report = probe(ObjectStorage::new(Arc::new(InMemory::new()), "plants/north"))?;
/// println!("{report}");
/// # Ok::<(), arc_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::BadStore`] with the promise that it breaks; [`Error::InvalidOption`] for a prefix that
/// cannot be one; [`Error::Io`] for a request that fails, which says nothing about the others.
pub fn probe(storage: ObjectStorage) -> Result<ProbeReport> {
    let storage = OpenStorage::new(storage)?;
    let mut probe =
        Probe { dir: storage.key([PROBE_DIR, &new_name()]), storage: &storage, report: ProbeReport::default() };
    let found = probe.run();
    // Best effort: what stays is in nobody's way.
    let _ = probe.clear();
    found.map(|()| probe.report)
}

/// Tries whether a store refuses to replace an object, with two puts: for the first engine that comes to
/// it.
pub(super) fn check_create(storage: &OpenStorage) -> Result<()> {
    let (location, name) = (storage.location_with([PROBE_DIR, "first"], super::Patience::Tries), new_name());
    let put = |bytes: &[u8]| match location.put_new(&name, bytes) {
        Ok(()) => Ok(true),
        Err(PutError::Taken) => Ok(false),
        Err(PutError::NotThere(error) | PutError::Unknown(error)) => Err(error),
    };
    let puts = put(b"first").and_then(|first| Ok((first, put(b"second")?)));
    let removed = location.remove(&name);
    match puts? {
        (true, false) => removed.map_err(|e| Error::io("remove", location.path(&name), e)),
        (_, _) => Err(broken(CREATES, "it replaced one that was there")),
    }
}

const CREATES: &str = "an object is put only if there is none of its name";
const RACE: &str = "of eight clients that put one name at once, one succeeds";
const READS: &str = "what was put is read back";
const RANGES: &str = "a range of an object is read";
const LISTS: &str = "what was put is in the listing";
const REMOVES: &str = "what was removed is gone";

struct Probe<'a> {
    storage: &'a OpenStorage,
    dir: StorePath,
    report: ProbeReport,
}

impl Probe<'_> {
    fn run(&mut self) -> Result<()> {
        let body: Vec<u8> = (0..=255).cycle().take(4096).collect();
        self.try_promise(CREATES, |probe| {
            probe.expect_put("a", &body, CREATES)?;
            match probe.put("a", b"another")? {
                false => Ok(2),
                true => Err(broken(CREATES, "a second put of the same name succeeded")),
            }
        })?;
        self.try_promise(READS, |probe| {
            if probe.get("a")? != Some(body.clone()) {
                return Err(broken(READS, "other bytes came than were put first"));
            }
            match probe.get("absent")? {
                None => Ok(2),
                Some(_) => Err(broken(READS, "there was an object that nobody has put")),
            }
        })?;
        self.try_promise(RANGES, |probe| {
            let (store, key) = (probe.storage.store(), probe.dir.clone().join("a"));
            let range = probe.ask(async move { store.get_range(&key, 300..1300).await })?;
            match body.get(300..1300) == Some(range.as_ref()) {
                true => Ok(1),
                false => Err(broken(RANGES, "other bytes came than are there")),
            }
        })?;
        self.try_promise(RACE, |probe| {
            for race in 0..RACES {
                probe.race(&format!("race-{race}"))?;
            }
            Ok(u32::from(RACERS + 1) * u32::try_from(RACES).unwrap_or(u32::MAX))
        })?;
        self.try_promise(LISTS, |probe| {
            let found = probe.list()?;
            let expected = std::iter::once("a".to_owned()).chain((0..RACES).map(|race| format!("race-{race}")));
            match expected.map(|name| probe.dir.clone().join(name)).find(|key| !found.contains(key)) {
                None => Ok(1),
                Some(missing) => Err(broken(LISTS, &format!("{missing} was put and is not in it"))),
            }
        })?;
        self.try_promise(REMOVES, |probe| {
            let requests = probe.clear()?;
            let (is_there, listed) = (probe.get("a")?.is_some(), probe.list()?);
            if is_there || !listed.is_empty() {
                return Err(broken(REMOVES, "an object was there after it was removed"));
            }
            Ok(requests + 2)
        })
    }

    fn try_promise(&mut self, promise: &'static str, act: impl FnOnce(&Self) -> Result<u32>) -> Result<()> {
        let begun = sync::now();
        let requests = act(self)?;
        self.report.kept.push(KeptPromise { promise, requests, took: begun.elapsed() });
        Ok(())
    }

    /// Has several put one name at once. Whoever got no clear answer may be the one.
    fn race(&self, name: &str) -> Result<()> {
        let key = self.dir.clone().join(name);
        let (store, raced) = (self.storage.store(), key.clone());
        let answers = self.ask(async move {
            let put = |racer: u8| {
                let (store, key) = (&store, &raced);
                async move { (racer, create(store.as_ref(), key, &[racer; 64]).await) }
            };
            Ok(join_all((0..RACERS).map(put)).await)
        })?;
        let mut winners = Vec::new();
        for (racer, answer) in answers {
            match answer {
                Ok(true) => winners.push(racer),
                Ok(false) => {}
                Err(error) => return Err(Error::io("put", key.as_ref(), io_error(error))),
            }
        }
        let found = self.get(name)?;
        match winners.as_slice() {
            [winner] if found.as_deref() == Some(&[*winner; 64]) => Ok(()),
            [_] => Err(broken(RACE, "the object is not that of the one who was told so")),
            [] => Err(broken(RACE, "nobody was told so")),
            several => Err(broken(RACE, &format!("{} of them were told so", several.len()))),
        }
    }

    fn expect_put(&self, name: &str, bytes: &[u8], promise: &'static str) -> Result<()> {
        match self.put(name, bytes)? {
            true => Ok(()),
            false => Err(broken(promise, "it said that a name is taken that nobody has used")),
        }
    }

    /// Returns whether it was put.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let (store, key, bytes) = (self.storage.store(), self.dir.clone().join(name), bytes.to_vec());
        self.ask(async move { create(store.as_ref(), &key, &bytes).await })
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let (store, key) = (self.storage.store(), self.dir.clone().join(name));
        let got = self.ask(async move {
            match store.get(&key).await {
                Ok(got) => Ok(Some(got.bytes().await?)),
                Err(StoreError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })?;
        Ok(got.map(Into::into))
    }

    fn list(&self) -> Result<Vec<StorePath>> {
        let (store, dir) = (self.storage.store(), self.dir.clone());
        self.ask(async move { store.list(Some(&dir)).map_ok(|found| found.location).try_collect().await })
    }

    /// Removes what the probe has put; returns how many requests that took, at most.
    fn clear(&self) -> Result<u32> {
        let found = self.list()?;
        let (store, count) = (self.storage.store(), u32::try_from(found.len()).unwrap_or(u32::MAX));
        let keys = stream::iter(found.into_iter().map(Ok)).boxed();
        self.ask(async move { store.delete_stream(keys).try_collect::<Vec<_>>().await })?;
        Ok(count.saturating_add(1))
    }

    fn ask<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T> {
        self.storage.ask_once(request.boxed()).map_err(|e| Error::io("probe", self.dir.as_ref(), io_error(e)))
    }
}

/// Puts an object if there is none; returns whether it did.
async fn create(store: &dyn ObjectStore, key: &StorePath, bytes: &[u8]) -> Result<bool, StoreError> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    match store.put_opts(key, PutPayload::from(bytes.to_vec()), options).await {
        Ok(_) => Ok(true),
        Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn broken(promise: &'static str, found: &str) -> Error {
    Error::BadStore { promise, found: found.to_owned() }
}

/// Returns a name that no other probe has.
fn new_name() -> String {
    let random = SystemRandom::default();
    Ulid((u128::from(random.next()) << 64) | u128::from(random.next())).to_string()
}

#[cfg(test)]
mod tests;
