//! Prepared statements, as the server remembers them between calls.
//!
//! They are kept in memory and for a while: there is room for so many, and of the token that has the most the one that was not
//! used for longest makes room for a new one. That is all that a client which never closes its statements can do, and only to
//! those of its own token.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use prost::Message;

use super::messages::Handle;
use crate::errors::Failure;

/// Statements that are remembered.
const MAX_STATEMENTS: usize = 4_096;
/// Bytes of all statements that are remembered, with their values.
const MAX_BYTES: usize = 32 << 20;

/// The prepared statements of all clients, by handle.
#[derive(Debug, Default)]
pub(super) struct Statements(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_handle: HashMap<Bytes, Entry>,
    bytes: usize,
    /// Counts uses, so that it is known which was the last.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    statement: Handle,
    /// The number of the token that made it; there is none where nobody has to log in.
    owner: Option<u64>,
    bytes: usize,
    used: u64,
}

impl Statements {
    /// Remembers a statement, and returns by which handle.
    pub(super) fn add(&self, owner: Option<u64>, statement: Handle) -> Bytes {
        // Nobody can guess another one's.
        let handle = Bytes::copy_from_slice(&ulid::Ulid::new().to_bytes());
        self.lock().insert(handle.clone(), owner, statement);
        handle
    }

    /// Returns a statement.
    pub(super) fn get(&self, handle: &Bytes) -> Result<Handle, Failure> {
        let mut kept = self.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let entry = kept.by_handle.get_mut(handle).ok_or_else(unknown)?;
        entry.used = uses;
        Ok(entry.statement.clone())
    }

    /// Puts a statement in the place of another one.
    pub(super) fn replace(&self, handle: &Bytes, statement: Handle) -> Result<(), Failure> {
        let mut kept = self.lock();
        let replaced = kept.remove(handle).ok_or_else(unknown)?;
        kept.insert(handle.clone(), replaced.owner, statement);
        Ok(())
    }

    /// Forgets a statement, which may be forgotten already.
    pub(super) fn remove(&self, handle: &Bytes) {
        self.lock().remove(handle);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn insert(&mut self, handle: Bytes, owner: Option<u64>, statement: Handle) {
        let bytes = statement.encoded_len();
        self.uses += 1;
        let entry = Entry { statement, owner, bytes, used: self.uses };
        self.by_handle.insert(handle, entry);
        self.bytes += bytes;
        while self.by_handle.len() > MAX_STATEMENTS || self.bytes > MAX_BYTES {
            let owner = self.largest_owner();
            let oldest =
                self.by_handle.iter().filter(|(_, entry)| entry.owner == owner).min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(handle, _)| handle.clone()) else { return };
            self.remove(&oldest);
        }
    }

    /// Returns whose statements take the most of what there is too little of.
    fn largest_owner(&self) -> Option<u64> {
        let is_about_bytes = self.bytes > MAX_BYTES;
        let mut shares: HashMap<Option<u64>, usize> = HashMap::new();
        for entry in self.by_handle.values() {
            *shares.entry(entry.owner).or_default() += if is_about_bytes { entry.bytes } else { 1 };
        }
        shares.into_iter().max_by_key(|(_, share)| *share).and_then(|(owner, _)| owner)
    }

    fn remove(&mut self, handle: &Bytes) -> Option<Entry> {
        let entry = self.by_handle.remove(handle)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

fn unknown() -> Failure {
    let text = "the prepared statement is not known: it was closed, or not used for long, or the server was restarted";
    Failure::new(hyper::StatusCode::NOT_FOUND, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(sql: &str) -> Handle {
        Handle::new("d".into(), sql.into())
    }

    #[test]
    fn a_statement_lasts_until_it_is_closed() {
        let statements = Statements::default();
        let (a, b) = (statements.add(None, statement("a")), statements.add(None, statement("b")));
        statements.replace(&a, statement("changed")).unwrap();
        assert_eq!(statements.get(&a).unwrap(), statement("changed"));
        assert_eq!(statements.get(&b).unwrap(), statement("b"));
        statements.remove(&a);
        statements.remove(&a);
        assert_eq!(statements.get(&a).unwrap_err().status.as_u16(), 404);
        assert!(statements.replace(&a, statement("x")).is_err());
        statements.remove(&b);
        assert_eq!(statements.lock().bytes, 0);
    }

    #[test]
    fn who_makes_many_loses_only_their_own() {
        let statements = Statements::default();
        let (others, long) = (statements.add(Some(1), statement("others")), "x".repeat(MAX_BYTES / 4));
        for n in 0..MAX_STATEMENTS {
            statements.add(Some(2), statement(&n.to_string()));
        }
        for _ in 0..8 {
            statements.add(Some(2), statement(&long));
        }
        assert_eq!(statements.get(&others).unwrap(), statement("others"));
    }

    #[test]
    fn what_is_not_used_makes_room() {
        let statements = Statements::default();
        let used = statements.add(None, statement("used"));
        let unused = statements.add(None, statement("unused"));
        for n in 0..MAX_STATEMENTS {
            statements.add(None, statement(&n.to_string()));
            statements.get(&used).unwrap();
        }
        assert!(statements.get(&unused).is_err());
        assert_eq!(statements.lock().by_handle.len(), MAX_STATEMENTS);
        let long = "x".repeat(MAX_BYTES / 4);
        for _ in 0..10 {
            statements.add(None, statement(&long));
        }
        assert!(statements.lock().bytes <= MAX_BYTES);
    }
}
