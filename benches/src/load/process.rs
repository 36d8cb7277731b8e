//! CPU and memory of a process, and which process listens on a port: read from `/proc`.
//!
//! Linux only; elsewhere everything is unknown and the report says so. Never signals a process.

use std::{fs, path::Path, time::Duration};

/// `USER_HZ` of Linux: the unit of times in `/proc/PID/stat` on all machines that Rust builds for.
const TICK: Duration = Duration::from_millis(10);

/// What a process has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// User and system time of all threads, those that ended included.
    pub cpu: Duration,
    /// Most memory it ever had in RAM, in bytes (`VmHWM`).
    pub peak_memory_bytes: u64,
    /// Memory it has in RAM now, in bytes (`VmRSS`).
    pub memory_bytes: u64,
}

/// Returns what process `pid` has used, or nothing if it is gone or this is not Linux.
#[must_use]
pub fn usage(pid: u32) -> Option<Usage> {
    let folder = Path::new("/proc").join(pid.to_string());
    let cpu = parse_stat(&fs::read_to_string(folder.join("stat")).ok()?)?;
    let status = fs::read_to_string(folder.join("status")).ok()?;
    Some(Usage {
        cpu,
        peak_memory_bytes: parse_status(&status, "VmHWM:")?,
        memory_bytes: parse_status(&status, "VmRSS:")?,
    })
}

/// Returns the process that listens on `port` of this machine, if we may see it.
#[must_use]
pub fn listening_on(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let sockets: Vec<String> = tables
        .iter()
        .flat_map(|table| listening_inodes(table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let mut open = fs::read_dir(entry.path().join("fd")).ok()?.flatten();
        let holds = |link: &Path| sockets.iter().any(|socket| Path::new(socket) == link);
        open.any(|file| fs::read_link(file.path()).is_ok_and(|link| holds(&link))).then_some(pid)
    })
}

/// The name of the program may hold spaces and brackets; the numbers follow its last bracket.
fn parse_stat(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * user.checked_add(system)?)
}

fn parse_status(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Inodes of the sockets in state LISTEN (0A) on `port`.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let wanted = format!(":{port:04X}");
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        (local.ends_with(&wanted) && *state == "0A").then(|| inode.parse().ok())?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_read_behind_any_program_name() {
        for name in ["load", "a b", "x) R 1 (y"] {
            let stat = format!("42 ({name}) S 1 42 42 0 -1 4194560 100 0 0 0 250 150 0 0 20 0 5 0 100 1 1");
            assert_eq!(parse_stat(&stat), Some(Duration::from_secs(4)), "{name}");
        }
        assert_eq!(parse_stat("42 (load) S 1"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_status(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(parse_status(status, "VmRSS:"), Some(1 << 20));
        assert_eq!(parse_status(status, "VmSwap:"), None);
    }

    #[test]
    fn only_listening_sockets_of_the_port_are_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 777 1 x\n\
            1: 0100007F:1F40 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 778 1 x\n\
            2: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 779 1 x\n";
        assert_eq!(listening_inodes(table, 8000), [777]);
        assert_eq!(listening_inodes("", 8000), [0_u64; 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_by_the_port_it_listens_on() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listening_on(port), Some(std::process::id()));
        assert!(usage(std::process::id()).unwrap().peak_memory_bytes > 0);
        assert_eq!(usage(u32::MAX), None);
    }
}
