//! Cuts: how far the rows of one data directory were handed to another one.

use serde::{Deserialize, Serialize};

use super::SequenceNumber;

/// The name of a cut, by which both sides know it.
///
/// The number says how many there were; the id, which is random, says that it is this one and not
/// that of a copy of the directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutName {
    /// Counts from 1 for each pair of directories.
    pub number: u64,
    /// A ULID that no other cut has.
    pub id: String,
}

impl std::fmt::Display for CutName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.number, self.id)
    }
}

/// A cut as the directory knows it whose rows are handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cut {
    pub(crate) name: CutName,
    /// The last sequence number of the rows before it: no data file has rows of both sides.
    pub(crate) seq: SequenceNumber,
}
