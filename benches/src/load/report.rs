//! The report of a run, for people and for programs.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::Serialize;

use super::{
    options::{Encoding, Options},
    process::Usage,
    tally::{Tally, percentile},
};

/// What a run found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Format of the requests.
    pub kind: String,
    /// What a point looked like.
    pub shape: String,
    /// Compression of the bodies.
    pub encoding: String,
    /// What acknowledged points survive; empty: what the server is set to.
    pub durability: String,
    /// Points in a request.
    pub batch: u32,
    /// Connections.
    pub workers: u32,
    /// Series.
    pub hosts: u32,
    /// Points a second that were asked for.
    pub rate: Option<u64>,
    /// How long it took.
    pub seconds: f64,
    /// Points acknowledged.
    pub points: u64,
    /// Points acknowledged in a second.
    pub points_per_second: f64,
    /// Requests acknowledged.
    pub requests: u64,
    /// Requests acknowledged in a second.
    pub requests_per_second: f64,
    /// Time of an acknowledged request.
    pub latency_ms: Latency,
    /// Points of requests that were refused.
    pub refused_points: u64,
    /// Points of requests whose connection broke before the answer.
    pub unknown_points: u64,
    /// Answers other than 2xx by status.
    pub refusals: BTreeMap<u16, u64>,
    /// Failed connections by cause.
    pub failures: BTreeMap<String, u64>,
    /// Longest `Retry-After` in seconds.
    pub retry_after: Option<u64>,
    /// Text of one refusal.
    pub reason: Option<String>,
    /// Bytes sent, heads included.
    pub sent_bytes: u64,
    /// Requests that were written or compressed during the run; their cost is in the generator's
    /// CPU.
    pub made_on_the_way: u64,
    /// What the run took of the server's process, if that is known.
    pub server: Option<Cost>,
    /// What the run took of the load generator itself.
    pub generator: Option<Cost>,
    /// Rows against acknowledged points.
    pub verification: Option<Verification>,
}

/// Times in milliseconds; with a rate they count from when a request was due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Half of the requests took no longer.
    pub p50: f64,
    /// Nine in ten.
    pub p90: f64,
    /// Ninety-nine in a hundred.
    pub p99: f64,
    /// The slowest.
    pub max: f64,
}

/// CPU and memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// User and system time during the run.
    pub cpu_seconds: f64,
    /// The same for a million acknowledged points.
    pub cpu_seconds_per_million_points: f64,
    /// Most memory since the process began, in MB of 10^6 bytes.
    pub peak_memory_mb: f64,
    /// Memory at the end of the run.
    pub memory_mb: f64,
}

/// Rows in the table against points acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Rows that the run added to the table.
    pub rows: u64,
    /// Points acknowledged.
    pub acknowledged: u64,
    /// Points whose outcome the client does not know.
    pub unknown: u64,
    /// Whether every acknowledged point is there and nothing that was never sent, or twice.
    pub sound: bool,
}

impl Verification {
    /// Compares the rows before and after a run with its tally.
    #[must_use]
    pub fn new(before: u64, after: u64, tally: &Tally) -> Self {
        let rows = after.saturating_sub(before);
        let most = tally.points + tally.unknown_points;
        let sound = after >= before && (tally.points..=most).contains(&rows);
        Self { rows, acknowledged: tally.points, unknown: tally.unknown_points, sound }
    }
}

impl Cost {
    /// Compares two readings of a process.
    #[must_use]
    pub fn new(before: Option<Usage>, after: Option<Usage>, points: u64) -> Option<Self> {
        let (before, after) = (before?, after?);
        let cpu_seconds = after.cpu.saturating_sub(before.cpu).as_secs_f64();
        Some(Self {
            cpu_seconds,
            cpu_seconds_per_million_points: if points == 0 { 0.0 } else { cpu_seconds * 1e6 / points as f64 },
            peak_memory_mb: after.peak_memory_bytes as f64 / 1e6,
            memory_mb: after.memory_bytes as f64 / 1e6,
        })
    }
}

impl Report {
    /// Sums up a run.
    #[must_use]
    pub fn new(options: &Options, mut tally: Tally, elapsed: Duration) -> Self {
        tally.latencies_ns.sort_unstable();
        let millis = |percent| percentile(&tally.latencies_ns, percent) as f64 / 1e6;
        let latency_ms = Latency { p50: millis(50), p90: millis(90), p99: millis(99), max: millis(100) };
        let seconds = elapsed.as_secs_f64();
        Self {
            kind: options.kind.to_string(),
            shape: options.shape.to_string(),
            encoding: options.encoding.to_string(),
            durability: options.durability.map_or(String::new(), |level| level.to_string()),
            batch: options.batch,
            workers: options.workers,
            hosts: options.hosts,
            rate: options.rate,
            seconds,
            points: tally.points,
            points_per_second: tally.points as f64 / seconds,
            requests: tally.requests,
            requests_per_second: tally.requests as f64 / seconds,
            latency_ms,
            refused_points: tally.refused_points,
            unknown_points: tally.unknown_points,
            refusals: tally.refusals,
            failures: tally.failures,
            retry_after: tally.retry_after,
            reason: tally.reason,
            sent_bytes: tally.sent_bytes,
            made_on_the_way: tally.made_on_the_way,
            server: None,
            generator: None,
            verification: None,
        }
    }

