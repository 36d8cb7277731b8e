//! What the holder of a token may use: requests and bytes a second, queries at a time, memory of each.
//!
//! Owns the accounts, which outlive changes of the token. Never looks into a request: what bodies bring and answers take is
//! counted as it passes, and a token that has taken more than its share waits until it has made up for it.

use std::{
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::body::Body;
use bytes::Bytes;
use hyper::{
    StatusCode,
    body::{Body as HttpBody, Frame, SizeHint},
};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{app::QUERY_PATIENCE, errors::Failure};

const SECOND_NS: u64 = 1_000_000_000;

/// What a token may use; without bounds where nothing is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TokenLimits {
    /// Requests a second, of which a second's worth may come at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests_per_second: Option<u64>,
    /// Bytes a second, of bodies and answers together, as they are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes_per_second: Option<u64>,
    /// Queries that run at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrent_queries: Option<u64>,
    /// Bytes of memory that the operators of one query may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) query_memory_bytes: Option<u64>,
}

impl TokenLimits {
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses a limit of nothing, which would be a token that is revoked in a way that nobody finds.
    pub(super) fn check(self) -> Result<Self, String> {
        let Self { requests_per_second, bytes_per_second, concurrent_queries, query_memory_bytes } = self;
        let each = [
            ("requests_per_second", requests_per_second),
            ("bytes_per_second", bytes_per_second),
            ("concurrent_queries", concurrent_queries),
            ("query_memory_bytes", query_memory_bytes),
        ];
        match each.iter().find(|(_, limit)| *limit == Some(0)) {
            Some((name, _)) => Err(format!("{name} is 0; expected 1 or more, or null for no limit")),
            None => Ok(self),
        }
    }
}

/// What a token has used, within its limits.
#[derive(Debug)]
pub(crate) struct Usage {
    limits: TokenLimits,
    requests: Option<Rate>,
    bytes: Option<Rate>,
    queries: Option<Arc<Semaphore>>,
    /// The same where the token has no limit of its own: its share of all.
    share: OnceLock<Arc<Semaphore>>,
}

impl Usage {
    pub(super) fn within(limits: TokenLimits) -> Arc<Self> {
        let queries = limits.concurrent_queries.map(|most| {
            let most = usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
            Arc::new(Semaphore::new(most))
        });
        let (requests, bytes) = (limits.requests_per_second.map(Rate::new), limits.bytes_per_second.map(Rate::new));
        Arc::new(Self { limits, requests, bytes, queries, share: OnceLock::new() })
    }

    pub(super) fn limits(&self) -> TokenLimits {
        self.limits
    }

    /// Returns the bytes that a query may hold, if they are bounded.
    pub(crate) fn query_memory(&self) -> Option<usize> {
        self.limits.query_memory_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Lets one request in, or says with 429 when it may come again.
    pub(super) fn admit(&self) -> Result<(), Failure> {
        if let Some(bytes) = &self.bytes {
            bytes.check(bytes.now_ns()).map_err(|wait| too_many("bytes_per_second", wait))?;
        }
        match &self.requests {
            Some(requests) => requests.take(requests.now_ns()).map_err(|wait| too_many("requests_per_second", wait)),
            None => Ok(()),
        }
    }

    /// Waits for the other queries of the token; what is returned is held as long as the query runs. `share` is how many it may
    /// have at a time if it has no limit of its own.
    pub(crate) async fn query_slot(&self, share: Option<usize>) -> Result<Option<OwnedSemaphorePermit>, Failure> {
        let (queries, limit) = match (&self.queries, share) {
            (Some(queries), _) => (queries, "concurrent_queries"),
            (None, Some(share)) => {
                (self.share.get_or_init(|| Arc::new(Semaphore::new(share))), "its share of max_concurrent_queries")
            }
            (None, None) => return Ok(None),
        };
        match tokio::time::timeout(QUERY_PATIENCE, Arc::clone(queries).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            _ => Err(too_many(limit, Duration::from_secs(1))),
        }
    }

    /// Has what passes through a body count, where bytes are bounded.
    pub(crate) fn count(self: &Arc<Self>, body: Body) -> Body {
        if self.bytes.is_none() {
            return body;
        }
        Body::new(Counted { body, usage: Arc::clone(self) })
    }
}

fn too_many(limit: &str, wait: Duration) -> Failure {
    let mut failure = Failure::busy(format!("the token has used what it may ({limit}); try again later"), wait);
    failure.status = StatusCode::TOO_MANY_REQUESTS;
    failure
}

/// So much a second, a second's worth of which may come at once; what was taken beyond has to be waited for.
#[derive(Debug)]
struct Rate {
    per_second: u64,
    began: Instant,
    /// Nanoseconds since then at which all that was taken is paid for.
    paid_ns: AtomicU64,
}

impl Rate {
    fn new(per_second: u64) -> Self {
        Self { per_second, began: Instant::now(), paid_ns: AtomicU64::new(0) }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns how long has to be waited if more than a second's worth is unpaid.
    fn check(&self, now_ns: u64) -> Result<(), Duration> {
        ahead(self.paid_ns.load(Ordering::Relaxed), now_ns)
    }

    /// Takes one, if less than a second's worth is unpaid.
    fn take(&self, now_ns: u64) -> Result<(), Duration> {
        let mut wait = Duration::ZERO;
        let taken = self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |paid| match ahead(paid, now_ns) {
            Ok(()) => Some(self.after(paid, now_ns, 1)),
            Err(later) => {
                wait = later;
                None
            }
        });
        taken.map(drop).map_err(|_| wait)
    }

