//! A fleet of agents: 60 hosts, 13 measurements, the mix of types that system and service plugins
//! send.

use super::{INTERVAL_NS, START_NS, Source, line::LineWriter};
use crate::random::Random;

const HOSTS: usize = 60;

/// What the values of a field look like.
#[derive(Clone, Copy)]
enum Kind {
    /// A float between 0 and 100, one in five without decimals, the others with all their digits.
    Percent,
    /// A small float with two decimals.
    Load,
    /// An integer that never changes.
    Fixed(i64),
    /// An integer below the bound.
    Gauge(u64),
    /// An integer that grows by up to this much at each report.
    Counter(u64),
    Flag,
    Words(&'static [&'static str]),
}

use Kind::{Counter, Fixed, Flag, Gauge, Load, Percent, Words};

/// Measurement, its own tags with their values (one line for each), fields.
struct Plugin {
    name: &'static str,
    tags: &'static [&'static [(&'static str, &'static str)]],
    fields: &'static [(&'static str, Kind)],
}

const GIB: u64 = 1 << 30;

const PLUGINS: [Plugin; 13] = [
    Plugin {
        name: "cpu",
        tags: &[&[("cpu", "cpu-total")], &[("cpu", "cpu0")], &[("cpu", "cpu1")]],
        fields: &[
            ("usage_user", Percent),
            ("usage_system", Percent),
            ("usage_idle", Percent),
            ("usage_nice", Percent),
            ("usage_iowait", Percent),
            ("usage_irq", Percent),
            ("usage_softirq", Percent),
            ("usage_steal", Percent),
            ("usage_guest", Percent),
            ("usage_guest_nice", Percent),
        ],
    },
    Plugin {
        name: "mem",
        tags: &[&[]],
        fields: &[
            ("active", Gauge(16 * GIB)),
            ("available", Gauge(16 * GIB)),
            ("available_percent", Percent),
            ("buffered", Gauge(GIB)),
            ("cached", Gauge(8 * GIB)),
            ("dirty", Gauge(1 << 20)),
            ("free", Gauge(8 * GIB)),
            ("inactive", Gauge(8 * GIB)),
            ("shared", Gauge(GIB)),
            ("slab", Gauge(GIB)),
            ("total", Fixed(16_659_439_616)),
            ("used", Gauge(16 * GIB)),
            ("used_percent", Percent),
        ],
    },
    Plugin {
        name: "disk",
        tags: &[
            &[("device", "vda1"), ("fstype", "ext4"), ("mode", "rw"), ("path", "/")],
            &[("device", "vdb"), ("fstype", "xfs"), ("mode", "rw"), ("path", "/srv/my data")],
        ],
        fields: &[
            ("free", Gauge(500 * GIB)),
            ("inodes_free", Gauge(30_000_000)),
            ("inodes_total", Fixed(32_768_000)),
            ("inodes_used", Gauge(3_000_000)),
            ("total", Fixed(515_930_021_888)),
            ("used", Gauge(500 * GIB)),
            ("used_percent", Percent),
        ],
    },
    Plugin {
        name: "diskio",
        tags: &[&[("name", "vda")], &[("name", "vda1")]],
        fields: &[
            ("io_time", Counter(900)),
            ("iops_in_progress", Gauge(4)),
            ("merged_reads", Counter(20)),
            ("merged_writes", Counter(50)),
            ("read_bytes", Counter(1 << 20)),
            ("read_time", Counter(200)),
            ("reads", Counter(60)),
            ("weighted_io_time", Counter(900)),
            ("write_bytes", Counter(8 << 20)),
            ("write_time", Counter(900)),
            ("writes", Counter(300)),
        ],
    },
    Plugin {
        name: "net",
        tags: &[&[("interface", "eth0")], &[("interface", "wg 0")]],
        fields: &[
            ("bytes_recv", Counter(4 << 20)),
            ("bytes_sent", Counter(2 << 20)),
            ("drop_in", Gauge(3)),
            ("drop_out", Gauge(2)),
            ("err_in", Gauge(2)),
            ("err_out", Gauge(2)),
            ("packets_recv", Counter(4000)),
            ("packets_sent", Counter(3000)),
            ("speed", Fixed(10_000)),
        ],
    },
    Plugin {
        name: "system",
        tags: &[&[]],
        fields: &[
            ("load1", Load),
            ("load5", Load),
            ("load15", Load),
            ("n_cpus", Gauge(64)),
            ("n_users", Gauge(9)),
            ("uptime", Counter(10)),
            ("uptime_format", Words(&["12 days, 4:17", "1 day, 21:02", "3:55"])),
        ],
    },
    Plugin {
        name: "processes",
        tags: &[&[]],
        fields: &[
            ("blocked", Gauge(3)),
            ("dead", Gauge(2)),
            ("idle", Gauge(90)),
            ("paging", Gauge(2)),
            ("running", Gauge(12)),
            ("sleeping", Gauge(200)),
            ("stopped", Gauge(2)),
            ("total", Gauge(300)),
            ("total_threads", Gauge(2000)),
            ("zombies", Gauge(4)),
        ],
    },
    Plugin {
        name: "swap",
        tags: &[&[]],
        fields: &[
            ("free", Gauge(4 * GIB)),
            ("in", Counter(4096)),
            ("out", Counter(4096)),
            ("total", Fixed(4_294_963_200)),
            ("used", Gauge(GIB)),
            ("used_percent", Percent),
        ],
    },
    Plugin {
        name: "kernel",
        tags: &[&[]],
        fields: &[
            ("boot_time", Fixed(1_766_102_417)),
            ("context_switches", Counter(90_000)),
            ("entropy_avail", Gauge(257)),
            ("interrupts", Counter(50_000)),
            ("processes_forked", Counter(90)),
        ],
    },
    Plugin {
        name: "netstat",
        tags: &[&[]],
        fields: &[
            ("tcp_close_wait", Gauge(9)),
            ("tcp_established", Gauge(900)),
            ("tcp_listen", Gauge(40)),
            ("tcp_time_wait", Gauge(300)),
            ("udp_socket", Gauge(30)),
        ],
    },
    Plugin {
        name: "docker_container_status",
        tags: &[
            &[("container_image", "registry.example/api,web"), ("container_status", "running")],
            &[("container_image", "postgres"), ("container_status", "running")],
        ],
        fields: &[
            ("container_id", Words(&["6b1f0c2d9e7a", "0a4e55d1c3b2", "f00dcafe1234"])),
            ("error", Words(&["", "exec: \"run.sh\": permission denied"])),
            ("exitcode", Gauge(2)),
            ("oomkilled", Flag),
            ("pid", Gauge(40_000)),
            ("restart_count", Gauge(3)),
            ("uptime_ns", Counter(10_000_000_000)),
        ],
    },
    Plugin {
        name: "http_response",
        tags: &[&[("method", "GET"), ("result", "success"), ("server", "https://example.org/?q=1&r=2")]],
        fields: &[
            ("content_length", Gauge(90_000)),
            ("http_response_code", Gauge(600)),
            ("response_string_match", Flag),
            ("response_time", Percent),
            ("result_code", Gauge(3)),
            ("result_type", Words(&["success", "timeout", "connection_failed"])),
        ],
    },
    Plugin {
        name: "systemd_units",
        tags: &[
            &[("active", "active"), ("load", "loaded"), ("name", "ssh.service"), ("sub", "running")],
            &[("active", "active"), ("load", "loaded"), ("name", "nginx.service"), ("sub", "running")],
        ],
        fields: &[
            ("active_code", Gauge(2)),
            ("load_code", Gauge(2)),
            ("sub_code", Gauge(2)),
            ("mem_current", Gauge(GIB)),
            ("cpu_share", Percent),
            ("preset", Words(&["enabled", "disabled"])),
            ("enabled", Flag),
        ],
    },
];

