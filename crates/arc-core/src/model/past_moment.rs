//! States of the store: which one is meant, and what is known of those that have names.

/// A state of the store, of all of its tables at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PastMoment {
    /// With every point that was acknowledged before this time, in nanoseconds since the epoch, and
    /// none that was sent after it.
    Time(i64),
    /// As it was when this snapshot was created.
    Snapshot(String),
}

/// A state that is kept under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotInfo {
    /// Its name.
    pub name: String,
    /// When it was created, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// Data files of it that are live no longer, and stay on disk for it, or for the history.
    pub retired_files: u64,
    /// Their bytes.
    pub retired_bytes: u64,
}
