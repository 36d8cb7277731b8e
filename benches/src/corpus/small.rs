//! The corpora that stress one thing each: the cost of a line, escapes, absent fields, long floats.

use super::{INTERVAL_NS, START_NS, Source, line::LineWriter};
use crate::random::Random;

/// `cpu,host=server01,region=us-east usage_idle=90.5 <ns>`.
pub(super) struct Short {
    random: Random,
    number: u64,
}

impl Short {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), number: 0 }
    }
}

impl Source for Short {
    fn write(&mut self, line: &mut LineWriter) {
        let host = self.number % 99 + 1;
        line.start("cpu");
        line.tag("host", &format!("server{host:02}"));
        line.tag("region", ["us-east", "us-west", "eu-west"].into_iter().nth((host % 3) as usize).unwrap_or_default());
        line.float("usage_idle", self.random.below(1000) as f64 / 10.0);
        line.end(START_NS + i64::try_from(self.number / 99).unwrap_or(0) * INTERVAL_NS);
        self.number += 1;
    }
}

/// Escapes, quotes and UTF-8 in measurement, tags, keys and strings.
pub(super) struct Escape {
    random: Random,
    time_ns: i64,
}

const WORDS: [&str; 12] = [
    "Grüße",
    "a,b",
    "x=y",
    "two words",
    "C:\\temp",
    "日本",
    "\"quoted\"",
    "plain",
    "naïve",
    "🚚 lorry",
    "50 %",
    "tail\\",
];

impl Escape {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), time_ns: START_NS }
    }

    fn phrase(&mut self, words: usize) -> String {
        (0..words).map(|_| self.random.pick(&WORDS)).collect::<Vec<_>>().join(" ")
    }
}

impl Source for Escape {
    fn write(&mut self, line: &mut LineWriter) {
        line.start(&format!("weather, {}", self.random.pick(&["Zürich", "São Paulo", "Köln am Rhein"])));
        line.tag("station name", &self.phrase(2));
        line.tag("città", &self.phrase(1));
        let text = self.phrase(6);
        line.string("log=text", &text);
        // A stack trace: line feeds inside of a string are data.
        let trace = format!("at {}\n\tat {}", self.phrase(2), self.phrase(1));
        line.string("trace", &trace);
        line.float("temp,°C", self.random.below(400) as f64 / 10.0);
        line.end(self.time_ns);
        self.time_ns += INTERVAL_NS;
    }
}

/// 12 to 30 of 200 fields, in random order, and hardly a series that comes twice.
pub(super) struct Sparse {
    random: Random,
    keys: Vec<String>,
    time_ns: i64,
}

impl Sparse {
    pub(super) fn new(seed: u64) -> Self {
        let keys = (0..200).map(|n| format!("attribute_{n:03}")).collect();
        Self { random: Random::new(seed), keys, time_ns: START_NS }
    }
}

impl Source for Sparse {
    fn write(&mut self, line: &mut LineWriter) {
        line.start("events");
        line.tag("device", &format!("d{:08x}", self.random.below(1 << 32)));
        line.tag("site", self.random.pick(&["north", "south", "east"]));
        let count = 12 + self.random.index(19);
        for taken in 0..count {
            let other = taken + self.random.index(self.keys.len() - taken);
            self.keys.swap(taken, other);
        }
        for key in self.keys.iter().take(count) {
            line.float(key, self.random.below(10_000) as f64 / 100.0);
        }
        line.end(self.time_ns);
        self.time_ns += INTERVAL_NS / 1000;
    }
}

/// Six floats of 17 digits.
pub(super) struct Floats {
    random: Random,
    number: u64,
}

impl Floats {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), number: 0 }
    }
}

impl Source for Floats {
    fn write(&mut self, line: &mut LineWriter) {
        line.start("sensor");
        line.tag("id", &format!("s{:03}", self.number % 100));
        for key in ["x", "y", "z", "roll", "pitch", "yaw"] {
            line.float(key, (self.random.unit() - 0.5) * 360.0);
        }
        line.end(START_NS + i64::try_from(self.number / 100).unwrap_or(0) * INTERVAL_NS);
        self.number += 1;
    }
}