/// Sixty agents.
pub(super) struct Fleet {
    values: Random,
    order: Random,
    shuffled: bool,
    tick: u64,
}

impl Fleet {
    pub(super) fn new(seed: u64, shuffled: bool) -> Self {
        Self { values: Random::part(seed, 0), order: Random::part(seed, 1), shuffled, tick: 0 }
    }

    fn field(&mut self, line: &mut LineWriter, key: &str, kind: Kind) {
        let random = &mut self.values;
        match kind {
            Percent if random.one_in(5) => line.float(key, random.below(100) as f64),
            Percent => line.float(key, random.unit() * 100.0),
            Load => line.float(key, random.below(900) as f64 / 100.0),
            Fixed(value) => line.integer(key, value),
            Gauge(bound) => line.integer(key, i64::try_from(random.below(bound)).unwrap_or(i64::MAX)),
            Counter(step) => {
                // Agents start when the machine has long been up.
                let value = (self.tick + 5000).wrapping_mul(step).wrapping_add(random.below(step));
                line.integer(key, i64::try_from(value).unwrap_or(i64::MAX));
            }
            Flag => line.boolean(key, random.one_in(2)),
            Words(words) => line.string(key, random.pick(words)),
        }
    }

    fn report(&mut self, line: &mut LineWriter, host: usize) {
        let time_ns = START_NS + i64::try_from(self.tick).unwrap_or(0) * INTERVAL_NS;
        for plugin in &PLUGINS {
            for tags in plugin.tags {
                line.start(plugin.name);
                tags.iter().for_each(|(key, value)| line.tag(key, value));
                line.tag("cluster", "production-eu-01");
                line.tag("datacenter", if host.is_multiple_of(3) { "eu-central-1a" } else { "us-east-1c" });
                line.tag("environment", "production");
                line.tag("host", &format!("node-{host:03}.prod.example.net"));
                line.tag("role", if host.is_multiple_of(2) { "frontend" } else { "storage" });
                for (key, kind) in plugin.fields {
                    self.field(line, key, *kind);
                }
                if self.shuffled {
                    self.order.shuffle(line.fields_mut());
                }
                line.end(time_ns);
            }
        }
    }
}

impl Source for Fleet {
    fn write(&mut self, line: &mut LineWriter) {
        for host in 0..HOSTS {
            self.report(line, host);
        }
        self.tick += 1;
    }
}
