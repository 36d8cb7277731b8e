//! Which state of the store is meant.

/// A state of the store, of all of its tables at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AsOf {
    /// With every point that was acknowledged before this time, in nanoseconds since the epoch, and
    /// none that was sent after it.
    Time(i64),
    /// As it was when this snapshot was created.
    Snapshot(String),
}
