//! The hosts that report: ten tags that never change, as in the "cpu-only" use of the Time Series
//! Benchmark Suite.

use crate::random::Random;

/// Keys of a host's tags, in the order they are sent.
pub const TAG_KEYS: [&str; 10] = [
    "hostname",
    "region",
    "datacenter",
    "rack",
    "os",
    "arch",
    "team",
    "service",
    "service_version",
    "service_environment",
];

/// Keys of the ten fields of a host's CPU.
pub const CPU_FIELDS: [&str; 10] = [
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
];

const REGIONS: [(&str, &str); 9] = [
    ("us-east-1", "abcde"),
    ("us-west-1", "ab"),
    ("us-west-2", "abc"),
    ("eu-west-1", "abc"),
    ("eu-central-1", "ab"),
    ("ap-southeast-1", "ab"),
    ("ap-southeast-2", "ab"),
    ("ap-northeast-1", "ac"),
    ("sa-east-1", "abc"),
];

/// One reporting host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Values of [`TAG_KEYS`], in their order.
    pub tags: [String; 10],
}

impl Host {
    /// Returns host `number` of the seed: region 9, datacenter 2 to 5 a region, rack 100, os 3,
    /// arch 2, team 4, service 20, version 2, environment 3 values.
    #[must_use]
    pub fn new(seed: u64, number: usize) -> Self {
        let mut random = Random::part(seed, number as u64);
        let (region, zones) = random.pick(&REGIONS);
        let zone = char::from(random.pick(zones.as_bytes()));
        let tags = [
            format!("host_{number}"),
            region.to_owned(),
            format!("{region}{zone}"),
            random.below(100).to_string(),
            random.pick(&["Debian12", "Ubuntu24.04", "Alpine3.20"]).to_owned(),
            random.pick(&["x64", "arm64"]).to_owned(),
            random.pick(&["north", "south", "east", "west"]).to_owned(),
            random.below(20).to_string(),
            random.below(2).to_string(),
            random.pick(&["production", "staging", "test"]).to_owned(),
        ];
        Self { tags }
    }

    /// Returns the key and value of every tag.
    pub fn tags(&self) -> impl Iterator<Item = (&'static str, &str)> {
        TAG_KEYS.into_iter().zip(self.tags.iter().map(String::as_str))
    }

    /// Returns the tag `key`, empty if there is no such tag.
    #[must_use]
    pub fn tag(&self, key: &str) -> &str {
        self.tags().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_same_in_every_run_and_differs_from_its_neighbour() {
        assert_eq!(Host::new(42, 7), Host::new(42, 7));
        assert_ne!(Host::new(42, 7).tags[1..], Host::new(42, 8).tags[1..]);
        assert_eq!(Host::new(42, 7).tag("hostname"), "host_7");
    }

    #[test]
    fn a_datacenter_is_in_its_region() {
        for number in 0..100 {
            let host = Host::new(1, number);
            assert!(host.tag("datacenter").starts_with(host.tag("region")));
        }
    }
}