    /// Takes so many, whatever was taken before.
    fn charge(&self, now_ns: u64, count: u64) {
        let charged = |paid| Some(self.after(paid, now_ns, count));
        // Never fails, as a value is always given.
        let _ = self.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, charged);
    }

    fn after(&self, paid_ns: u64, now_ns: u64, count: u64) -> u64 {
        let cost = u128::from(count) * u128::from(SECOND_NS) / u128::from(self.per_second.max(1));
        paid_ns.max(now_ns).saturating_add(u64::try_from(cost).unwrap_or(u64::MAX))
    }
}

/// Returns how long has to be waited until less than a second's worth is unpaid.
fn ahead(paid_ns: u64, now_ns: u64) -> Result<(), Duration> {
    match paid_ns.saturating_sub(now_ns) {
        ahead if ahead < SECOND_NS => Ok(()),
        ahead => Err(Duration::from_nanos(ahead - SECOND_NS + 1)),
    }
}

/// A body whose bytes count.
struct Counted {
    body: Body,
    usage: Arc<Usage>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let (Some(bytes), Some(Ok(frame))) = (&self.usage.bytes, &frame) {
            let length = frame.data_ref().map_or(0, Bytes::len);
            bytes.charge(bytes.now_ns(), u64::try_from(length).unwrap_or(u64::MAX));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn a_seconds_worth_comes_at_once_and_then_one_after_the_other() {
        let rate = Rate::new(10);
        let taken = |now_ns| (0..100).filter(|_| rate.take(now_ns).is_ok()).count();
        assert_eq!(taken(0), 10);
        assert_eq!(rate.take(0).unwrap_err(), Duration::from_nanos(1));
        assert_eq!((taken(1), taken(SECOND_NS / 10), taken(10 * SECOND_NS)), (1, 0, 10));
    }

    #[test]
    fn what_was_taken_beyond_has_to_be_made_up_for() {
        let rate = Rate::new(1_000);
        rate.check(0).unwrap();
        rate.charge(0, 10_000);
        assert_eq!(rate.check(0).unwrap_err(), Duration::from_nanos(9 * SECOND_NS + 1));
        rate.check(9 * SECOND_NS + 1).unwrap();
        rate.charge(0, u64::MAX);
        assert!(rate.check(u64::MAX / 2).is_err(), "no sum of what is taken wraps around");
    }

    #[tokio::test]
    async fn bytes_of_bodies_count_and_queries_have_slots() {
        let limits = TokenLimits { bytes_per_second: Some(5), concurrent_queries: Some(1), ..TokenLimits::default() };
        let usage = Usage::within(limits);
        usage.admit().unwrap();
        let body = usage.count(Body::from("twelve bytes")).collect().await.unwrap().to_bytes();
        assert_eq!(body, "twelve bytes");
        let refused = usage.admit().unwrap_err();
        assert_eq!(refused.status, 429);
        assert!(refused.message.contains("bytes_per_second") && refused.retry_after.is_some());
        let slot = usage.query_slot(Some(7)).await.unwrap();
        assert!(slot.is_some());
        let queries = usage.queries.as_ref().unwrap();
        assert_eq!(queries.available_permits(), 0);
        drop(slot);
        assert_eq!(queries.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_token_without_a_limit_has_its_share_of_queries() {
        let usage = Usage::within(TokenLimits::default());
        let held = [usage.query_slot(Some(2)).await.unwrap(), usage.query_slot(Some(2)).await.unwrap()];
        let left = || usage.share.get().unwrap().available_permits();
        assert_eq!(left(), 0);
        assert!(usage.query_slot(None).await.unwrap().is_none());
        drop(held);
        assert_eq!(left(), 2);
    }

    #[test]
    fn a_limit_of_nothing_is_refused() {
        assert!(TokenLimits::default().check().is_ok_and(|limits| limits.is_none()));
        let none = TokenLimits { concurrent_queries: Some(0), ..TokenLimits::default() };
        assert!(none.check().unwrap_err().starts_with("concurrent_queries is 0"));
    }
}
