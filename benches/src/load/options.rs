//! What a run of the load generator is told.

use std::{fmt, path::PathBuf, time::Duration};

use arc_core::Durability;
use clap::{Parser, ValueEnum};

/// Writes points over HTTP as fast as it is answered, or at a rate, and reports what that cost
/// whom.
///
/// Prepares its requests ahead and patches fresh timestamps into them, so that no two points are
/// the same and the generator takes little of the machine. Every connection reports hosts of its
/// own, in the order of time.
#[derive(Debug, Clone, Parser)]
#[command(name = "load")]
pub struct Options {
    /// Address of the server.
    #[arg(long, default_value = "http://127.0.0.1:8000")]
    pub url: String,

    /// Format of the requests.
    #[arg(long, value_enum, default_value_t = Kind::Lp)]
    pub kind: Kind,

    /// What a point looks like.
    #[arg(long, value_enum, default_value_t = Shape::Short)]
    pub shape: Shape,

    /// Points in a request.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub batch: u32,

    /// Keep-alive connections, each with one request under way.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub workers: u32,

    /// How long to write.
    #[arg(long, default_value = "30", value_parser = seconds)]
    pub seconds: Duration,

    /// Requests after which a connection stops, if it gets that far. Default: no end.
    #[arg(long)]
    pub requests: Option<u32>,

    /// Compression of the request bodies: gzip level 6, zstd level 3.
    #[arg(long, value_enum, default_value_t = Encoding::None)]
    pub encoding: Encoding,

    /// Points a second over all connections; latency then counts from when a request was due.
    /// Default: as fast as answers come.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub rate: Option<u64>,

    /// Process of the server. Default: the one that listens on the port of the URL, on Linux.
    #[arg(long)]
    pub pid: Option<u32>,

    /// Database to write to: letters, digits, `_` and `-`.
    #[arg(long, default_value = "load", value_parser = database)]
    pub database: String,

    /// Path and query string that line protocol is posted to, for other servers. Default: ours,
    /// with the database.
    #[arg(long)]
    pub path: Option<String>,

    /// What acknowledged points must survive: disk, process or memory. Default: what the server is
    /// set to.
    #[arg(long)]
    pub durability: Option<Durability>,

    /// Number of series.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub hosts: u32,

    /// Lets every connection report every host, so that the points of a host arrive out of order.
    #[arg(long)]
    pub shared_hosts: bool,

    /// Takes all times from one clock, in the order in which requests are made: of shared hosts only
    /// points of requests that overtake each other arrive out of order, as from a queue with many
    /// consumers.
    #[arg(long)]
    pub one_clock: bool,

    /// Order in which the hosts report in each tick.
    #[arg(long, value_enum, default_value_t = Order::InTurn)]
    pub order: Order,

    /// Bodies a connection takes turns with: their values repeat, their timestamps never. 0 makes
    /// new values for every request, which the size of the files needs to be fair and which takes
    /// CPU of the generator.
    #[arg(long, default_value_t = 16)]
    pub pool: u32,

    /// Requests that a connection compresses before the run; those after them are compressed on the
    /// way.
    #[arg(long, default_value_t = 256)]
    pub prepare: u32,

    /// Seconds to go on reading the server's CPU and memory after the last request, so that its
    /// flushes count.
    #[arg(long, default_value = "0", value_parser = seconds)]
    pub settle: Duration,

    /// Seed of tags and values.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,

    /// Counts the rows by SQL before and after, and fails if they are not the acknowledged points.
    #[arg(long)]
    pub verify: bool,

    /// File that gets a line for each acknowledged request: connection, number of its first point,
    /// points.
    #[arg(long)]
    pub log: Option<PathBuf>,

    /// Prints the report as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Format of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// InfluxDB line protocol.
    Lp,
    /// One map of arrays.
    MsgpackColumnar,
    /// An array of maps, one for each point.
    MsgpackRow,
}

/// What a point looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// 2 tags, 2 floats.
    Short,
    /// 1 tag, 3 floats.
    Iot,
    /// 10 tags, 10 integers.
    Tsbs,
}

/// Order of the hosts within a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// The same in each tick.
    InTurn,
    /// Another one in each tick.
    Random,
}

/// Compression of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Encoding {
    /// As it is.
    None,
    /// RFC 1952, level 6.
    Gzip,
    /// RFC 8878, level 3.
    Zstd,
}

/// Displays an option's value as the command line spells it.
fn spelled(value: impl ValueEnum, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    value.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        spelled(*self, f)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        spelled(*self, f)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        spelled(*self, f)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        spelled(*self, f)
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// The name stands in a URL and in a header, so it may hold nothing that means something there.
fn database(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
        Ok(text.to_owned())
    } else {
        Err("expected letters, digits, `_` and `-`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_its_defaults_are_those_of_the_targets() {
        Options::command().debug_assert();
        let options = Options::parse_from(["load"]);
        assert_eq!((options.batch, options.workers, options.hosts), (1000, 12, 100));
    }

    #[test]
    fn bad_values_are_refused() {
        for bad in [
            ["--database", "a b"],
            ["--database", ""],
            ["--seconds", "-1"],
            ["--seconds", "x"],
            ["--batch", "0"],
            ["--durability", "paper"],
            ["--kind", "xml"],
        ] {
            assert!(Options::try_parse_from(["load"].into_iter().chain(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn values_are_spelled_as_on_the_command_line() {
        assert_eq!(Kind::MsgpackColumnar.to_string(), "msgpack-columnar");
        assert_eq!(Shape::Tsbs.to_string(), "tsbs");
        assert_eq!(Encoding::Zstd.to_string(), "zstd");
        assert_eq!(Order::InTurn.to_string(), "in-turn");
    }
}
