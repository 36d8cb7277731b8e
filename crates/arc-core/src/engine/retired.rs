//! Data files that are live no longer and still on disk, for those who read them.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use hashbrown::HashSet;

use super::{context::EngineContext, folders::EngineFolders, shared::Shared};
use crate::{
    catalog::{KeptFiles, PastFile, oldest_leased},
    crash::crash_point,
    datafile::PastFolder,
    model::{DataFile, packed, past_path, stored_path},
    sync::Mutex,
};

/// When files that something still needs are looked at again: no more often than a flush has it done.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Files that no manifest names any more, since this process took them out of it.
///
/// A view, and with it a query, holds the files that it reads; a file that nothing holds cannot be
/// asked for again but by those who ask for an older state, and what is known of its columns is not
/// kept here. It lies in `past/`, where other programs do not take it for one of its table's. What is
/// left here when the process ends is found again in the manifest when the directory is opened the
/// next time, or removed then if no state that can be asked for has it and no other process has a
/// lease (decisions 033 and 034).
#[derive(Debug)]
pub(super) struct Retired {
    context: Arc<EngineContext>,
    folders: Arc<EngineFolders>,
    files: Mutex<Vec<RetiredFile>>,
    /// Paths of files that still lie among those of tables.
    stray: Mutex<Vec<String>>,
    /// Locked while files move.
    past_folder: Mutex<PastFolder>,
    /// The versions of the manifest that are held, and by how many.
    held: Arc<Mutex<BTreeMap<u64, usize>>>,
    /// Whether packs are known to have as many live files as when a thread looked last.
    packs_are_known: AtomicBool,
    /// Number of the newest commit.
    committed: AtomicU64,
}

/// Keeps the files of a version of the manifest on disk until this is dropped, and with them, as the
/// lease of another process does, those of later ones.
#[derive(Debug)]
pub(super) struct Hold {
    number: u64,
    all: Arc<Mutex<BTreeMap<u64, usize>>>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Entry::Occupied(mut holds) = all.entry(self.number) {
            *holds.get_mut() -= 1;
            if *holds.get() == 0 {
                holds.remove();
            }
        }
    }
}

#[derive(Debug)]
struct RetiredFile {
    path: String,
    bytes: u64,
    readers: Weak<DataFile>,
    since_ns: i64,
    /// The commit that took it out of the manifest, or a later one: who reads an older version may
    /// need it.
    number: u64,
}

impl Retired {
    pub(super) fn new(context: Arc<EngineContext>, folders: Arc<EngineFolders>) -> Self {
        Self {
            context,
            folders,
            files: Mutex::default(),
            stray: Mutex::default(),
            past_folder: Mutex::default(),
            held: Arc::default(),
            packs_are_known: AtomicBool::default(),
            committed: AtomicU64::default(),
        }
    }

    /// Keeps the files of a version of the manifest from being removed. Called while something else does:
    /// with the manifest locked that says it, or before it is asked whether the version is kept still.
    pub(super) fn hold(&self, number: u64) -> Hold {
        *self.held.lock().entry(number).or_default() += 1;
        Hold { number, all: Arc::clone(&self.held) }
    }

    /// Returns how many files there are, and their bytes.
    pub(super) fn totals(&self) -> (usize, u64) {
        let files = self.files.lock();
        (files.len(), files.iter().map(|retired| retired.bytes).sum())
    }

    /// Returns the paths of all files.
    pub(super) fn paths(&self) -> HashSet<String> {
        self.files.lock().iter().map(|retired| retired.path.clone()).collect()
    }

    /// Moves what was retired out of the folders of tables, so that a program that reads one of them
    /// without asking the manifest finds each row once. Called after each commit that takes files
    /// out. Those that cannot be moved now are moved the next time.
    pub(super) fn move_out(&self) {
        // First this one: nothing is on its way then, while `take_back` has it.
        let mut folder = self.past_folder.lock();
        let stray = std::mem::take(&mut *self.stray.lock());
        if stray.is_empty() {
            return;
        }
        let later = self.folders.move_to(&mut folder, stray);
        self.stray.lock().extend(later);
        crash_point("retired::moved");
    }

