//! How long a put whose outcome is unknown is tried again.

/// How long a put whose outcome is unknown is tried again, always with the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Once: the caller decides what is next, and puts no other bytes meanwhile.
    Once,
    /// As often as [`StoreOptions::tries`](super::StoreOptions::tries) says.
    Tries,
    /// Until the store answers, or waits are aborted.
    Forever,
}
