//! What ways of committing a log could give on this disk at most: connections that do nothing but
//! work for a moment, append and wait, without an engine. For Linux.
//!
//!     cargo run --release -p arc-benches --no-default-features --bin syncs -- [FOLDER]
//!
//! Groups of requests go to a file of zeros: one group at a time, or two or three on their way to
//! the disk at once; written and synced by `fdatasync`, or written by one call to a file opened
//! with `O_DSYNC`, around the page cache (`O_DIRECT`) or not. Prints the table of decision 022.

use std::{
    collections::VecDeque,
    error::Error,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const SEGMENT_BYTES: usize = 64 << 20;
const BLOCK_BYTES: usize = 4096;
const RUN: Duration = Duration::from_millis(1500);
/// What a request costs a processor before it is queued.
const WORK: Duration = Duration::from_micros(100);

const O_DSYNC: i32 = 0o10_000;
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };

#[derive(Debug, Clone, Copy)]
struct Way {
    name: &'static str,
    flags: i32,
    /// Whether the write has to be followed by a sync.
    syncs: bool,
}

const WAYS: [Way; 3] = [
    Way { name: "write, fdatasync", flags: 0, syncs: true },
    Way { name: "O_DSYNC", flags: O_DSYNC, syncs: false },
    Way { name: "O_DSYNC, O_DIRECT", flags: O_DSYNC | O_DIRECT, syncs: false },
];

#[derive(Debug, Default)]
struct Queue {
    /// Requests queued, taken for a group, and durable with all before them.
    queued: u64,
    taken: u64,
    durable: u64,
    /// The last request of each group on its way, and whether it is on the disk.
    groups: VecDeque<(u64, bool)>,
    first_group: u64,
    offset: usize,
    syncs: u64,
}

#[derive(Debug, Default)]
struct Run {
    queue: Mutex<Queue>,
    work: Condvar,
    done: Condvar,
    stopped: AtomicBool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join(format!("arc-syncs-{}", std::process::id()));
    println!("| bytes a request | connections | way | groups at once | requests/s | wait, ms | requests a sync |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let measured = [(46_000, 8), (85_000, 12), (346_000, 12)]
        .iter()
        .try_for_each(|&(bytes, connections)| measure(&path, bytes, connections));
    std::fs::remove_file(&path)?;
    measured.map_err(Into::into)
}

fn measure(path: &Path, bytes: usize, connections: u32) -> io::Result<()> {
    for way in WAYS {
        for committers in 1..=3 {
            let (requests, syncs) = run(path, way, committers, bytes, connections)?;
            let seconds = RUN.as_secs_f64();
            let wait_ms = (seconds * f64::from(connections) / requests as f64 - WORK.as_secs_f64()) * 1e3;
            println!(
                "| {bytes} | {connections} | {} | {committers} | {:.0} | {wait_ms:.2} | {:.1} |",
                way.name,
                requests as f64 / seconds,
                requests as f64 / syncs as f64
            );
        }
    }
    Ok(())
}

fn run(path: &Path, way: Way, committers: u32, bytes: usize, connections: u32) -> io::Result<(u64, u64)> {
    zero(path)?;
    let run = Arc::new(Run::default());
    let mut threads = Vec::new();
    for _ in 0..committers {
        let file = OpenOptions::new().read(true).write(true).custom_flags(way.flags).open(path)?;
        let run = Arc::clone(&run);
        threads.push(thread::spawn(move || run.commit(&file, way, bytes, connections as usize)));
    }
    let clients: Vec<_> = (0..connections)
        .map(|_| {
            let run = Arc::clone(&run);
            thread::spawn(move || run.ask())
        })
        .collect();
    thread::sleep(RUN);
    run.stop();
    for thread in threads {
        thread.join().map_err(|_| io::Error::other("a committer died"))??;
    }
    drop(clients);
    let queue = run.lock();
    Ok((queue.durable, queue.syncs))
}

/// Makes the file as the log makes its segments. The size of these pieces matters: of a file that
/// was written in pieces of 4 KiB, or all at once, 500 KB take two to three times as long to sync.
fn zero(path: &Path) -> io::Result<()> {
    let file = File::create(path)?;
    let zeros = vec![0; 1 << 20];
    (0..SEGMENT_BYTES as u64).step_by(zeros.len()).try_for_each(|offset| file.write_all_at(&zeros, offset))?;
    file.sync_all()
}

impl Run {
    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        let queue = self.lock();
        self.stopped.store(true, Ordering::Relaxed);
        drop(queue);
        self.work.notify_all();
        self.done.notify_all();
    }

    fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A connection: works, queues its request, waits.
    fn ask(&self) {
        while !self.has_stopped() {
            let begun = Instant::now();
            while begun.elapsed() < WORK {}
            let mut queue = self.lock();
            queue.queued += 1;
            let own = queue.queued;
            self.work.notify_one();
            while queue.durable < own && !self.has_stopped() {
                queue = self.done.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// A thread that takes what is queued, writes it and syncs it.
    fn commit(&self, file: &File, way: Way, bytes: usize, connections: usize) -> io::Result<()> {
        let buffer = vec![0x5A_u8; (bytes * connections).next_multiple_of(BLOCK_BYTES) + BLOCK_BYTES];
        let aligned = buffer.as_ptr().align_offset(BLOCK_BYTES);
        while let Some((group, offset, len)) = self.take(bytes) {
            let part = buffer.get(aligned..aligned + len).unwrap_or_default();
            file.write_all_at(part, offset)?;
            if way.syncs {
                file.sync_data()?;
            }
            self.end(group);
        }
        Ok(())
    }

    fn take(&self, bytes: usize) -> Option<(u64, u64, usize)> {
        let mut queue = self.lock();
        while queue.queued == queue.taken && !self.has_stopped() {
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if self.has_stopped() {
            return None;
        }
        let count = queue.queued - queue.taken;
        queue.taken = queue.queued;
        // Whole blocks, which writes around the page cache need.
        let len = (usize::try_from(count).ok()? * bytes).next_multiple_of(BLOCK_BYTES);
        if queue.offset + len > SEGMENT_BYTES {
            queue.offset = 0;
        }
        let offset = queue.offset as u64;
        queue.offset += len;
        let (group, last) = (queue.first_group + queue.groups.len() as u64, queue.taken);
        queue.groups.push_back((last, false));
        Some((group, offset, len))
    }

    fn end(&self, group: u64) {
        let mut queue = self.lock();
        queue.syncs += 1;
        let index = usize::try_from(group - queue.first_group).unwrap_or(usize::MAX);
        queue.groups.get_mut(index).into_iter().for_each(|(_, is_durable)| *is_durable = true);
        while let Some((last, _)) = queue.groups.pop_front_if(|(_, is_durable)| *is_durable) {
            queue.first_group += 1;
            queue.durable = last;
        }
        drop(queue);
        self.done.notify_all();
    }
}
