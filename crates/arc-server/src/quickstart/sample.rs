//! This machine's measurements as line protocol.

use std::{
    fmt::Write as _,
    time::{SystemTime, UNIX_EPOCH},
};

use sysinfo::{Disks, Networks, System};

use super::Error;

/// Reads the machine's counters.
#[derive(Debug)]
pub(super) struct Sampler {
    host: String,
    system: System,
    disks: Disks,
    networks: Networks,
}

impl Sampler {
    pub(super) fn new() -> Result<Self, Error> {
        let failed = |error: sysinfo::Error| Error::Sample { reason: error.to_string() };
        let mut system = System::new().map_err(failed)?;
        // Usage is the difference between two readings; this is the first.
        system.refresh_cpu_usage();
        Ok(Self {
            host: escape(&System::host_name().unwrap_or_else(|_| "localhost".to_owned())),
            system,
            disks: Disks::new_with_refreshed_list().map_err(failed)?,
            networks: Networks::new_with_refreshed_list().map_err(failed)?,
        })
    }

    /// Reads everything now and returns it, one line for each point.
    #[expect(clippy::disallowed_methods, reason = "a sample has the time of the machine")]
    pub(super) fn take(&mut self) -> String {
        self.system.refresh_cpu_usage();
        self.system.refresh_memory();
        self.disks.refresh(true);
        self.networks.refresh(true);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut lines = String::new();
        self.write(&mut lines, now).map(|()| lines).unwrap_or_default()
    }

    fn write(&self, out: &mut String, now: u128) -> std::fmt::Result {
        let host = &self.host;
        for (core, cpu) in self.system.cpus().iter().enumerate() {
            writeln!(out, "cpu,host={host},core=cpu{core} usage={:.2} {now}", cpu.usage())?;
        }
        let (total, used) = (self.system.total_memory(), self.system.used_memory());
        let available = self.system.available_memory();
        writeln!(out, "mem,host={host} total={total}i,used={used}i,available={available}i {now}")?;
        for disk in &self.disks {
            let mount = escape(&disk.mount_point().to_string_lossy());
            let (total, free) = (disk.total_space(), disk.available_space());
            let io = disk.usage();
            let (read, written) = (io.total_read_bytes, io.total_written_bytes);
            let fields = format!("total={total}i,free={free}i,read_bytes={read}i,written_bytes={written}i");
            writeln!(out, "disk,host={host},mount={mount} {fields} {now}")?;
        }
        for (name, network) in &self.networks {
            let (received, sent) = (network.total_received(), network.total_transmitted());
            let interface = escape(&name.to_string_lossy());
            writeln!(out, "net,host={host},interface={interface} received={received}i,sent={sent}i {now}")?;
        }
        Ok(())
    }
}

/// Returns `text` as a tag value.
///
/// A trailing backslash would escape the comma that follows, and an empty value is not one.
fn escape(text: &str) -> String {
    let text = text.trim_end_matches('\\');
    if text.is_empty() {
        return "unknown".to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, ' ' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_values_are_escaped() {
        for (text, expected) in
            [("/", "/"), ("a b", "a\\ b"), ("a,b=c", "a\\,b\\=c"), ("C:\\", "C:"), ("", "unknown"), ("a\nb", "ab")]
        {
            assert_eq!(escape(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_sample_has_cores_and_memory() {
        let lines = Sampler::new().unwrap().take();
        assert!(lines.lines().any(|line| line.starts_with("cpu,host=")), "{lines}");
        assert_eq!(lines.lines().filter(|line| line.starts_with("mem,host=")).count(), 1, "{lines}");
    }
}