    /// Returns whether points were acknowledged and, where that was checked, all of them are there.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.points > 0 && self.verification.is_none_or(|found| found.sound)
    }

    fn write_trouble(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (status, count) in &self.refusals {
            writeln!(f, "refused     {count} requests with status {status}")?;
        }
        for (kind, count) in &self.failures {
            writeln!(f, "failed      {count} connections: {kind}")?;
        }
        if self.refused_points + self.unknown_points > 0 {
            writeln!(f, "not stored  {} points refused, {} of unknown fate", self.refused_points, self.unknown_points)?;
        }
        if let Some(seconds) = self.retry_after {
            writeln!(f, "retry-after {seconds} s")?;
        }
        if let Some(reason) = &self.reason {
            writeln!(f, "one reason  {reason}")?;
        }
        if self.made_on_the_way > 0 {
            let work = if self.encoding == Encoding::None.to_string() { "written" } else { "compressed" };
            writeln!(
                f,
                "note        {} requests were {work} during the run, on the generator's CPU",
                self.made_on_the_way
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let durability = if self.durability.is_empty() { "the server's" } else { &self.durability };
        writeln!(
            f,
            "{} {}, {} points a request, {} connections, {} hosts, encoding {}, durability {durability}",
            self.kind, self.shape, self.batch, self.workers, self.hosts, self.encoding
        )?;
        writeln!(f, "points      {} in {:.2} s: {:.0} points/s", self.points, self.seconds, self.points_per_second)?;
        writeln!(f, "requests    {}: {:.0} requests/s", self.requests, self.requests_per_second)?;
        let Latency { p50, p90, p99, max } = self.latency_ms;
        let from = if self.rate.is_some() { " from when it was due" } else { "" };
        writeln!(f, "latency     p50 {p50:.2} ms, p90 {p90:.2} ms, p99 {p99:.2} ms, max {max:.2} ms{from}")?;
        writeln!(f, "sent        {:.1} MB", self.sent_bytes as f64 / 1e6)?;
        self.write_trouble(f)?;
        for (name, cost) in [("server", &self.server), ("generator", &self.generator)] {
            match cost {
                Some(cost) => writeln!(
                    f,
                    "{name:11} {:.4} CPU s per million points, {:.2} CPU s, {:.0} MB of memory, {:.0} MB at most",
                    cost.cpu_seconds_per_million_points, cost.cpu_seconds, cost.memory_mb, cost.peak_memory_mb
                )?,
                None => writeln!(f, "{name:11} CPU and memory unknown: no such process to be seen here")?,
            }
        }
        if let Some(Verification { rows, acknowledged, unknown, sound }) = self.verification {
            let verdict = if sound { "sound" } else { "NOT SOUND" };
            writeln!(
                f,
                "verified    {rows} rows for {acknowledged} acknowledged points ({unknown} unknown): {verdict}"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn tally() -> Tally {
        let mut tally = Tally::default();
        for millis in 1..=100 {
            tally.acknowledge(1000, Duration::from_millis(millis));
        }
        tally
    }

    #[test]
    fn figures_are_worked_out() {
        let report = Report::new(&Options::parse_from(["load"]), tally(), Duration::from_secs(2));
        assert_eq!((report.points, report.requests), (100_000, 100));
        assert_eq!((report.points_per_second, report.requests_per_second), (50_000.0, 50.0));
        assert_eq!(report.latency_ms, Latency { p50: 50.0, p90: 90.0, p99: 99.0, max: 100.0 });
        assert!(report.is_sound());
    }

    #[test]
    fn cost_is_what_was_added_during_the_run() {
        let usage =
            |cpu| Usage { cpu: Duration::from_secs(cpu), peak_memory_bytes: 3_000_000, memory_bytes: 2_000_000 };
        let cost = Cost::new(Some(usage(5)), Some(usage(7)), 4_000_000).unwrap();
        assert_eq!((cost.cpu_seconds, cost.cpu_seconds_per_million_points), (2.0, 0.5));
        assert_eq!((cost.peak_memory_mb, cost.memory_mb), (3.0, 2.0));
        assert_eq!(Cost::new(Some(usage(5)), None, 1), None);
        assert_eq!(Cost::new(Some(usage(5)), Some(usage(7)), 0).unwrap().cpu_seconds_per_million_points, 0.0);
    }

    #[test]
    fn rows_must_be_the_acknowledged_points() {
        let mut tally = tally();
        tally.fail(1000, &std::io::Error::other("cut"));
        // (rows before, rows after, sound)
        for (before, after, sound) in [
            (0, 100_000, true),
            (5, 100_005, true),
            (0, 100_500, true),
            (0, 101_000, true),
            (0, 99_999, false),
            (0, 101_001, false),
            (10, 5, false),
        ] {
            assert_eq!(Verification::new(before, after, &tally).sound, sound, "{before} {after}");
        }
    }

    #[test]
    fn trouble_is_in_the_text() {
        let mut tally = tally();
        tally.refuse(1000, 503, Some(2), b"log is full");
        tally.fail(1000, &std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        let text = Report::new(&Options::parse_from(["load"]), tally, Duration::from_secs(1)).to_string();
        for part in ["1 requests with status 503", "1 connections: broken pipe", "retry-after 2 s", "log is full"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }
}
