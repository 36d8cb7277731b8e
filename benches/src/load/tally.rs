//! What happened to the requests, and how long they took.

use std::{collections::BTreeMap, time::Duration};

/// Longest text of a refusal that is kept.
const MAX_REASON: usize = 300;

/// The outcome of a number of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests answered with 2xx.
    pub requests: u64,
    /// Points in them.
    pub points: u64,
    /// Points of requests that were answered with anything else: not stored, as far as the client
    /// may assume.
    pub refused_points: u64,
    /// Points of requests whose connection broke before the answer: stored or not.
    pub unknown_points: u64,
    /// Bytes of all requests, heads included.
    pub sent_bytes: u64,
    /// Time of each acknowledged request in nanoseconds, in no order.
    pub latencies_ns: Vec<u64>,
    /// Answers other than 2xx, by status.
    pub refusals: BTreeMap<u16, u64>,
    /// Failed connections, by what the system called it.
    pub failures: BTreeMap<String, u64>,
    /// Longest `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// Text of one refusal.
    pub reason: Option<String>,
    /// Requests that were written or compressed during the run.
    pub made_on_the_way: u64,
}

impl Tally {
    /// Counts a request answered with 2xx.
    pub fn acknowledge(&mut self, points: u32, latency: Duration) {
        self.requests += 1;
        self.points += u64::from(points);
        self.latencies_ns.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts a request answered with another status.
    pub fn refuse(&mut self, points: u32, status: u16, retry_after: Option<u64>, body: &[u8]) {
        self.refused_points += u64::from(points);
        *self.refusals.entry(status).or_default() += 1;
        self.retry_after = self.retry_after.max(retry_after);
        self.reason.get_or_insert_with(|| String::from_utf8_lossy(body).chars().take(MAX_REASON).collect());
    }

    /// Counts a connection that broke or could not be made; `points` are those of the request under
    /// way.
    pub fn fail(&mut self, points: u32, error: &std::io::Error) {
        self.unknown_points += u64::from(points);
        *self.failures.entry(error.kind().to_string()).or_default() += 1;
    }

    /// Adds the requests of another connection.
    pub fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.points += other.points;
        self.refused_points += other.refused_points;
        self.unknown_points += other.unknown_points;
        self.sent_bytes += other.sent_bytes;
        self.made_on_the_way += other.made_on_the_way;
        self.latencies_ns.extend(other.latencies_ns);
        other.refusals.into_iter().for_each(|(status, count)| *self.refusals.entry(status).or_default() += count);
        other.failures.into_iter().for_each(|(kind, count)| *self.failures.entry(kind).or_default() += count);
        self.retry_after = self.retry_after.max(other.retry_after);
        self.reason = self.reason.take().or(other.reason);
    }
}

/// Returns the smallest of `sorted` that at least `percent` of them do not exceed (nearest rank); 0
/// for none.
#[must_use]
pub fn percentile(sorted: &[u64], percent: u8) -> u64 {
    let rank = (sorted.len() * usize::from(percent)).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let hundred: Vec<u64> = (1..=100).collect();
        // (values, percent, percentile)
        let cases: [(&[u64], u8, u64); 9] = [
            (&[], 50, 0),
            (&[7], 0, 7),
            (&[7], 50, 7),
            (&[7], 100, 7),
            (&[1, 2], 50, 1),
            (&[1, 2], 51, 2),
            (&hundred, 50, 50),
            (&hundred, 99, 99),
            (&hundred, 100, 100),
        ];
        for (values, percent, want) in cases {
            assert_eq!(percentile(values, percent), want, "{percent} of {}", values.len());
        }
    }

    #[test]
    fn tallies_add_up() {
        let mut one = Tally::default();
        one.acknowledge(10, Duration::from_nanos(5));
        one.refuse(10, 503, Some(1), b"busy");
        let mut other = Tally::default();
        other.refuse(10, 503, Some(3), b"still busy");
        other.refuse(10, 400, None, b"bad");
        other.fail(10, &io::Error::from(io::ErrorKind::ConnectionReset));
        one.merge(other);
        assert_eq!((one.requests, one.points, one.refused_points, one.unknown_points), (1, 10, 30, 10));
        assert_eq!(one.refusals, BTreeMap::from([(400, 1), (503, 2)]));
        assert_eq!(one.failures, BTreeMap::from([("connection reset".to_owned(), 1)]));
        assert_eq!((one.retry_after, one.reason.as_deref()), (Some(3), Some("busy")));
    }
}
