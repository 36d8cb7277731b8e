//! The load generator: writes points to a server over HTTP and reports what that cost.
//!
//! `options` says what to do, `rows` and `body` make the bodies, `bodies` hands them out with fresh
//! timestamps, `source` makes requests of them, `worker` sends them over `http`, `tally` and
//! `report` sum up, `process` reads what it cost. Never links the server: what is measured is what
//! a client sees.

mod bodies;
mod body;
pub mod http;
mod options;
pub mod process;
mod report;
mod rows;
mod source;
pub mod tally;
pub mod verify;
mod worker;

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicI64},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

pub use bodies::{Bodies, Recipe, own_hosts};
pub use body::TICK_NS;
pub use options::{Encoding, Kind, Options, Order, Shape};
pub use report::{Cost, Latency, Report, Verification};

use process::Usage;
use source::Source;
use tally::Tally;
use worker::{Log, Worker};

#[cfg(test)]
mod tests;

/// Does one run.
///
/// # Errors
///
/// If the URL is bad, the server cannot count rows for `--verify`, or the log cannot be written. A
/// server that is away or refuses is no error: the report counts it.
pub fn run(options: &Options) -> io::Result<Report> {
    let authority = http::authority(&options.url)?;
    let sources = prepare(options, &authority)?;
    let log = options.log.as_ref().map(File::create).transpose()?.map(|file| Mutex::new(BufWriter::new(file)));
    let count = || verify::count(&authority, &options.database, options.shape.table());
    let before = if options.verify { Some(count()?) } else { None };

    let pid = options.pid.or_else(|| process::listening_on(port(&authority)?));
    let readings = || (pid.and_then(process::usage), process::usage(std::process::id()));
    let (server, generator) = readings();
    let start = Instant::now();
    let tally = write(options, &authority, sources, log.as_ref(), start)?;
    let elapsed = start.elapsed();
    let generator_after = readings().1;
    thread::sleep(options.settle);
    let server_after = readings().0;

    if let Some(log) = &log {
        log.lock().unwrap_or_else(PoisonError::into_inner).flush()?;
    }
    let verification = match before {
        Some(before) => Some(Verification::new(before, count()?, &tally)),
        None => None,
    };
    let cost = |before: Option<Usage>, after: Option<Usage>| Cost::new(before, after, tally.points);
    let (server, generator) = (cost(server, server_after), cost(generator, generator_after));
    let report = Report::new(options, tally, elapsed);
    Ok(Report { server, generator, verification, ..report })
}

/// Makes the requests of every connection, several at a time: compressing them is work.
fn prepare(options: &Options, authority: &str) -> io::Result<Vec<Source>> {
    let clock = &Arc::new(AtomicI64::new(now_ns()));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..options.workers)
            .map(|worker| scope.spawn(move || Source::new(options, authority, clock, worker)))
            .collect();
        threads.into_iter().map(joined).collect()
    })
}

/// Lets every connection write until the time is over.
fn write(
    options: &Options,
    authority: &str,
    sources: Vec<Source>,
    log: Option<&Log>,
    start: Instant,
) -> io::Result<Tally> {
    let end = start + options.seconds;
    let tallies: io::Result<Vec<Tally>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..)
            .zip(sources)
            .map(|(number, source)| Worker { number, options, authority, source, log })
            .map(|worker| scope.spawn(move || worker.run(start, end)))
            .collect();
        threads.into_iter().map(joined).collect()
    });
    Ok(tallies?.into_iter().fold(Tally::default(), |mut sum, tally| {
        sum.merge(tally);
        sum
    }))
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the load generator panicked")))
}

fn port(authority: &str) -> Option<u16> {
    authority.rsplit_once(':')?.1.parse().ok()
}

/// Returns a first timestamp for bodies: now, cut to a whole tick.
#[must_use]
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let now = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
    now - now % TICK_NS
}
