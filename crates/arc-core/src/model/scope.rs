//! What of the store a caller may touch, where not every caller may touch all of it.
//!
//! Owns the question, never the answer: the caller that embeds the engine knows its callers. A
//! [`AccessScope`] goes along with a statement ([`Statement::within`](crate::Statement::within)) or
//! a write ([`WriteOptions::scope`](crate::WriteOptions::scope)). A statement sees no table beyond
//! its scope, by whatever name it asks for it; a write to a table beyond it is refused as a whole.

use std::{fmt::Debug, sync::Arc};

/// Says which databases and tables a caller may see, read and write.
///
/// The answer may change while a statement runs: what it sees already it goes on seeing.
pub trait Access: Debug + Send + Sync + 'static {
    /// Returns whether the caller may know that there is such a database.
    fn sees(&self, database: &str) -> bool;
    /// Returns whether the caller may read a table, and know its columns.
    fn reads(&self, database: &str, table: &str) -> bool;
    /// Returns whether the caller may write to a table.
    fn writes(&self, database: &str, table: &str) -> bool;
}

/// The part of the store that a statement or a write may touch.
#[derive(Debug, Clone)]
pub struct AccessScope(Arc<dyn Access>);

impl AccessScope {
    /// Returns the scope of a caller.
    #[must_use]
    pub fn new(access: Arc<dyn Access>) -> Self {
        Self(access)
    }

    /// Returns what the caller may do.
    #[must_use]
    pub fn access(&self) -> &dyn Access {
        &*self.0
    }
}

impl PartialEq for AccessScope {
    /// Two scopes are the same if they are those of one caller.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AccessScope {}