    /// Takes the paths of files that lie among those of tables and are not theirs.
    pub(super) fn add_stray(&self, paths: Vec<String>) {
        self.stray.lock().extend(paths);
    }

    /// Takes files that older states have, as they were found when the directory was opened.
    pub(super) fn add_past(&self, files: impl IntoIterator<Item = PastFile>) {
        let committed = self.committed.load(Ordering::Acquire);
        let retired = |PastFile { path, bytes, since_ns, number }: PastFile| RetiredFile {
            path,
            bytes,
            readers: Weak::new(),
            since_ns,
            number: if number > 0 { number } else { committed },
        };
        self.files.lock().extend(files.into_iter().map(retired));
        self.forget_packs();
    }

    /// Takes files that were taken out of the manifest and of the tables' views.
    pub(super) fn add(&self, files: impl IntoIterator<Item = Arc<DataFile>>, now_ns: i64) {
        let number = self.committed.load(Ordering::Acquire);
        let retired = |file: Arc<DataFile>| RetiredFile {
            path: file.path.clone(),
            bytes: file.bytes,
            readers: Arc::downgrade(&file),
            since_ns: now_ns,
            number,
        };
        let mut all = self.files.lock();
        let known = all.len();
        all.extend(files.into_iter().map(retired));
        let new = all.iter().skip(known).map(|retired| retired.path.as_str());
        self.stray.lock().extend(new.filter(|path| past_path(Path::new(path)).is_some()).map(str::to_owned));
        if all.iter().skip(known).any(|retired| packed(&retired.path).is_some()) {
            self.forget_packs();
        }
    }

    /// Takes the paths of files that the manifest has no more since some time before the directory was
    /// opened, and that another process may read. Their bytes are not known, and are not counted.
    pub(super) fn add_paths(&self, paths: Vec<String>, now_ns: i64) {
        let number = self.committed.load(Ordering::Acquire);
        let retired = |path| RetiredFile { path, bytes: 0, readers: Weak::new(), since_ns: now_ns, number };
        self.files.lock().extend(paths.into_iter().map(retired));
    }

    /// Notes the number of the newest commit, before anything is retired because of it.
    pub(super) fn note_commit(&self, number: u64) {
        self.committed.fetch_max(number, Ordering::AcqRel);
    }

    /// Returns the number of the newest commit.
    pub(super) fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Returns whether packs may have fewer live files than when this was called last.
    pub(super) fn has_lost_packed(&self) -> bool {
        !self.packs_are_known.swap(true, Ordering::AcqRel)
    }

    /// Has packs be looked at again.
    pub(super) fn forget_packs(&self) {
        self.packs_are_known.store(false, Ordering::Release);
    }

    /// Returns the files that may go: nothing holds them, no state from commit `oldest` on has them, nor
    /// one with a name, as `has_name` says; their time of grace is over, and no other process has a lease
    /// now.
    ///
    /// Nothing else decides what is removed that was ever live.
    fn take_free(&self, oldest: u64, grace_ns: i64, now_ns: i64, has_name: impl Fn(&str) -> bool) -> Vec<RetiredFile> {
        let held = self.held.lock().first_key_value().map(|(number, _)| *number);
        let oldest = held.map_or(oldest, |held| held.min(oldest));
        let before_ns = now_ns.saturating_sub(grace_ns);
        let is_due = |retired: &RetiredFile| {
            retired.readers.strong_count() == 0
                && retired.number <= oldest
                && retired.since_ns <= before_ns
                && !has_name(&retired.path)
        };
        let mut files = self.files.lock();
        // The clock was ahead.
        files.iter_mut().for_each(|retired| retired.since_ns = retired.since_ns.min(now_ns));
        if !files.iter().any(is_due) {
            return Vec::new();
        }
        // After the commits that took them out: a reader that takes its lease later does not see
        // these files any more.
        let leased = oldest_leased(self.context.vfs.as_ref(), &self.context.root, now_ns);
        let is_free =
            |retired: &mut RetiredFile| is_due(retired) && leased.is_none_or(|leased| leased >= retired.number);
        files.extract_if(.., is_free).collect()
    }

