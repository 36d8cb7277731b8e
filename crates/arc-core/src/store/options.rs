//! How long and how often to ask an object store.

use std::time::Duration;

/// How patient the users of an object store are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// How long one request may take before it counts as failed; 30 s. Longer bears slower stores,
    /// shorter notices a hanging one sooner.
    pub request_timeout: Duration,
    /// How often a request is tried, at least once; 10. More tries bear longer outages, while the
    /// caller waits. An engine goes on trying after that: it keeps what it could not put in its
    /// log, and a commit under way has no limit.
    pub tries: u32,
    /// Pause after the first try, twice as long after each further one, up to 15 s; 250 ms.
    pub first_pause: Duration,
    /// Size of a part, in bytes; 8 MiB, and S3 allows no less than 5 MiB. Data files up to this
    /// size are put at once, larger ones in parts of it, and it is also how much of a file is asked
    /// for at a time. Each of up to four uploads holds one part in memory.
    pub part_bytes: u64,
    /// How much older than the newest object one has to be to be removed; a day. It must be longer
    /// than any writer can stall between deciding to put an object and putting it: the object stops
    /// that writer. Longer keeps more objects.
    pub settled_after: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(30),
            tries: 10,
            first_pause: Duration::from_millis(250),
            part_bytes: 8 << 20,
            settled_after: Duration::from_secs(24 * 60 * 60),
        }
    }
}
