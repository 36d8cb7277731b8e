//! Where a connection's requests come from: bodies, compressed ahead or on the way, and a head for
//! each.
//!
//! Never sends anything.

use std::{
    collections::VecDeque,
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use flate2::{Compression, write::GzEncoder};

use super::{
    bodies::{Bodies, Recipe, own_hosts},
    options::{Encoding, Kind, Options},
};

/// Compression level of zstd: its own default, which clients use.
const ZSTD_LEVEL: i32 = 3;

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Source {
    bodies: Bodies,
    encoding: Encoding,
    batch: u32,
    /// The head up to the value of `Content-Length`.
    head_start: String,
    head: String,
    prepared: VecDeque<Vec<u8>>,
    packed: Vec<u8>,
    /// Number of the next request's first point.
    first: u64,
    made: u64,
}

/// A request, ready to be sent.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) head: &'a [u8],
    pub(super) body: &'a [u8],
    /// Number of its first point among the points of this connection.
    pub(super) first: u64,
    /// How many points it has.
    pub(super) points: u32,
}

impl Source {
    /// Prepares the requests of connection `worker` to the server `authority`; `clock` has the time
    /// of the first point, and goes on where it is the clock of all connections.
    pub(super) fn new(options: &Options, authority: &str, clock: &Arc<AtomicI64>, worker: u32) -> io::Result<Self> {
        let Options { kind, shape, batch, pool, seed, order, .. } = *options;
        let start_ns = clock.load(Ordering::Relaxed);
        let workers = if options.shared_hosts { 1 } else { options.workers };
        let hosts = own_hosts(options.hosts, workers, worker);
        let mut bodies = Bodies::new(Recipe { kind, shape, batch, pool, seed, order, start_ns }, hosts, worker)?;
        if options.one_clock {
            bodies = bodies.with_clock(clock);
        }
        let mut prepared = VecDeque::new();
        if options.encoding != Encoding::None {
            for _ in 0..options.prepare {
                prepared.push_back(compress(options.encoding, bodies.advance()?)?);
            }
        }
        Ok(Self {
            bodies,
            encoding: options.encoding,
            batch,
            head_start: head_start(options, authority),
            head: String::new(),
            prepared,
            packed: Vec::new(),
            first: 0,
            made: 0,
        })
    }

    /// Returns how many requests were written or compressed during the run instead of ahead of it.
    pub(super) fn made_on_the_way(&self) -> u64 {
        self.made
    }

    /// Returns the next request. Its points were in none before.
    pub(super) fn advance(&mut self) -> io::Result<Request<'_>> {
        let first = self.first;
        self.first += u64::from(self.batch);
        let ready = self.prepared.pop_front();
        let packs = self.encoding != Encoding::None;
        self.made += u64::from(ready.is_none() && (packs || self.bodies.are_fresh()));
        let body = match ready {
            Some(ready) => {
                self.packed = ready;
                &self.packed
            }
            None if packs => {
                self.packed = compress(self.encoding, self.bodies.advance()?)?;
                &self.packed
            }
            None => self.bodies.advance()?,
        };
        self.head.clear();
        self.head.push_str(&self.head_start);
        self.head.push_str(&body.len().to_string());
        self.head.push_str("\r\n\r\n");
        Ok(Request { head: self.head.as_bytes(), body, first, points: self.batch })
    }
}

fn head_start(options: &Options, authority: &str) -> String {
    let database = &options.database;
    let (path, content_type) = match options.kind {
        Kind::Lp => {
            let ours = || format!("/api/v2/write?bucket={database}&precision=ns");
            (options.path.clone().unwrap_or_else(ours), "text/plain; charset=utf-8")
        }
        Kind::MsgpackColumnar | Kind::MsgpackRow => ("/api/v1/write/msgpack".to_owned(), "application/msgpack"),
    };
    let encoding = match options.encoding {
        Encoding::None => String::new(),
        Encoding::Gzip | Encoding::Zstd => format!("Content-Encoding: {}\r\n", options.encoding),
    };
    let durability = options.durability.map_or(String::new(), |level| format!("x-arc-durability: {level}\r\n"));
    format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: {content_type}\r\nx-arc-database: {database}\r\n\
         {encoding}{durability}Content-Length: "
    )
}

fn compress(encoding: Encoding, body: &[u8]) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::None => Ok(body.to_vec()),
        Encoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
            encoder.write_all(body)?;
            encoder.finish()
        }
        Encoding::Zstd => zstd::bulk::compress(body, ZSTD_LEVEL),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use clap::Parser as _;

    use super::*;

    fn source(arguments: &[&str]) -> Source {
        let options = Options::parse_from(["load"].iter().chain(arguments));
        Source::new(&options, "localhost:1", &Arc::new(AtomicI64::new(1_767_225_600_000_000_000)), 0).unwrap()
    }

    fn unpack(encoding: &str, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match encoding {
            "gzip" => drop(flate2::read::GzDecoder::new(body).read_to_end(&mut out).unwrap()),
            "zstd" => out = zstd::decode_all(body).unwrap(),
            _ => out = body.to_vec(),
        }
        out
    }

    #[test]
    fn prepared_or_not_and_packed_or_not_the_points_are_the_same() {
        let points = |encoding: &str, prepare: &str| -> Vec<Vec<u8>> {
            let mut source = source(&["--batch", "7", "--encoding", encoding, "--prepare", prepare]);
            let mut one = |number: u64| {
                let request = source.advance().unwrap();
                assert_eq!((request.first, request.points), (number * 7, 7));
                unpack(encoding, request.body)
            };
            (0..5).map(&mut one).collect()
        };
        let want = points("none", "0");
        for (encoding, prepare) in [("gzip", "0"), ("gzip", "2"), ("zstd", "0"), ("zstd", "9")] {
            assert_eq!(points(encoding, prepare), want, "{encoding} {prepare}");
        }
    }

    #[test]
    fn the_head_says_what_follows() {
        let arguments = ["--encoding", "gzip", "--durability", "memory", "--database", "plant", "--batch", "3"];
        let mut source = source(&arguments);
        let request = source.advance().unwrap();
        let head = String::from_utf8(request.head.to_vec()).unwrap();
        let length = format!("\r\nContent-Length: {}\r\n\r\n", request.body.len());
        for part in [
            "POST /api/v2/write?bucket=plant&precision=ns HTTP/1.1\r\n",
            "\r\nContent-Encoding: gzip\r\n",
            "\r\nx-arc-durability: memory\r\n",
            &length,
        ] {
            assert!(head.contains(part), "{part:?} in {head:?}");
        }
    }

    #[test]
    fn requests_made_on_the_way_are_counted() {
        for (arguments, want) in [
            (["--encoding", "zstd", "--prepare", "2"], [0, 0, 1, 2]),
            (["--encoding", "none", "--pool", "0"], [1, 2, 3, 4]),
            (["--encoding", "none", "--pool", "1"], [0, 0, 0, 0]),
        ] {
            let mut source = source(&[arguments.as_slice(), &["--batch", "3"]].concat());
            for want in want {
                source.advance().unwrap();
                assert_eq!(source.made_on_the_way(), want, "{arguments:?}");
            }
        }
    }
}
