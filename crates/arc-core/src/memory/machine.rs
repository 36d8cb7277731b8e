//! How much memory this process may use: what its control group allows, or what the machine has.
//!
//! Reads the kernel's files (man 7 cgroups, man 5 proc). Elsewhere than on Linux, and where nothing
//! can be read, it takes a small machine for granted.

use std::{path::Path, sync::LazyLock};

/// What is taken for granted where nothing is known.
const UNKNOWN: u64 = 4 << 30;

/// Returns the bytes that this process may use, asked for once.
#[expect(clippy::disallowed_methods, reason = "the kernel's files are no data of ours")]
pub(crate) fn available_bytes() -> u64 {
    static AVAILABLE: LazyLock<u64> =
        LazyLock::new(|| available(&|path| std::fs::read_to_string(path).ok()).unwrap_or(UNKNOWN));
    *AVAILABLE
}

fn available(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_limit(line, read));
    limits.chain(machine_bytes(read)).min()
}

/// The least limit of a control group and those around it; `line` is one of `/proc/self/cgroup`.
fn group_limit(line: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        named if named.split(',').any(|name| name == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    // A container may not see its own path, only the root of what is its own.
    let groups =
        Path::new(path.trim_start_matches('/')).ancestors().map(|group| Path::new(root).join(group).join(file));
    // "max", where there is no limit, is no number.
    groups.filter_map(|file| read(&file)?.trim().parse().ok()).min()
}

fn machine_bytes(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let meminfo = read(Path::new("/proc/meminfo"))?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_limits_counts() {
        const MEMINFO: (&str, &str) = ("/proc/meminfo", "MemFree: 1 kB\nMemTotal:       8192 kB\n");
        const CGROUP: &str = "/proc/self/cgroup";
        type Files = &'static [(&'static str, &'static str)];
        let cases: [(Files, Option<u64>); 8] = [
            (&[], None),
            (&[MEMINFO], Some(8192 << 10)),
            (&[MEMINFO, (CGROUP, "0::/\n"), ("/sys/fs/cgroup/memory.max", "4096\n")], Some(4096)),
            (&[MEMINFO, (CGROUP, "0::/\n"), ("/sys/fs/cgroup/memory.max", "max\n")], Some(8192 << 10)),
            (
                &[
                    MEMINFO,
                    (CGROUP, "0::/a/b\n"),
                    ("/sys/fs/cgroup/a/b/memory.max", "max"),
                    ("/sys/fs/cgroup/a/memory.max", "77"),
                ],
                Some(77),
            ),
            (
                &[
                    MEMINFO,
                    (CGROUP, "5:cpu:/a\n4:memory:/a\n0::/\n"),
                    ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
                ],
                Some(8192 << 10),
            ),
            (
                &[MEMINFO, (CGROUP, "4:hugetlb,memory:/a\n"), ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "55\n")],
                Some(55),
            ),
            (&[MEMINFO, (CGROUP, "nonsense\n::\n")], Some(8192 << 10)),
        ];
        for (files, expected) in cases {
            let read = |path: &Path| {
                let found = files.iter().find(|(name, _)| Path::new(name) == path);
                found.map(|(_, text)| (*text).to_owned())
            };
            assert_eq!(available(&read), expected, "{files:?}");
        }
        assert!(available_bytes() > 1 << 20);
    }
}
