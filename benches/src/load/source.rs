//! Where a connection's requests come from: a pool of bodies, or new ones, compressed ahead or on the way.
//!
//! Owns the connection's clock: every request gets later timestamps than the one before. Never sends anything.

use std::{
    collections::VecDeque,
    io::{self, Write as _},
};

use flate2::{Compression, write::GzEncoder};

use super::{
    body::{TICK_NS, Template},
    options::{Encoding, Kind, Options},
    rows::Rows,
};

/// Compression level of zstd: its own default, which clients use.
const ZSTD_LEVEL: i32 = 3;

/// What the sources of one run have in common.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) options: Options,
    /// Host and port, for the head of a request.
    pub(super) authority: String,
    /// Time of the first tick. Runs that start later have later times.
    pub(super) start_ns: i64,
}

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Source {
    plan: Plan,
    rows: Rows,
    pool: Vec<Template>,
    turn: usize,
    prepared: VecDeque<Vec<u8>>,
    current: Vec<u8>,
    /// Timestamp of the next request's tick 0.
    base_ns: i64,
    /// Number of the next request's first point.
    first: u64,
    made: u64,
}

/// A request, ready to be sent.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// Head and body.
    pub(super) bytes: &'a [u8],
    /// Number of its first point among the points of this connection.
    pub(super) first: u64,
    /// How many points it has.
    pub(super) points: u32,
}

impl Source {
    /// Prepares the requests of connection `worker`.
    pub(super) fn new(plan: &Plan, worker: u32) -> io::Result<Self> {
        let options = &plan.options;
        let rows = Rows::new(options.shape, hosts(options, worker), options.seed, u64::from(worker));
        let mut source = Self {
            plan: plan.clone(),
            rows,
            pool: Vec::new(),
            turn: 0,
            prepared: VecDeque::new(),
            current: Vec::new(),
            // Connections that share a host differ in the nanosecond.
            base_ns: plan.start_ns + i64::from(worker),
            first: 0,
            made: 0,
        };
        for _ in 0..options.pool {
            let template = source.template()?;
            source.pool.push(template);
        }
        if options.encoding != Encoding::None {
            for _ in 0..options.prepare {
                let request = source.make()?;
                source.prepared.push_back(request);
            }
            source.made = 0;
        }
        Ok(source)
    }

    /// Returns how many requests were written or compressed during the run instead of ahead of it.
    pub(super) fn made_on_the_way(&self) -> u64 {
        self.made
    }

    /// Returns the next request. Its points were in none before.
    pub(super) fn next(&mut self) -> io::Result<Request<'_>> {
        let points = self.plan.options.batch;
        let first = self.first;
        self.first += u64::from(points);
        if self.plan.options.encoding == Encoding::None && !self.pool.is_empty() {
            // The cheap way: the head stands before the body already, and only timestamps change.
            let base_ns = self.tick();
            let bytes = self.pooled().map(|template| template.at(base_ns)).unwrap_or_default();
            return Ok(Request { bytes, first, points });
        }
        self.current = match self.prepared.pop_front() {
            Some(request) => request,
            None => self.make()?,
        };
        Ok(Request { bytes: &self.current, first, points })
    }

    /// Makes one request from the start: writes the body if there is no pool, and compresses it.
    fn make(&mut self) -> io::Result<Vec<u8>> {
        self.made += 1;
        let base_ns = self.tick();
        let encoding = self.plan.options.encoding;
        let mut fresh = if self.pool.is_empty() { Some(self.template()?) } else { None };
        let template = match fresh.as_mut() {
            Some(template) => Some(template),
            None => self.pooled(),
        };
        let body = template.map(|template| template.at(base_ns)).unwrap_or_default();
        match encoding {
            Encoding::None => Ok(body.to_vec()),
            Encoding::Gzip | Encoding::Zstd => {
                let packed = compress(encoding, body)?;
                Ok([self.head(packed.len()).into_bytes(), packed].concat())
            }
        }
    }

    /// Writes the next rows as a body; with its head, unless it is compressed first.
    fn template(&mut self) -> io::Result<Template> {
        let (kind, shape) = (self.plan.options.kind, self.plan.options.shape);
        let mut template = Template::new(kind, shape, &self.rows.take(self.plan.options.batch))?;
        if self.plan.options.encoding == Encoding::None {
            template.prepend(self.head(template.len()).as_bytes());
        }
        Ok(template)
    }

    fn pooled(&mut self) -> Option<&mut Template> {
        let turn = self.turn;
        self.turn = (turn + 1) % self.pool.len().max(1);
        self.pool.get_mut(turn)
    }

    fn tick(&mut self) -> i64 {
        let base_ns = self.base_ns;
        let ticks = i64::try_from(self.rows.ticks(self.plan.options.batch)).unwrap_or(i64::MAX / TICK_NS);
        self.base_ns = base_ns.saturating_add(ticks * TICK_NS);
        base_ns
    }

    fn head(&self, body_bytes: usize) -> String {
        let options = &self.plan.options;
        let (path, content_type) = match options.kind {
            Kind::Lp => {
                (format!("/api/v2/write?bucket={}&precision=ns", options.database), "text/plain; charset=utf-8")
            }
            Kind::MsgpackColumnar | Kind::MsgpackRow => ("/api/v1/write/msgpack".to_owned(), "application/msgpack"),
        };
        let encoding = match options.encoding {
            Encoding::None => String::new(),
            Encoding::Gzip | Encoding::Zstd => format!("Content-Encoding: {}\r\n", options.encoding),
        };
        let durability = options.durability.map_or(String::new(), |level| format!("x-arc-durability: {level}\r\n"));
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nx-arc-database: {}\r\n\
             {encoding}{durability}Content-Length: {body_bytes}\r\n\r\n",
            self.plan.authority, options.database
        )
    }
}

