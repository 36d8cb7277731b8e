//! Power cuts after every operation: every synced frame survives, whatever the disk made of the
//! rest.

use super::{seal::seal, *};

/// A pseudo-random walk through the log's calls, with the points of its history that promises hang
/// on.
struct Scenario {
    fs: CrashFs,
    /// A sync that has begun and not run.
    under_way: Option<PendingSync>,
    /// Operations done when all frames through a number were known durable.
    durable: Vec<(usize, u64)>,
    /// Operations done when all frames through a number were durable elsewhere.
    released: Vec<(usize, u64)>,
    last_seq: u64,
}

struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

impl Scenario {
    fn new(seed: u64, steps: usize) -> Self {
        let fs = CrashFs::new();
        let (mut wal, _) = open(&fs, 0).unwrap();
        let mut this = Self { fs, under_way: None, durable: Vec::new(), released: Vec::new(), last_seq: 0 };
        let mut draws = Draws(seed);
        for _ in 0..steps {
            this.step(&mut wal, &mut draws);
        }
        this.end_sync();
        this.durable.push((this.fs.operations(), wal.durable_seq().0));
        this
    }

    fn step(&mut self, wal: &mut Wal, draws: &mut Draws) {
        let last = wal.last_seq().0;
        match draws.below(15) {
            0..5 => append(wal, last + 1..=last + 1 + draws.below(9)).unwrap(),
            5..8 => {
                wal.want_sync();
                self.under_way = self.under_way.take().or_else(|| wal.begin_sync());
            }
            8..11 => self.end_sync(),
            11 => self.release(wal, draws),
            12..14 => {
                self.end_sync();
                seal(wal);
            }
            _ if draws.below(2) == 0 => wal.spare_maker().make().unwrap(),
            _ => {
                let after = self.released.last().map_or(0, |(_, through)| *through);
                let replayed;
                self.end_sync();
                (*wal, replayed) = open(&self.fs, after).unwrap();
                assert_eq!(replayed, entries(after + 1..=last));
            }
        }
        self.last_seq = wal.last_seq().0;
        self.durable.push((self.fs.operations(), wal.durable_seq().0));
    }

    fn end_sync(&mut self) {
        if let Some(sync) = self.under_way.take() {
            sync.run().unwrap();
        }
    }

    /// What is flushed is durable elsewhere, whether the log had been synced or not.
    fn release(&mut self, wal: &mut Wal, draws: &mut Draws) {
        let floor = self.released.last().map_or(0, |(_, through)| *through);
        let through = floor + draws.below(wal.last_seq().0 - floor + 1);
        self.released.push((self.fs.operations(), through));
        wal.release(SequenceNumber(through)).unwrap();
    }

    fn known(promises: &[(usize, u64)], operations: usize) -> u64 {
        promises.iter().rev().find(|(at, _)| *at <= operations).map_or(0, |(_, seq)| *seq)
    }
}

/// Opens what the power left and checks that frames `after + 1 ..= durable` are there; returns how
/// many frames are.
fn check_survival(fs: &CrashFs, after: u64, durable: u64) -> (Wal, u64) {
    let (wal, replayed) = open(fs, after).unwrap_or_else(|e| panic!("refused after {after}: {e}"));
    let last = wal.last_seq().0;
    assert_eq!(replayed, entries(after + 1..=last));
    assert!(last >= durable, "frames through {durable} were synced, {last} survive");
    assert_eq!(wal.durable_seq().0, last);
    (wal, last)
}

#[test]
fn every_synced_frame_survives_a_power_cut_anywhere() {
    let mut images = 0;
    for seed in 0..12 {
        let scenario = Scenario::new(seed, 40);
        for cut in scenario.fs.power_cuts() {
            let durable = Scenario::known(&scenario.durable, cut.operations());
            let after = Scenario::known(&scenario.released, cut.operations());
            for image in cut.images(seed, 12) {
                images += 1;
                check_survival(&CrashFs::from_image(&image), after, durable);
                // A flush that has just become durable is not in the log yet.
                let later = after.max(durable) + seed % 3;
                check_survival(&CrashFs::from_image(&image), later, durable);
            }
        }
    }
    assert!(images > 3000, "{images}");
}

