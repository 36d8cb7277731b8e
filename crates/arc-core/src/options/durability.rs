//! What an acknowledged point survives, and the names of that.

use crate::model::texts::texts;

/// What an acknowledged point survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Nothing is promised: acknowledged once in memory.
    Memory,
    /// `kill -9`, panic, running out of memory: acknowledged once the log's `write` returned.
    Process,
    /// Crash of the operating system and loss of power, too: acknowledged once the log is synced to
    /// disk.
    #[default]
    Disk,
    /// Loss of the machine with its disk, too: acknowledged once its group of the log is an object
    /// in the object store, and so is everything before it in the log. Refused without an
    /// object store. A put takes some 10 to 100 ms, and there is one each
    /// [`Options::remote_interval`](crate::Options::remote_interval) at most.
    Remote,
}

texts!(
    Durability,
    "not a durability",
    "memory, process, disk or remote",
    [Memory = "memory", Process = "process", Disk = "disk", Remote = "remote"]
);
