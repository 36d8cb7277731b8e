//! The older states that were asked for last, so that a dashboard that asks again does not have
//! manifest and log read again.
//!
//! Owns which of them are kept: few, none that is large, each only while it is asked for and can be
//! asked for. What is kept holds its files and counts in the memory budget.

use std::{collections::VecDeque, sync::Arc};

use super::history::PastState;
use crate::{SequenceNumber, sync::Mutex};

/// How many are kept.
const MOST_STATES: usize = 4;
/// Which part of the memory budget one of them may hold.
const MEMORY_SHARE: usize = 32;
/// How long one is kept that nobody asks for.
const REST_NS: i64 = 60_000_000_000;

/// See the module. The last is the one that was asked for last.
#[derive(Debug, Default)]
pub(super) struct StatesAtHand(Mutex<VecDeque<AtHand>>);

#[derive(Debug)]
struct AtHand {
    made: MadeFrom,
    used_ns: i64,
    state: Arc<PastState>,
}

impl StatesAtHand {
    /// Returns the state of a time, where frame `last_seq` is the last that can be read.
    pub(super) fn find(&self, time_ns: i64, era: u64, last_seq: SequenceNumber, now_ns: i64) -> Option<Arc<PastState>> {
        let mut states = self.0.lock();
        let is_it = |AtHand { made, .. }: &AtHand| {
            (made.time_ns, made.era) == (time_ns, era) && made.last_seq.is_none_or(|last| last == last_seq)
        };
        let mut found = states.iter().position(is_it).and_then(|nth| states.remove(nth))?;
        found.used_ns = now_ns;
        let state = Arc::clone(&found.state);
        states.push_back(found);
        Some(state)
    }

    /// Keeps a state, unless it holds too much of a budget of `memory` bytes.
    pub(super) fn keep(&self, state: PastState, made: MadeFrom, memory: usize) -> Arc<PastState> {
        let state = Arc::new(state);
        if state.held_bytes() > memory / MEMORY_SHARE {
            return state;
        }
        let mut states = self.0.lock();
        states.retain(|at_hand| at_hand.made.time_ns != made.time_ns);
        if states.len() == MOST_STATES {
            states.pop_front();
        }
        let state_at_hand = Arc::clone(&state);
        states.push_back(AtHand { made, used_ns: made.now_ns, state: state_at_hand });
        state
    }

    /// Forgets what is older than anything that can be asked for, and what nobody asks for.
    pub(super) fn forget_before(&self, from_ns: i64, now_ns: i64) {
        let is_wanted = |at_hand: &AtHand| now_ns.saturating_sub(at_hand.used_ns) < REST_NS;
        self.0.lock().retain(|at_hand| at_hand.made.time_ns >= from_ns && is_wanted(at_hand));
    }
}

/// Of which time a state is, and when it was made of which log.
#[derive(Debug, Clone, Copy)]
pub(super) struct MadeFrom {
    pub(super) time_ns: i64,
    /// How often the clock had been put back.
    pub(super) era: u64,
    /// The last frame that could be read, if one that was still to come might belong to it.
    pub(super) last_seq: Option<SequenceNumber>,
    pub(super) now_ns: i64,
}
