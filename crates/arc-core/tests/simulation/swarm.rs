//! What one seed is about: settings of the engine, who does what at the same time, and how the disk
//! behaves.

use std::time::Duration;

use arc_core::{
    ColumnTypes, Durability, OnConflict, Options,
    sync::schedule::{Draws, Strategy},
};

use crate::disk::Weather;

/// All that is drawn before a simulation begins.
#[derive(Debug, Clone)]
pub(crate) struct Swarm {
    pub(crate) strategy: Strategy,
    pub(crate) options: Options,
    pub(crate) weather: Weather,
    pub(crate) writers: u64,
    /// Writes of each writer.
    pub(crate) writes: u64,
    pub(crate) databases: u64,
    pub(crate) tables: u64,
    /// Points that each writer has in each table.
    pub(crate) slots: u64,
    /// The levels that writes ask for.
    pub(crate) levels: Vec<Durability>,
    pub(crate) works: Vec<Work>,
    /// How often each of them is done.
    pub(crate) rounds: u64,
    /// The longest pause between two of them.
    pub(crate) pause: Duration,
    /// One call of the disk in so many has its power cut.
    pub(crate) cuts_one_in: u64,
    /// Whether points of one table have fields of several types.
    pub(crate) widens: bool,
    /// How the phase with faults ends.
    pub(crate) ends: Ends,
    /// Whether the first writer takes long while it decodes, and the thread that writes elsewhere
    /// must not notice.
    pub(crate) has_slow: bool,
    /// How often the directory is opened once more and all begins anew.
    pub(crate) lives: u64,
}

/// What a thread does beside those who write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Flush,
    Merge,
    Unpack,
    DropTable,
    DropDatabase,
    Delete,
    Backup,
    Retention,
    Clock,
    Read,
    Verify,
    Full,
}

const WORKS: [Work; 12] = [
    Work::Flush,
    Work::Merge,
    Work::Unpack,
    Work::DropTable,
    Work::DropDatabase,
    Work::Delete,
    Work::Backup,
    Work::Retention,
    Work::Clock,
    Work::Read,
    Work::Verify,
    Work::Full,
];

/// How an engine ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// All that is left is let go of.
    Dropped,
    /// Closed, once the faults are over.
    Closed,
    /// Closed while there are faults.
    ClosedInFaults,
}

fn one_of<T: Copy>(draws: &mut Draws, choices: &[T]) -> T {
    choices[usize::try_from(draws.below(choices.len() as u64)).unwrap()]
}

impl Swarm {
    pub(crate) fn draw(seed: u64) -> Self {
        let draws = &mut Draws::new(seed ^ 0x53_7761_726d);
        let strategy = if draws.one_in(3) {
            Strategy::Priorities { changes: 1 + draws.below(12), within: 1_000 + draws.below(8_000) }
        } else {
            Strategy::Random { one_in: one_of(draws, &[1, 2, 4, 16, 64]) }
        };
        let has = |draws: &mut Draws, work: &Work| match work {
            Work::Flush => !draws.one_in(4),
            Work::Full | Work::Verify | Work::Retention | Work::Backup => draws.one_in(5),
            _ => draws.one_in(3),
        };
        let mut levels = vec![Durability::Disk];
        if draws.one_in(2) {
            levels = vec![one_of(draws, &[Durability::Memory, Durability::Process, Durability::Disk])];
        } else if draws.one_in(2) {
            levels = vec![Durability::Memory, Durability::Process, Durability::Disk];
        }
        let mut swarm = Self {
            strategy,
            options: options(draws),
            weather: weather(draws),
            writers: 1 + draws.below(3),
            writes: 2 + draws.below(10),
            databases: 1 + draws.below(2),
            tables: 1 + draws.below(3),
            slots: 2 + draws.below(6),
            levels,
            works: WORKS.iter().copied().filter(|work| has(draws, work)).collect(),
            rounds: 1 + draws.below(4),
            pause: Duration::from_micros(one_of(draws, &[50, 500, 5_000, 100_000, 3_000_000])),
            cuts_one_in: one_of(draws, &[40, 150, 600]),
            widens: draws.one_in(4),
            ends: one_of(draws, &[Ends::Dropped, Ends::Closed, Ends::ClosedInFaults]),
            has_slow: draws.one_in(8),
            lives: 1 + draws.below(3) / 2,
        };
        if swarm.has_slow {
            swarm.is_calm();
        }
        swarm
    }
}

impl Swarm {
    /// Leaves nothing that a writer may have to wait for but other threads.
    fn is_calm(&mut self) {
        (self.weather, self.writers, self.databases) = (Weather::default(), self.writers.max(2), 2);
        (self.options.flush_bytes, self.options.max_buffer_bytes) = (64 << 20, 160 << 20);
        self.works.retain(|work| matches!(work, Work::Flush | Work::DropTable | Work::DropDatabase | Work::Read));
    }
}

fn options(draws: &mut Draws) -> Options {
    let mut options = Options::default();
    options.max_resident_bytes = 0;
    options.memory_bytes = one_of(draws, &[64 << 20, 256 << 20]);
    options.query_memory_bytes = 1 << 20;
    options.durability = Durability::Disk;
    options.column_types = ColumnTypes::new().on_conflict(OnConflict::Widen);
    options.flush_after = Duration::from_millis(one_of(draws, &[1, 20, 1_000, 60_000]));
    options.flush_bytes = one_of(draws, &[500, 4_000, 64 << 20]);
    options.max_buffer_bytes = options.flush_bytes.max(one_of(draws, &[2_000, 20_000, 160 << 20]));
    options.flush_wal_bytes = one_of(draws, &[2_000, 512 << 20]);
    options.wal_segment_bytes = 64 << 10;
    options.write_timeout = Duration::from_millis(one_of(draws, &[5, 5_000]));
    options.pack_tables = one_of(draws, &[1, 2, 64]);
    options.pack_bytes = one_of(draws, &[0, 1 << 20, 1 << 20]);
    options.compaction = draws.one_in(2);
    options.compaction_files = one_of(draws, &[2, 3, 8]);
    options.compaction_quiet = Duration::from_secs(one_of(draws, &[0, 3_600]));
    options.compaction_grace = Duration::from_millis(one_of(draws, &[0, 1, 600_000]));
    options
}

fn weather(draws: &mut Draws) -> Weather {
    Weather {
        fails_one_in: one_of(draws, &[0, 0, 20, 100, 500]),
        waits_one_in: one_of(draws, &[0, 3, 20]),
        longest: Duration::from_micros(one_of(draws, &[100, 5_000, 1_000_000])),
        is_full: false,
        syncs_fail: draws.one_in(3),
    }
}
