//! Which data files the states with names have: what stays on disk for them.
//!
//! Owns the list of these files, and the payload of the object that holds it (docs/format.md, "Manifest").
//! The list can be made of the states at any time; it is there so that nobody has to read them all. Holds
//! each file once, in however many states it is. Never touches a file.

use std::{borrow::Cow, collections::BTreeMap};

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::{ManifestState, NamedSnapshot};
use crate::model::{DataFile, SnapshotInfo};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct KeptFiles {
    /// The states by the numbers of their commits, and when they got their names.
    states: BTreeMap<u64, i64>,
    files: HashMap<String, KeptFile, foldhash::fast::RandomState>,
}

#[derive(Debug, Clone, PartialEq)]
struct KeptFile {
    bytes: u64,
    spans: Vec<Span>,
}

/// The first and the last of some states, all of which have a file, and all that lie between them.
type Span = (u64, u64);

/// What an object holds.
#[derive(Debug, Serialize, Deserialize)]
struct KeptRecord<'a> {
    states: Vec<(u64, i64)>,
    files: Vec<(Cow<'a, str>, u64, Cow<'a, [Span]>)>,
}

impl KeptFiles {
    /// Adds a state that is newer than all that are there.
    pub(crate) fn add(&mut self, named: NamedSnapshot, state: &ManifestState) {
        let before = self.newest();
        for DataFile { path, bytes, .. } in state.files().map(AsRef::as_ref) {
            let new = || KeptFile { bytes: *bytes, spans: Vec::new() };
            let spans = &mut self.files.entry_ref(path.as_str()).or_insert_with(new).spans;
            match spans.last_mut() {
                Some((_, last)) if before.is_some_and(|before| *last >= before) => *last = named.number,
                _ => spans.push((named.number, named.number)),
            }
        }
        self.states.insert(named.number, named.time_ns);
    }

    /// Forgets the state of a commit, and the files that no other has.
    pub(crate) fn remove(&mut self, number: u64) {
        if self.states.remove(&number).is_some() {
            self.forget_files();
        }
    }

    /// Forgets the states that are not among `named`.
    pub(super) fn keep(&mut self, named: &[NamedSnapshot]) {
        let known = self.states.len();
        self.states.retain(|&number, &mut time_ns| named.contains(&NamedSnapshot { number, time_ns }));
        if self.states.len() < known {
            self.forget_files();
        }
    }

    /// Forgets the states from a number on.
    pub(super) fn cut(&mut self, number: u64) {
        self.states.split_off(&number);
        let spans = self.files.values_mut().flat_map(|file| &mut file.spans);
        spans.for_each(|(_, last)| *last = (*last).min(number.saturating_sub(1)));
        self.forget_files();
    }

    fn forget_files(&mut self) {
        let states = &self.states;
        let is_left = |(first, last): &Span| first <= last && states.range(first..=last).next().is_some();
        self.files.retain(|_, file| {
            file.spans.retain(is_left);
            !file.spans.is_empty()
        });
    }

    /// Returns whether the state of a commit is among these.
    pub(crate) fn knows(&self, named: NamedSnapshot) -> bool {
        self.states.get(&named.number) == Some(&named.time_ns)
    }

    /// Returns the number of the newest state.
    pub(super) fn newest(&self) -> Option<u64> {
        self.states.last_key_value().map(|(number, _)| *number)
    }

    /// Returns whether any of the states has this file.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns whether the state of a commit, which is among these, has this file.
    pub(crate) fn has_at(&self, path: &str, number: u64) -> bool {
        let is_in = |(first, last): &Span| (first..=last).contains(&&number);
        self.files.get(path).is_some_and(|file| file.spans.iter().any(is_in))
    }

    /// Returns the paths and bytes of all files.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.bytes))
    }

    /// Describes states, with what they have of the files that `is_gone` says; nothing of those that are not
    /// among these.
    pub(crate) fn snapshots(
        &self,
        states: &BTreeMap<String, NamedSnapshot>,
        is_gone: impl Fn(&str) -> bool,
    ) -> Vec<SnapshotInfo> {
        let totals = self.totals(is_gone);
        let info = |(name, named): (&String, &NamedSnapshot)| {
            let (retired_files, retired_bytes) = totals.get(&named.number).copied().unwrap_or_default();
            SnapshotInfo { name: name.clone(), time_ns: named.time_ns, retired_files, retired_bytes }
        };
        states.iter().map(info).collect()
    }

    /// Returns how many files that `is_meant` says each state has, and their bytes, by its number.
    fn totals(&self, is_meant: impl Fn(&str) -> bool) -> BTreeMap<u64, (u64, u64)> {
        let mut totals: BTreeMap<u64, (u64, u64)> = self.states.keys().map(|number| (*number, (0, 0))).collect();
        for (_, file) in self.files.iter().filter(|(path, _)| is_meant(path)) {
            for (first, last) in &file.spans {
                for (_, (files, bytes)) in totals.range_mut(first..=last) {
                    (*files, *bytes) = (*files + 1, *bytes + file.bytes);
                }
            }
        }
        totals
    }

    #[cfg(test)]
    pub(crate) fn forget_one_file(&mut self) {
        let path = self.files.keys().next().cloned();
        path.and_then(|path| self.files.remove(&path));
    }

    /// Returns the payload of an object.
    pub(super) fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        let files = self.files.iter();
        rmp_serde::to_vec_named(&KeptRecord {
            states: self.states.iter().map(|(number, time_ns)| (*number, *time_ns)).collect(),
            files: files.map(|(path, file)| (Cow::from(path), file.bytes, Cow::from(&file.spans))).collect(),
        })
    }

    /// Reads the payload of an object.
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        let KeptRecord { states, files } = rmp_serde::from_slice(payload)?;
        if files.iter().any(|(_, _, spans)| spans.iter().any(|(first, last)| first > last)) {
            return Err(serde::de::Error::custom("a file is in the states from one to an earlier one"));
        }
        let file = |(path, bytes, spans): (Cow<'_, str>, u64, Cow<'_, [Span]>)| {
            (path.into_owned(), KeptFile { bytes, spans: spans.into_owned() })
        };
        Ok(Self { states: states.into_iter().collect(), files: files.into_iter().map(file).collect() })
    }
}

#[cfg(test)]
mod tests;
