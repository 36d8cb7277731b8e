//! Requests that were not let in, or not let do what they asked: counted, and said in the log now and then, so that who operates
//! the server sees that somebody tries tokens, or that a client has the wrong one.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::response::Response;
use hyper::{StatusCode, header::HeaderMap};
use tokio::time::Instant;

use super::Caller;
use crate::metrics::Counter;

/// How often each kind is said in the log at most: nobody fills it by being refused.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// What Flight's answers say in a header when they say nothing else.
const GRPC_STATUS: &str = "grpc-status";

/// Why a request was refused; stands at its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// It has no token that is good.
    Unknown,
    /// Its token, by number, may not do that.
    Denied(Option<u64>),
}

impl Refusal {
    /// Returns whether an answer is one.
    fn of(status: StatusCode, headers: &HeaderMap, caller: Option<&Caller>) -> Option<Self> {
        let code = || headers.get(GRPC_STATUS).map(|code| code.as_bytes());
        match status {
            StatusCode::UNAUTHORIZED => Some(Self::Unknown),
            StatusCode::FORBIDDEN => Some(Self::Denied(caller.and_then(Caller::number))),
            StatusCode::OK => match code()? {
                b"16" => Some(Self::Unknown),
                b"7" => Some(Self::Denied(caller.and_then(Caller::number))),
                _ => None,
            },
            _ => None,
        }
    }
}

/// How many requests were refused.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    pub(crate) unknown: Counter,
    pub(crate) denied: Counter,
    /// When either was said last.
    said: Mutex<[Option<Instant>; 2]>,
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct FarEnd {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) refusals: Arc<Refusals>,
}

impl FarEnd {
    /// Says of an answer that it refuses, if nothing of its kind was said for a while.
    pub(crate) fn note<B>(&self, answer: &Response<B>) {
        let Some(refusal) = answer.extensions().get::<Refusal>() else { return };
        let address = self.address.map(tracing::field::display);
        match refusal {
            Refusal::Unknown if self.refusals.is_to_be_said(0, Instant::now()) => {
                let total = self.refusals.unknown.get();
                tracing::warn!(address, total, "a request has no token, or none that is good; said once a minute");
            }
            Refusal::Denied(token) if self.refusals.is_to_be_said(1, Instant::now()) => {
                let total = self.refusals.denied.get();
                tracing::warn!(address, token, total, "a request may not do what it asks; said once a minute");
            }
            _ => {}
        }
    }
}

impl Refusals {
    /// Counts an answer, if it refuses; it says so then.
    pub(crate) fn count(&self, answer: &mut Response, caller: Option<&Caller>) {
        let Some(refusal) = Refusal::of(answer.status(), answer.headers(), caller) else { return };
        match refusal {
            Refusal::Unknown => self.unknown.add(1),
            Refusal::Denied(_) => self.denied.add(1),
        }
        answer.extensions_mut().insert(refusal);
    }

    fn is_to_be_said(&self, kind: usize, now: Instant) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = said.get_mut(kind) else { return false };
        let is_due = last.is_none_or(|last| now.duration_since(last) >= SAY_EVERY);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_said_once_a_minute() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        assert_eq!([0, 0, 1, 1].map(|kind| refusals.is_to_be_said(kind, now)), [true, false, true, false]);
        assert_eq!([0, 0].map(|kind| refusals.is_to_be_said(kind, now + SAY_EVERY)), [true, false]);
    }

    #[test]
    fn answers_of_http_and_of_flight_are_told_apart() {
        let with = |code: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(GRPC_STATUS, code.parse().unwrap());
            Refusal::of(StatusCode::OK, &headers, None)
        };
        assert_eq!([with("16"), with("7"), with("0")], [Some(Refusal::Unknown), Some(Refusal::Denied(None)), None]);
        let of = |status| Refusal::of(status, &HeaderMap::new(), None);
        assert_eq!(of(StatusCode::UNAUTHORIZED), Some(Refusal::Unknown));
        assert_eq!(of(StatusCode::FORBIDDEN), Some(Refusal::Denied(None)));
        assert_eq!([StatusCode::OK, StatusCode::NOT_FOUND].map(of), [None, None]);
    }
}
