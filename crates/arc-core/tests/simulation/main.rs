//! The core in simulation: a seed decides the order of all threads, what the disk does, and what is
//! asked of the engine.
//!
//! `scripts/reliability/simulate` builds and runs this; without arguments it is a short round.

#![allow(clippy::disallowed_methods, reason = "tests make files and measure time")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod commit;
mod core;
mod disk;
mod model;
mod rows;
mod scheduler;
mod swarm;
mod widen;

use std::{process::ExitCode, time::Instant};

use self::core::Run;

const USAGE: &str = "expected [--commit | --widen] [--without DEFECT] (--seed N | --seeds FROM..TO | --all FROM..TO | --same FROM..TO | --scheduler)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments = arguments.iter().map(String::as_str).peekable();
    let run = match arguments.next_if(|mode| ["--commit", "--widen"].contains(mode)) {
        Some("--commit") => commit::run,
        Some(_) => widen::run,
        None => core::run,
    };
    #[cfg(feature = "known-defects")]
    if arguments.next_if_eq(&"--without").is_some() {
        arc_core::defects::set(defect(arguments.next().expect(USAGE)), true);
    }
    let rest: Vec<&str> = arguments.collect();
    let range = |range: &str| {
        let (from, to) = range.split_once("..").expect(USAGE);
        from.parse().expect(USAGE)..to.parse().expect(USAGE)
    };
    match rest.as_slice() {
        ["--seed", seed] => one(run, seed.parse().expect(USAGE)),
        ["--seeds", seeds] => many(range(seeds), run, false),
        ["--all", seeds] => many(range(seeds), run, true),
        ["--same", seeds] => same(range(seeds), run),
        ["--scheduler"] => {
            scheduler::check();
            ExitCode::SUCCESS
        }
        [] => {
            scheduler::check();
            many(0..100, run, false)
        }
        _ => panic!("{USAGE}"),
    }
}

#[cfg(feature = "known-defects")]
fn defect(name: &str) -> arc_core::defects::Defect {
    use arc_core::defects::Defect;
    match name {
        "drop-leaves-both-lists" => Defect::DropLeavesBothLists,
        "tied-files-move-alone" => Defect::TiedFilesMoveAlone,
        "flush-after-close" => Defect::FlushAfterClose,
        "drop-waits-for-decodes" => Defect::DropWaitsForDecodes,
        _ => panic!("there was never a defect {name}"),
    }
}

fn one(run: fn(u64) -> Run, seed: u64) -> ExitCode {
    let run = run(seed);
    println!("seed {seed}: {} steps, {} images, trace {:016x}", run.steps, run.images, run.hash);
    match run.failure {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            println!("{:#?}", swarm::Swarm::draw(seed));
            println!("seed {seed}: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs some seeds, up to the first that fails, or all.
fn many(seeds: std::ops::Range<u64>, run: fn(u64) -> Run, goes_on: bool) -> ExitCode {
    let (began, from, count) = (Instant::now(), seeds.start, seeds.end - seeds.start);
    let (mut steps, mut images, mut failures) = (0, 0, 0);
    for seed in seeds {
        let run = run(seed);
        (steps, images) = (steps + run.steps, images + run.images);
        if let Some(failure) = run.failure {
            println!("seed {seed}: {failure}");
            failures += 1;
            if !goes_on {
                println!("found at the {}. seed, after {:.1?}", seed - from + 1, began.elapsed());
                return ExitCode::FAILURE;
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{count} seeds, {steps} steps, {images} images, {seconds:.1} s, {:.1} seeds/s", count as f64 / seconds);
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A seed is the same each time.
fn same(seeds: std::ops::Range<u64>, run: fn(u64) -> Run) -> ExitCode {
    for seed in seeds.clone() {
        let (first, second) = (run(seed), run(seed));
        if (first.hash, first.steps, &first.failure) != (second.hash, second.steps, &second.failure) {
            println!("seed {seed} has two traces: {:016x} and {:016x}", first.hash, second.hash);
            return ExitCode::FAILURE;
        }
    }
    println!("{} seeds ran twice, the same each time", seeds.end - seeds.start);
    ExitCode::SUCCESS
}
