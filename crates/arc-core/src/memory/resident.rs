//! What the process holds in truth: what is counted, what is not, and what the allocator keeps.
//!
//! Reads the kernel's figure (man 5 proc, `VmRSS`), not more often than it can have changed much.
//! Elsewhere than on Linux there is none, and nothing is ever held back for it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How long a figure is good for: fresh memory is filled at some 2 GB/s, so 10 MiB may be missed.
/// Reading takes 20 µs.
const GOOD_FOR: Duration = Duration::from_millis(5);

/// How near the process is to the memory that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pressure {
    /// There is room.
    None,
    /// Nothing should take much more: from an eighth of the limit before the next on.
    High,
    /// A thread has to give some back: from the last eighth of the limit on, or the last 48 MiB if
    /// that is more.
    Critical,
}

impl Pressure {
    /// `bytes` are 0 where they are not known.
    fn of(bytes: u64, limit: u64) -> Self {
        let critical = limit - LAST_STEPS.min(limit.div_ceil(4)).max(limit / 8);
        match bytes {
            0 => Self::None,
            bytes if bytes >= critical => Self::Critical,
            bytes if bytes >= critical - limit / 8 => Self::High,
            _ => Self::None,
        }
    }
}

/// What those take in all who took the last step before any thread looked, at most: requests on
/// their way, a batch of each operator, a merge. Measured by `scripts/reliability/memory.py`, where
/// it came to 33 MiB.
const LAST_STEPS: u64 = 48 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Resident {
    /// In bytes; none if the process may have all that it gets.
    limit: Option<u64>,
    /// When `bytes` was read, in microseconds since `opened`.
    read_us: AtomicU64,
    bytes: AtomicU64,
    opened: Instant,
    read: fn() -> Option<u64>,
}

impl Resident {
    /// Watches this process; 0 is no limit.
    pub(super) fn within(limit: usize) -> Self {
        Self::new(limit, read)
    }

    #[expect(clippy::disallowed_methods, reason = "how long a reading is good is no part of a schedule")]
    fn new(limit: usize, read: fn() -> Option<u64>) -> Self {
        Self {
            limit: u64::try_from(limit).ok().filter(|limit| *limit > 0),
            read_us: AtomicU64::new(u64::MAX),
            bytes: AtomicU64::new(0),
            opened: Instant::now(),
            read,
        }
    }

    pub(super) fn pressure(&self) -> Pressure {
        self.limit.map_or(Pressure::None, |limit| Pressure::of(self.bytes(), limit))
    }

    /// 0 if it is not known.
    fn bytes(&self) -> u64 {
        let now_us = u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX);
        let read_us = self.read_us.load(Ordering::Relaxed);
        let is_good = read_us != u64::MAX && u128::from(now_us.saturating_sub(read_us)) < GOOD_FOR.as_micros();
        // One of those who ask at a time reads.
        let is_mine = || self.read_us.compare_exchange(read_us, now_us, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !is_good && is_mine() {
            self.bytes.store((self.read)().unwrap_or(0), Ordering::Relaxed);
        }
        self.bytes.load(Ordering::Relaxed)
    }
}

#[expect(clippy::disallowed_methods, reason = "the kernel's files are no data of ours")]
fn read() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    resident_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn resident_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_rises_with_what_is_resident() {
        const MIB: u64 = 1 << 20;
        for (limit, bytes, pressure) in [
            (u64::MAX, 700 * MIB, Pressure::None),
            (1000 * MIB, 700 * MIB, Pressure::None),
            (930 * MIB, 700 * MIB, Pressure::High),
            (800 * MIB, 700 * MIB, Pressure::Critical),
            (10 * MIB, 700 * MIB, Pressure::Critical),
            (1, 1, Pressure::Critical),
            (256 * MIB, 175 * MIB, Pressure::None),
            (256 * MIB, 176 * MIB, Pressure::High),
            (256 * MIB, 208 * MIB, Pressure::Critical),
            (64 * MIB, 48 * MIB, Pressure::Critical),
        ] {
            assert_eq!(Pressure::of(bytes, limit), pressure, "{bytes} of {limit}");
        }
        assert_eq!(Resident::new(0, || Some(u64::MAX)).pressure(), Pressure::None, "there is no limit");
        assert_eq!(Resident::new(1, || None).pressure(), Pressure::None, "nothing is known");
    }

    #[test]
    fn the_kernels_figure_is_read() {
        assert_eq!(resident_in("VmHWM:\t  9 kB\nVmRSS:\t    1234 kB\n"), Some(1234 << 10));
        assert_eq!(resident_in("VmRSS:\t many\n"), None);
        if cfg!(target_os = "linux") {
            assert_eq!(Resident::within(1 << 20).pressure(), Pressure::Critical);
        }
    }
}