    /// Returns when the next file may go of those that wait for nothing but that.
    fn next_due_ns(&self, now_ns: i64, kept_ns: i64, has_name: impl Fn(&str) -> bool) -> Option<i64> {
        let files = self.files.lock();
        let waiting = files.iter().filter(|retired| !has_name(&retired.path));
        let due = waiting.map(|retired| retired.since_ns.saturating_add(kept_ns)).min()?;
        Some(due.max(look_again_ns(now_ns)))
    }

    /// Takes files out of those that are retired, which are live again. Called with the manifest
    /// locked: nothing retires them meanwhile.
    pub(super) fn take_back(&self, live: &HashSet<&str>) {
        // Nothing is on its way to the other place then.
        let _moving = self.past_folder.lock();
        self.stray.lock().retain(|path| !live.contains(path.as_str()));
        let back: Vec<RetiredFile> =
            self.files.lock().extract_if(.., |retired| live.contains(retired.path.as_str())).collect();
        self.folders.give_back(back.iter().map(|retired| retired.path.as_str()));
    }

    /// Removes files from disk that may go; returns how many. One that cannot be removed stays for
    /// the next time.
    fn remove(&self, free: Vec<RetiredFile>, now_ns: i64) -> u64 {
        let mut removed = 0;
        for retired in free {
            match self.folders.remove(&retired.path) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::warn!(path = retired.path, %error, "cannot remove a data file that was replaced");
                    self.files.lock().push(RetiredFile { since_ns: now_ns, ..retired });
                }
            }
        }
        removed
    }
}

fn look_again_ns(now_ns: i64) -> i64 {
    now_ns.saturating_add(i64::try_from(LOOK_AGAIN.as_nanos()).unwrap_or(i64::MAX))
}

impl Shared {
    /// Returns when there may be a file to remove.
    pub(super) fn retired_due_ns(&self, now_ns: i64) -> Option<i64> {
        let kept_ns = now_ns.saturating_sub(self.history_from_ns(now_ns)).saturating_add(self.grace_ns());
        let due_ns = |kept: &KeptFiles| self.retired.next_due_ns(now_ns, kept_ns, |path| kept.has(path));
        self.past.with_kept(due_ns).unwrap_or_else(|| Some(look_again_ns(now_ns)))
    }

    /// Removes from disk the files that may go; returns how many.
    pub(super) fn remove_retired(&self, now_ns: i64) -> u64 {
        self.retired.move_out();
        let oldest = self.oldest_kept(now_ns);
        let take_free =
            |kept: &KeptFiles| self.retired.take_free(oldest, self.grace_ns(), now_ns, |path| kept.has(path));
        let Some(free) = self.past.with_kept(take_free) else { return 0 };
        let (in_packs, free): (Vec<_>, Vec<_>) = free.into_iter().partition(|retired| packed(&retired.path).is_some());
        self.leave_empty_packs(in_packs.iter().map(|retired| retired.path.as_str()));
        self.leftovers.remove();
        in_packs.len() as u64 + self.retired.remove(free, now_ns)
    }

    /// Lets go of the packs that the data files of these paths, which nothing needs, were the last
    /// of.
    pub(super) fn leave_empty_packs<'p>(&self, gone: impl Iterator<Item = &'p str>) {
        let mut packs: BTreeSet<&str> = gone.filter_map(packed).map(|(pack, _)| pack).collect();
        if packs.is_empty() {
            return;
        }
        // The manifest first: what leaves it is retired before it is unlocked.
        let manifest = self.manifest.lock();
        for file in manifest.state().files() {
            packs.remove(file.stored_path());
        }
        drop(manifest);
        for file in self.retired.files.lock().iter() {
            packs.remove(stored_path(&file.path));
        }
        packs.into_iter().for_each(|pack| self.leftovers.leave(pack));
    }
}
