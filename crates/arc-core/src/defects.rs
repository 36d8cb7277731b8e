//! Defects that the engine once had, for tests that have to show that they would find them.
//!
//! Compiled to nothing without the feature `known-defects`. With it, each can be switched on while
//! the engine runs, for the whole process.

/// What was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "known-defects"), expect(unreachable_pub, reason = "with the feature it can be reached"))]
pub enum Defect {
    /// For a while, a table that is being dropped is neither among the live ones nor among the
    /// dropped ones.
    DropLeavesBothLists,
    /// One of several late files of one version moves to the end of its table's list.
    TiedFilesMoveAlone,
    /// A flush goes on with a round that the close of the engine could not write.
    FlushAfterClose,
    /// A drop keeps the queue locked until all requests to its database that are being decoded are.
    DropWaitsForDecodes,
}

#[cfg(feature = "known-defects")]
mod switches {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Defect;

    static ON: AtomicU8 = AtomicU8::new(0);

    /// Returns whether the engine is to behave as it did.
    #[must_use]
    pub fn is_on(defect: Defect) -> bool {
        ON.load(Ordering::Acquire) & bit(defect) != 0
    }

    /// Has the engine behave as it did from now on, or no longer.
    pub fn set(defect: Defect, on: bool) {
        if on {
            ON.fetch_or(bit(defect), Ordering::AcqRel);
        } else {
            ON.fetch_and(!bit(defect), Ordering::AcqRel);
        }
    }

    fn bit(defect: Defect) -> u8 {
        1 << defect as u8
    }
}

#[cfg(feature = "known-defects")]
pub use switches::{is_on, set};

#[cfg(not(feature = "known-defects"))]
pub(crate) const fn is_on(_defect: Defect) -> bool {
    false
}
