//! The tokens of another node, which makes them and takes them away, as this one lets clients in by them.
//!
//! They are asked for every second. One that was taken away is good here for that long, and for no longer than
//! [`MOST_AGE`] where the other node cannot be asked: then nobody is let in.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::errors::Failure;

/// How old what is known may be.
const MOST_AGE: Duration = Duration::from_secs(10);

/// What the other node has answered.
#[derive(Debug)]
pub(crate) enum OwnersTokens {
    /// The same as before.
    Same,
    /// It lets everybody in.
    None,
    /// Others than before.
    Others { revision: String, text: Bytes },
}

/// What is known of the tokens of another node.
#[derive(Debug, Default)]
pub(super) struct Following(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    revision: Option<String>,
    asked: Option<Instant>,
}

impl Following {
    pub(super) fn revision(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).revision.clone()
    }

    /// Notes that the tokens were those of this revision just now; `None` where they still are those of the last one.
    pub(super) fn note(&self, revision: Option<String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.asked = Some(Instant::now());
        if revision.is_some() {
            known.revision = revision;
        }
    }

    /// Refuses to let anybody in by tokens that may have been taken away for long.
    pub(super) fn check_age(&self) -> Result<(), Failure> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = match known.asked {
            Some(asked) if asked.elapsed() <= MOST_AGE => return Ok(()),
            Some(asked) => format!(
                "tokens cannot be checked: the node that has them has not answered for {} s (GET /ready says more)",
                asked.elapsed().as_secs()
            ),
            None => "tokens cannot be checked: the node that has them has not answered yet".to_owned(),
        };
        Err(Failure::busy(text, Duration::from_secs(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_let_in_before_the_tokens_are_known() {
        let following = Following::default();
        assert_eq!(following.check_age().unwrap_err().status, 503);
        following.note(Some("1".to_owned()));
        assert!(following.check_age().is_ok());
        following.note(None);
        assert_eq!(following.revision().as_deref(), Some("1"));
    }
}