/// Returns the hosts that report through connection `worker`: each host through one connection, unless there are fewer
/// hosts than connections or all are to be shared.
fn hosts(options: &Options, worker: u32) -> Vec<usize> {
    let owner = if options.shared_hosts { None } else { Some(worker % options.hosts.max(1)) };
    let step = if options.hosts < options.workers { options.hosts } else { options.workers };
    let wanted = |host: &u32| owner.is_none_or(|owner| host % step.max(1) == owner % step.max(1));
    (0..options.hosts).filter(wanted).filter_map(|host| usize::try_from(host).ok()).collect()
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
    use std::{collections::BTreeSet, io::Read as _};

    use clap::Parser as _;

    use super::*;

    fn plan(arguments: &[&str]) -> Plan {
        let options = Options::parse_from(["load"].iter().chain(arguments));
        Plan { options, authority: "localhost:1".into(), start_ns: 1_767_225_600_000_000_000 }
    }

    fn split(request: &[u8]) -> (String, Vec<u8>) {
        let end = request.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        (String::from_utf8(request[..end].to_vec()).unwrap(), request[end..].to_vec())
    }

    fn unpack(encoding: &str, body: Vec<u8>) -> Vec<u8> {
        let mut out = Vec::new();
        match encoding {
            "gzip" => drop(flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut out).unwrap()),
            "zstd" => out = zstd::decode_all(body.as_slice()).unwrap(),
            _ => out = body,
        }
        out
    }

    #[test]
    fn no_two_points_of_a_run_are_one() {
        // More connections than hosts share hosts; odd batches begin in the middle of a tick.
        for extra in [
            ["--workers", "3", "--hosts", "10", "--pool", "2"],
            ["--workers", "5", "--hosts", "2", "--pool", "3"],
            ["--workers", "3", "--hosts", "10", "--pool", "0"],
        ] {
            for encoding in ["none", "gzip", "zstd"] {
                let common = ["--batch", "7", "--prepare", "2", "--encoding", encoding];
                let plan = plan(&[common.as_slice(), &extra].concat());
                let mut points = BTreeSet::new();
                for worker in 0..plan.options.workers {
                    let mut source = Source::new(&plan, worker).unwrap();
                    for number in 0..5 {
                        let request = source.next().unwrap();
                        assert_eq!((request.first, request.points), (number * 7, 7));
                        let body = unpack(encoding, split(request.bytes).1);
                        for point in arc_lp::points(&body).map(Result::unwrap) {
                            points.insert((point.series_key().to_vec(), point.timestamp()));
                        }
                    }
                }
                assert_eq!(points.len(), plan.options.workers as usize * 35, "{encoding} {extra:?}");
            }
        }
    }

    #[test]
    fn every_host_reports_through_one_connection() {
        let cases: [(&[&str], Vec<Vec<usize>>); 3] = [
            (&["--workers", "2", "--hosts", "5"], vec![vec![0, 2, 4], vec![1, 3]]),
            (&["--workers", "3", "--hosts", "2"], vec![vec![0], vec![1], vec![0]]),
            (&["--workers", "2", "--hosts", "2", "--shared-hosts"], vec![vec![0, 1], vec![0, 1]]),
        ];
        for (arguments, want) in cases {
            let options = plan(arguments).options;
            let got: Vec<_> = (0..options.workers).map(|worker| hosts(&options, worker)).collect();
            assert_eq!(got, want, "{arguments:?}");
        }
    }

    #[test]
    fn the_head_says_what_follows() {
        let plan = plan(&["--encoding", "gzip", "--durability", "memory", "--database", "plant", "--batch", "3"]);
        let mut source = Source::new(&plan, 0).unwrap();
        let (head, body) = split(source.next().unwrap().bytes);
        let length = format!("\r\nContent-Length: {}\r\n", body.len());
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
        let plan = plan(&["--encoding", "zstd", "--prepare", "2", "--batch", "3"]);
        let mut source = Source::new(&plan, 0).unwrap();
        for want in [0, 0, 1, 2] {
            source.next().unwrap();
            assert_eq!(source.made_on_the_way(), want);
        }
    }
}