#[test]
fn what_one_open_replayed_survives_the_next_power_cut_and_what_it_dropped_never_returns() {
    for seed in 0..40 {
        let scenario = Scenario::new(seed, 12 + usize::try_from(seed).unwrap() % 20);
        let after = scenario.released.last().map_or(0, |(_, through)| *through);
        let durable = scenario.durable.last().map_or(0, |(_, seq)| *seq);
        for image in scenario.fs.power_cut().images(seed, 16) {
            let fs = CrashFs::from_image(&image);
            let (mut wal, last) = check_survival(&fs, after, durable);
            for cut in fs.power_cuts() {
                let safe = if cut.operations() == fs.operations() { last } else { durable };
                cut.images(seed, 6).for_each(|image| drop(check_survival(&CrashFs::from_image(&image), after, safe)));
            }
            append_all(&mut wal, &entries_of(9, last + 1..=last + 3)).unwrap();
            wal.sync().unwrap();
            for image in fs.power_cut().images(seed, 6) {
                let replayed = open_image(&image, after).unwrap().1;
                assert_eq!(replayed, [entries(after + 1..=last), entries_of(9, last + 1..=last + 3)].concat());
            }
        }
    }
}

#[test]
fn frames_read_back_after_a_failed_sync_are_made_durable() {
    let fs = CrashFs::new();
    let (mut wal, _) = open(&fs, 0).unwrap();
    append(&mut wal, 1..=20).unwrap();
    wal.sync().unwrap();
    append(&mut wal, 21..=60).unwrap();
    // The sync fails, the process ends, and the next one finds the frames in the page cache.
    fs.forget_unsynced_writes();
    let (mut wal, replayed) = open(&fs, 0).unwrap();
    assert_eq!(replayed, entries(1..=60));
    for image in fs.power_cut().images(1, 50) {
        assert_eq!(open_image(&image, 0).unwrap().1, entries(1..=60));
    }
    append(&mut wal, 61..=61).unwrap();
    wal.sync().unwrap();
    let image = fs.power_cut().images(1, 1).next().unwrap();
    assert_eq!(open_image(&image, 0).unwrap().1, entries(1..=61));
}

#[test]
fn what_was_appended_during_a_sync_is_not_made_durable_by_it() {
    for seed in 0..20 {
        let fs = CrashFs::new();
        let (mut wal, _) = open(&fs, 0).unwrap();
        append(&mut wal, 1..=9).unwrap();
        wal.want_sync();
        let sync = wal.begin_sync().unwrap();
        // In the segment that is synced, and in another.
        append(&mut wal, 10..=11).unwrap();
        append(&mut wal, 12..=24).unwrap();
        assert_eq!(files(&fs.current(), ".wal").len(), 2);
        wal.want_sync();
        assert!(wal.begin_sync().is_none(), "one at a time");
        assert_eq!(sync.run().unwrap().0, 9);
        append(&mut wal, 25..=25).unwrap();
        assert_eq!(frames(&fs.current(), &files(&fs.current(), ".wal")[1]).last().unwrap().1.durable_seq.0, 9);
        for image in fs.power_cut().images(seed, 20) {
            check_survival(&CrashFs::from_image(&image), 0, 9);
        }
        // Nothing has asked for the last one, but it goes with the others.
        assert_eq!(wal.begin_sync().unwrap().run().unwrap().0, 25);
        assert!(wal.begin_sync().is_none());
        for image in fs.power_cut().images(seed, 20) {
            check_survival(&CrashFs::from_image(&image), 0, 25);
        }
    }
}
