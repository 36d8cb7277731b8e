//! Who goes on: drawn from the seed at each step.

/// How a schedule is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Any thread that can run may go on, at one step in `one_in`; at the others the one that runs
    /// does.
    Random {
        /// Steps for each draw, on average.
        one_in: u64,
    },
    /// Each thread has a priority, and the highest goes on; at `changes` steps among the first
    /// `within` it falls below all others (PCT: Burckhardt and others, "A randomized scheduler with
    /// probabilistic guarantees of finding bugs", 2010).
    Priorities {
        /// Times that the running thread falls.
        changes: u64,
        /// The steps among which those are drawn.
        within: u64,
    },
}

/// Pseudo-random numbers (SplitMix64): a seed names the same schedule everywhere.
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Draws {
    /// Returns the numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws a number.
    #[expect(clippy::should_implement_trait, reason = "there is always a next one")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Draws a number below `end`, or 0 where there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Says yes one time in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Scatters the bits of a number.
pub(super) fn mix(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A strategy on its way through a schedule.
#[derive(Debug)]
pub(super) struct ScheduleOrder {
    strategy: Strategy,
    draws: Draws,
    /// Of each thread, by number.
    priorities: Vec<u64>,
    /// Steps at which the running thread falls, the next one last.
    changes: Vec<u64>,
}

/// Priorities that threads begin with are above those to which they fall.
const FIRST: u64 = 1 << 32;

impl ScheduleOrder {
    pub(super) fn new(strategy: Strategy, seed: u64) -> Self {
        let mut draws = Draws::new(seed);
        let mut changes = Vec::new();
        if let Strategy::Priorities { changes: count, within } = strategy {
            changes = (0..count).map(|_| draws.below(within)).collect();
            changes.sort_unstable_by(|a, b| b.cmp(a));
        }
        Self { strategy, draws, priorities: Vec::new(), changes }
    }

    /// Notes a new thread, whose number is that of those before it.
    pub(super) fn add(&mut self) {
        let priority = FIRST + self.draws.below(FIRST);
        self.priorities.push(priority);
    }

    /// Draws a number below `end` for another choice than that of the next thread.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draws.below(end as u64)).unwrap_or(0)
    }

    /// Chooses one of the threads that can run; `current` is among them or waits.
    pub(super) fn choose(&mut self, step: u64, current: usize, ready: &[usize]) -> Option<usize> {
        match self.strategy {
            Strategy::Random { one_in } => {
                if ready.contains(&current) && !self.draws.one_in(one_in) {
                    return Some(current);
                }
                let at = self.below(ready.len());
                ready.get(at).copied()
            }
            Strategy::Priorities { .. } => {
                while self.changes.last().is_some_and(|change| *change <= step) {
                    self.changes.pop();
                    if let Some(priority) = self.priorities.get_mut(current) {
                        *priority = self.changes.len() as u64;
                    }
                }
                let priority = |thread: &&usize| self.priorities.get(**thread).copied();
                ready.iter().max_by_key(priority).copied()
            }
        }
    }
}
