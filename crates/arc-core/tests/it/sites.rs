//! Every place at which the engine calls the file system has failed, in each way that calls fail:
//! nothing acknowledged is lost, and the next open is clean.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    sync::Arc,
};

use arc_core::vfs::{CrashFs, Fault, FaultFs, Forgets, Operation, Site, Vfs};

use crate::crash::{Write, check, disk, scenario, survivors};

/// A way in which a call fails.
#[derive(Debug, Clone, Copy)]
struct Way {
    error: ErrorKind,
    /// A write leaves its first half.
    short_write: bool,
    /// A read brings its first half, and does not fail.
    short_read: bool,
    /// All later calls fail as well: those that clean up after the first.
    from_then_on: bool,
}

/// Sites, and a failure after which each was called: some are called only because another call
/// failed.
type Called = BTreeMap<Site, (u64, Way)>;

impl Way {
    const fn once(error: ErrorKind) -> Self {
        Self { error, short_write: false, short_read: false, from_then_on: false }
    }

    fn can_be_at(self, site: &Site) -> bool {
        let is_read = matches!(site.operation, Operation::Read | Operation::ReadAt);
        (!self.short_write || site.operation == Operation::WriteAllAt) && (!self.short_read || is_read)
    }
}

/// EIO, ENOSPC and EINTR once, half a write, half a read, and a disk that fails for good. What a
/// sync that fails was to make durable is lost, in every way.
const WAYS: [Way; 6] = [
    Way::once(ErrorKind::Other),
    Way::once(ErrorKind::StorageFull),
    Way::once(ErrorKind::Interrupted),
    Way { short_write: true, ..Way::once(ErrorKind::StorageFull) },
    Way { short_read: true, ..Way::once(ErrorKind::Other) },
    Way { from_then_on: true, ..Way::once(ErrorKind::Other) },
];

/// Failed calls of each site, in each way, after which the disk is looked at.
const CALLS_PER_SITE: usize = 1;

/// How often a site is sought that is called after another failure only.
const ATTEMPTS: usize = 8;

/// More calls of one kind than the scenario makes.
const MOST_OF_A_KIND: u64 = 200;

/// A run of the scenario in which the `nth` call failed.
struct Run {
    fs: CrashFs,
    writes: Vec<Write>,
    called: BTreeSet<Site>,
    failed: BTreeSet<Site>,
}

fn run(nth: u64, way: Way) -> Run {
    run_with(nth, way, None, None)
}

/// Runs the scenario with a failure, of any call or of one kind, and perhaps a second one,
/// independent of it.
fn run_with(nth: u64, way: Way, kind: Option<Operation>, second: Option<Fault>) -> Run {
    let fs = disk();
    let first = FaultFs::over(&fs, Forgets::Writes);
    let Way { error, short_write, short_read, from_then_on } = way;
    first.set(Fault { short_write, short_read, from_then_on, operation: kind, ..Fault::nth(nth, error) });
    let both = FaultFs::new(Arc::new(first.clone()));
    if let Some(fault) = second {
        both.set(fault);
    }
    let vfs: Arc<dyn Vfs> = Arc::new(both.clone());
    let (writes, _) = scenario(&vfs, &|| fs.operations());
    let failed = if second.is_some() { both.failed() } else { first.failed() };
    Run { fs, writes, called: both.called().into_keys().collect(), failed: failed.into_keys().collect() }
}

impl Run {
    fn check(&self, nth: u64, case: &str) {
        let now = self.fs.operations();
        check(&self.writes, now, &survivors(&self.fs.current(), false), &format!("kill after {case}"));
        for image in self.fs.power_cut().images(nth, 1) {
            check(&self.writes, now, &survivors(&image, false), &format!("power cut after {case}"));
        }
    }
}

/// Fails each call of the scenario in turn, once; returns which calls are whose, and all sites ever
/// called.
fn fail_each_call() -> (BTreeMap<Site, Vec<u64>>, Called) {
    let (mut calls, mut called) = (BTreeMap::<Site, Vec<u64>>::new(), Called::new());
    for nth in 1.. {
        let run = run(nth, WAYS[0]);
        called.extend(run.called.iter().map(|site| (site.clone(), (nth, WAYS[0]))));
        let Some(site) = run.failed.first() else { break };
        let of_site = calls.entry(site.clone()).or_default();
        of_site.push(nth);
        if of_site.len() <= CALLS_PER_SITE {
            run.check(nth, &format!("EIO at call {nth}, {site:?}"));
        }
    }
    (calls, called)
}

/// Fails calls of each site in one way; returns the sites that failed so.
fn fail_each_site(calls: &BTreeMap<Site, Vec<u64>>, way: Way, called: &mut Called) -> BTreeSet<Site> {
    let mut failed = BTreeSet::new();
    for (site, calls) in calls.iter().filter(|(site, _)| way.can_be_at(site)) {
        // Which call is whose depends a little on threads: take another if it was not this site's,
        // and at last any call of its kind, three times over.
        let mut left = CALLS_PER_SITE;
        let of_site = calls.iter().take(16).map(|nth| (*nth, None));
        let of_kind = (0..3).flat_map(|_| (1..=MOST_OF_A_KIND).map(|nth| (nth, Some(site.operation))));
        for (nth, kind) in of_site.chain(of_kind) {
            let run = run_with(nth, way, kind, None);
            if kind.is_none() || run.failed.contains(site) {
                run.check(nth, &format!("{way:?} at call {nth}, {site:?}"));
            }
            left -= usize::from(run.failed.contains(site));
            failed.extend(run.failed);
            called.extend(run.called.into_iter().map(|site| (site, (nth, way))));
            if left == 0 {
                break;
            }
        }
    }
    failed
}

/// Fails a site that is called after the failure of another call; false if it was not called this
/// time.
fn fail_after(site: &Site, nth: u64, way: Way) -> bool {
    // The first call of its kind that is this site's.
    for second in 1.. {
        let run = run_with(nth, way, None, Some(Fault::nth(second, ErrorKind::Other).of(site.operation)));
        if run.failed.contains(site) {
            run.check(nth, &format!("{way:?} at call {nth}, then EIO at call {second} of {:?}", site.operation));
            return true;
        }
        if run.failed.is_empty() {
            break;
        }
    }
    false
}

#[test]
fn every_call_site_has_failed_in_every_way_and_nothing_acknowledged_is_lost() {
    let (calls, mut called) = fail_each_call();
    assert!(calls.len() > 30, "only {} sites", calls.len());
    let mut ever: BTreeSet<Site> = calls.keys().cloned().collect();
    for way in &WAYS[1..] {
        let failed = fail_each_site(&calls, *way, &mut called);
        let missing: Vec<_> = calls.keys().filter(|site| way.can_be_at(site) && !failed.contains(site)).collect();
        assert!(missing.is_empty(), "{way:?} at none of {missing:?}");
        ever.extend(failed);
    }
    // Nothing depends on whether an empty folder goes, and whether it is empty by then depends on
    // threads.
    let must_fail = |site: &Site| !ever.contains(site) && site.operation != Operation::RemoveDir;
    for (site, (nth, way)) in called.iter().filter(|(site, _)| must_fail(site)) {
        // What is called after a failure depends a little on threads, so it may take more than one
        // attempt.
        let failed = (0..ATTEMPTS).any(|_| fail_after(site, *nth, *way));
        assert!(failed, "{site:?} was called after {way:?} at call {nth} and never failed");
    }
    println!("{} sites, {} calls", called.len(), calls.values().map(Vec::len).sum::<usize>());
}
