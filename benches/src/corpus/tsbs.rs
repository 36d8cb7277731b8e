//! The three use cases of the Time Series Benchmark Suite, in our own words and values.

use super::{INTERVAL_NS, START_NS, Source, line::LineWriter};
use crate::{
    hosts::{CPU_FIELDS, Host},
    random::Random,
    walk::{Walk, two_decimals, whole},
};

const HOSTS: usize = 100;

/// One measurement: ten tags, ten integers that walk.
pub(super) struct CpuOnly {
    hosts: Vec<(Host, Walk)>,
    time_ns: i64,
}

impl CpuOnly {
    pub(super) fn new(seed: u64) -> Self {
        let hosts = (0..HOSTS).map(|n| (Host::new(seed, n), walk(seed, n, CPU_FIELDS.len()))).collect();
        Self { hosts, time_ns: START_NS }
    }
}

impl Source for CpuOnly {
    fn write(&mut self, line: &mut LineWriter) {
        for (host, walk) in &mut self.hosts {
            line.start("cpu");
            host.tags().for_each(|(key, value)| line.tag(key, value));
            for (key, value) in CPU_FIELDS.into_iter().zip(walk.advance()) {
                line.integer(key, whole(*value));
            }
            line.end(self.time_ns);
        }
        self.time_ns += INTERVAL_NS;
    }
}

/// Measurement, its own tag (empty: none), the step its counters grow by (0: gauges), fields.
type Table = (&'static str, &'static str, u64, &'static [&'static str]);

const DEVOPS: [Table; 9] = [
    ("cpu", "", 0, &CPU_FIELDS),
    (
        "diskio",
        "serial",
        5_000,
        &["reads", "writes", "read_bytes", "write_bytes", "read_time", "write_time", "io_time"],
    ),
    ("disk", "path", 0, &["total", "free", "used", "used_percent", "inodes_total", "inodes_free", "inodes_used"]),
    (
        "kernel",
        "",
        300,
        &["boot_time", "interrupts", "context_switches", "processes_forked", "disk_pages_in", "disk_pages_out"],
    ),
    (
        "mem",
        "",
        0,
        &[
            "total",
            "available",
            "used",
            "free",
            "cached",
            "buffered",
            "used_percent",
            "available_percent",
            "buffered_percent",
        ],
    ),
    (
        "net",
        "interface",
        90_000,
        &["bytes_sent", "bytes_recv", "packets_sent", "packets_recv", "err_in", "err_out", "drop_in", "drop_out"],
    ),
    ("nginx", "port", 40, &["accepts", "active", "handled", "reading", "requests", "waiting", "writing"]),
    (
        "postgresql",
        "",
        700,
        &[
            "numbackends",
            "xact_commit",
            "xact_rollback",
            "blks_read",
            "blks_hit",
            "tup_returned",
            "tup_fetched",
            "tup_inserted",
            "deadlocks",
        ],
    ),
    (
        "redis",
        "port",
        60,
        &[
            "uptime_in_seconds",
            "total_connections_received",
            "expired_keys",
            "evicted_keys",
            "keyspace_hits",
            "keyspace_misses",
            "used_memory",
            "connected_clients",
        ],
    ),
];

/// Nine measurements of integers.
pub(super) struct Devops {
    hosts: Vec<Host>,
    random: Random,
    tick: u64,
}

impl Devops {
    pub(super) fn new(seed: u64) -> Self {
        let hosts = (0..HOSTS).map(|n| Host::new(seed, n)).collect();
        Self { hosts, random: Random::part(seed, 1 << 32), tick: 0 }
    }

    fn value(&mut self, grows_by: u64) -> i64 {
        let value =
            if grows_by == 0 { self.random.below(101) } else { self.tick * grows_by + self.random.below(grows_by) };
        i64::try_from(value).unwrap_or(i64::MAX)
    }
}

impl Source for Devops {
    fn write(&mut self, line: &mut LineWriter) {
        let time_ns = START_NS + i64::try_from(self.tick).unwrap_or(0) * INTERVAL_NS;
        for number in 0..self.hosts.len() {
            for (measurement, own_tag, grows_by, fields) in DEVOPS {
                line.start(measurement);
                if let Some(host) = self.hosts.get(number) {
                    host.tags().for_each(|(key, value)| line.tag(key, value));
                    if !own_tag.is_empty() {
                        line.tag(own_tag, &format!("{own_tag}{}", number % 7));
                    }
                }
                for key in fields {
                    line.integer(key, self.value(grows_by));
                }
                line.end(time_ns);
            }
        }
        self.tick += 1;
    }
}

/// Lorries on the road: two measurements of short floats; one line in ten lacks a tag or some
/// fields and one in ten is late.
pub(super) struct Lorries {
    lorries: Vec<Vec<(&'static str, String)>>,
    walks: Vec<Walk>,
    random: Random,
    time_ns: i64,
}

const READINGS: [&str; 7] = ["latitude", "longitude", "elevation", "velocity", "heading", "grade", "fuel_consumption"];
const DIAGNOSTICS: [&str; 3] = ["fuel_state", "current_load", "status"];

impl Lorries {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::part(seed, 2 << 32);
        let lorries = (0..HOSTS)
            .map(|n| {
                vec![
                    ("name", format!("truck_{n}")),
                    ("fleet", random.pick(&["North", "South", "East", "West"]).to_owned()),
                    ("driver", random.pick(&["Ann", "Björn", "Chidi", "Dana", "Emre"]).to_owned()),
                    ("model", random.pick(&["F-150", "G-2000", "H-2"]).to_owned()),
                    ("device_version", random.pick(&["v1.0", "v1.5", "v2.0", "v2.3"]).to_owned()),
                    ("load_capacity", random.pick(&["1500", "2000", "5000"]).to_owned()),
                    ("fuel_capacity", random.pick(&["150", "200", "300"]).to_owned()),
                    ("nominal_fuel_consumption", random.pick(&["12", "15", "19"]).to_owned()),
                ]
            })
            .collect();
        let walks = (0..HOSTS).map(|n| walk(seed, n, READINGS.len())).collect();
        Self { lorries, walks, random, time_ns: START_NS }
    }
}

impl Source for Lorries {
    fn write(&mut self, line: &mut LineWriter) {
        for (tags, walk) in self.lorries.iter().zip(&mut self.walks) {
            let values = walk.advance();
            for (measurement, keys) in [("readings", READINGS.as_slice()), ("diagnostics", DIAGNOSTICS.as_slice())] {
                let lacking = self.random.one_in(10);
                line.start(measurement);
                for (index, (key, value)) in tags.iter().enumerate() {
                    if !(lacking && index == 2) {
                        line.tag(key, value);
                    }
                }
                for (index, (key, value)) in keys.iter().zip(values).enumerate() {
                    if index == 0 || !(lacking && self.random.one_in(3)) {
                        line.float(key, if self.random.one_in(2) { value.trunc() } else { two_decimals(*value) });
                    }
                }
                let late = if self.random.one_in(10) { 60 * INTERVAL_NS } else { 0 };
                line.end(self.time_ns - late);
            }
        }
        self.time_ns += INTERVAL_NS;
    }
}

fn walk(seed: u64, number: usize, fields: usize) -> Walk {
    Walk::new(Random::part(seed, (3 << 32) + number as u64), fields)
}
