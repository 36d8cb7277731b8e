//! One connection at work: sends a request, waits for its answer, sends the next.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::{
    http::{Connection, Response},
    options::Options,
    source::Source,
    tally::Tally,
};

/// Wait before the next try when there is no server, as after a kill.
const RECONNECT: Duration = Duration::from_millis(50);

/// Wait after a refusal that names no time.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The file of acknowledged requests, shared by all connections.
pub(super) type Log = Mutex<BufWriter<File>>;

/// When the requests of one connection are due.
#[derive(Debug, Clone, Copy)]
struct Pace {
    first: Instant,
    interval: Duration,
}

impl Pace {
    /// Spreads the requests of all connections evenly; `None` without a rate.
    fn new(options: &Options, worker: u32, start: Instant) -> Option<Self> {
        let rate = options.rate? as f64;
        let between = f64::from(options.batch) / rate;
        let interval = Duration::try_from_secs_f64(between * f64::from(options.workers)).ok()?;
        let offset = Duration::try_from_secs_f64(between * f64::from(worker)).ok()?;
        Some(Self { first: start + offset, interval })
    }

    fn due(&self, number: u32) -> Instant {
        self.first + self.interval * number
    }
}

/// One connection and what it has to send.
#[derive(Debug)]
pub(super) struct Worker<'a> {
    pub(super) number: u32,
    pub(super) options: &'a Options,
    pub(super) authority: &'a str,
    pub(super) source: Source,
    pub(super) log: Option<&'a Log>,
}

impl Worker<'_> {
    /// Sends requests from `start` to `end` and returns what became of them.
    pub(super) fn run(mut self, start: Instant, end: Instant) -> io::Result<Tally> {
        let pace = Pace::new(self.options, self.number, start);
        let mut tally = Tally::default();
        let mut connection = None;
        let mut number = 0;
        while self.options.requests.is_none_or(|most| number < most) {
            let due = pace.map(|pace| pace.due(number));
            if due.unwrap_or_else(Instant::now) >= end {
                break;
            }
            thread::sleep(due.unwrap_or(start).saturating_duration_since(Instant::now()));
            let mut open = match connection.take().map_or_else(|| Connection::open(self.authority), Ok) {
                Ok(open) => open,
                Err(error) => {
                    tally.fail(0, &error);
                    thread::sleep(RECONNECT.min(end.saturating_duration_since(Instant::now())));
                    continue;
                }
            };
            if let Some(response) = self.send(&mut open, due, &mut tally)? {
                connection = response.keep_alive.then_some(open);
                if response.status == 503 {
                    let wait = response.retry_after.map_or(BACK_OFF, Duration::from_secs);
                    thread::sleep(wait.min(end.saturating_duration_since(Instant::now())));
                }
            }
            number += 1;
        }
        tally.made_on_the_way = self.source.made_on_the_way();
        Ok(tally)
    }

    /// Sends one request and counts its outcome; no answer means that the connection is of no more
    /// use.
    fn send(&mut self, open: &mut Connection, due: Option<Instant>, tally: &mut Tally) -> io::Result<Option<Response>> {
        let request = self.source.advance()?;
        // A request that had to wait for the one before it was late already.
        let began = due.unwrap_or_else(Instant::now);
        tally.sent_bytes += (request.head.len() + request.body.len()) as u64;
        let response = match open.exchange(request.head, request.body) {
            Ok(response) => response,
            Err(error) => {
                tally.fail(request.points, &error);
                return Ok(None);
            }
        };
        if (200..300).contains(&response.status) {
            tally.acknowledge(request.points, began.elapsed());
            if let Some(log) = self.log {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                writeln!(log, "{} {} {}", self.number, request.first, request.points)?;
            }
        } else {
            tally.refuse(request.points, response.status, response.retry_after, &response.body);
        }
        Ok(Some(response))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn a_rate_is_spread_over_connections_and_time() {
        let start = Instant::now();
        let options = Options::parse_from(["load", "--rate", "1000", "--batch", "100", "--workers", "4"]);
        // Ten requests a second: one every 100 ms, each connection every 400 ms.
        let due = |worker, number| Pace::new(&options, worker, start).unwrap().due(number) - start;
        assert_eq!(due(0, 0), Duration::ZERO);
        assert_eq!(due(3, 0), Duration::from_millis(300));
        assert_eq!(due(1, 2), Duration::from_millis(900));
        assert!(Pace::new(&Options::parse_from(["load"]), 0, start).is_none());
    }
}
