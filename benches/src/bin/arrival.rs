//! What a line costs by the order in which series arrive, and by how many of them are known.
//!
//!     cargo run --release -p arc-benches --no-default-features --features engine --bin arrival -- [--out DIR] [order] [known] [full]
//!
//! `order`: a hundred hosts, in turn or in an order that is another one each second, through one
//! connection or shared by twelve, whose requests overtake each other. `known`: series that had
//! their first points before, up to ten million, in the same order each time. `full`: the same where
//! the series cache has room for about a hundred thousand.
//!
//! Line protocol into one engine in this process, `disk`, flushes and merges included: processor
//! time of the whole process until all is flushed, without what making the requests takes. Cases
//! come in turn, and what is shown are medians over the rounds: of the times, and of their ratios to
//! that of the first case in the same round. Environment: `ARRIVAL_ROUNDS`; `ARRIVAL_CASES`, numbers
//! of the cases of `order`, from 0; `ARRIVAL_SERIES`, the most series of `known`.

use std::{
    collections::VecDeque,
    error::Error,
    fmt::Write as _,
    process::ExitCode,
    sync::{Arc, atomic::AtomicI64},
};

use arc_benches::{
    load::{Bodies, Kind, Order, Recipe, Shape, now_ns, own_hosts, process},
    subjects,
};
use arc_core::{Engine, Options, PendingWrite, WriteOptions};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Failure = Box<dyn Error + Send + Sync>;
type Outcome<T> = Result<T, Failure>;

/// Hosts, lines of a request, and points of a run of `order`.
const HOSTS: u32 = 100;
const BATCH: u32 = 1_000;
const POINTS: u64 = 6_000_000;

/// The same of `known`, where each series has its first point before the run.
const KNOWN_BATCH: usize = 10_000;
const KNOWN_POINTS: u64 = 10_000_000;
const KNOWN_WRITERS: u64 = 2;
/// Requests of a writer of `known` that wait for their answers at a time.
const PENDING: usize = 4;

fn main() -> ExitCode {
    subjects::run::<Failure>(&[
        ("order", Box::new(measure_order)),
        ("known", Box::new(measure_known)),
        ("full", Box::new(measure_full)),
    ])
}

/// Says of each case what it took a million points, and how that compares with the first.
fn table(what: &str, names: &[String], rounds: &[Vec<f64>]) -> Outcome<String> {
    let mut table =
        format!("| {what} | CPU s/M points | of the first | least | most |\n| --- | --- | --- | --- | --- |\n");
    for (case, name) in names.iter().enumerate() {
        let of_round = |round: &Vec<f64>| Some((*round.get(case)?, *round.get(case)? / round.first()?));
        let (mut cpu, mut ratios): (Vec<f64>, Vec<f64>) = rounds.iter().filter_map(of_round).unzip();
        cpu.sort_by(f64::total_cmp);
        ratios.sort_by(f64::total_cmp);
        let middle = |sorted: &[f64]| sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
        let ends = ratios.first().zip(ratios.last()).ok_or("no round")?;
        writeln!(table, "| {name} | {:.3} | {:.2} | {:.2} | {:.2} |", middle(&cpu), middle(&ratios), ends.0, ends.1)?;
    }
    Ok(table)
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn cpu() -> f64 {
    process::usage(std::process::id()).map_or(0.0, |usage| usage.cpu.as_secs_f64())
}

/// How lines come in.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    writers: u32,
    shared: bool,
    one_clock: bool,
    order: Order,
}

fn measure_order() -> Outcome<String> {
    let case = |name: &str, writers, order, (shared, one_clock)| {
        (name.to_owned(), Arrival { writers, order, shared, one_clock })
    };
    let (own, queue, free) = ((false, false), (true, true), (true, false));
    let cases = [
        case("12 writers, own hosts in turn", 12, Order::InTurn, own),
        case("12 writers, own hosts in random order", 12, Order::Random, own),
        case("one writer, in turn", 1, Order::InTurn, own),
        case("one writer, random order", 1, Order::Random, own),
        case("shared by 12 with one clock, in turn", 12, Order::InTurn, queue),
        case("shared by 12 with one clock, random order", 12, Order::Random, queue),
        case("shared by 12 with clocks of their own, in turn", 12, Order::InTurn, free),
        case("shared by 12 with clocks of their own, random order", 12, Order::Random, free),
    ];
    let wanted = std::env::var("ARRIVAL_CASES").unwrap_or_default();
    let is_wanted = |at: usize| wanted.is_empty() || wanted.split(',').any(|case| case == at.to_string());
    let cases: Vec<_> = (0..).zip(cases).filter(|(at, _)| is_wanted(*at)).map(|(_, case)| case).collect();
    let mut rounds = Vec::new();
    for _ in 0..number("ARRIVAL_ROUNDS", 5) {
        rounds.push(cases.iter().map(|(_, arrival)| run_order(*arrival)).collect::<Outcome<Vec<f64>>>()?);
    }
    table("hosts", &cases.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), &rounds)
}

fn run_order(arrival: Arrival) -> Outcome<f64> {
    let requests = POINTS / u64::from(BATCH * arrival.writers);
    let mut dry = writers(arrival)?;
    let before = cpu();
    each(&mut dry, |bodies| {
        for _ in 0..requests {
            std::hint::black_box(bodies.advance()?.to_vec());
        }
        Ok(())
    })?;
    let making = cpu() - before;
    let folder = tempfile::tempdir()?;
    let engine = Engine::open(folder.path())?;
    let mut writers = writers(arrival)?;
    let before = cpu();
    each(&mut writers, |bodies| {
        for _ in 0..requests {
            let body = bodies.advance()?.to_vec();
            let _ = engine.submit_lp("bench", body.into(), &WriteOptions::new())?.wait()?;
        }
        Ok(())
    })?;
    engine.flush()?;
    let took = cpu() - before - making;
    let (points, stored) = (requests * u64::from(BATCH * arrival.writers), engine.stats().points);
    engine.close()?;
    if stored == points { Ok(took * 1e6 / points as f64) } else { Err(format!("{stored} of {points} points").into()) }
}

fn writers(arrival: Arrival) -> Outcome<Vec<Bodies>> {
    let recipe = Recipe {
        kind: Kind::Lp,
        shape: Shape::Short,
        batch: BATCH,
        pool: 64,
        seed: 42,
        order: arrival.order,
        start_ns: now_ns(),
    };
    let clock = Arc::new(AtomicI64::new(recipe.start_ns));
    let writer = |number| {
        let parts = if arrival.shared { 1 } else { arrival.writers };
        let bodies = Bodies::new(recipe, own_hosts(HOSTS, parts, number), number)?;
        Ok(if arrival.one_clock { bodies.with_clock(&clock) } else { bodies })
    };
    (0..arrival.writers).map(writer).collect()
}

fn measure_known() -> Outcome<String> {
    measure_series(&[100, 1_500_000, 3_000_000, 10_000_000], &Options::default())
}

fn measure_full() -> Outcome<String> {
    let mut options = Options::default();
    options.memory_bytes = 128 << 20;
    measure_series(&[100, 100_000, 150_000, 300_000, 1_000_000], &options)
}

fn measure_series(counts: &[u64], options: &Options) -> Outcome<String> {
    let most = number("ARRIVAL_SERIES", 10_000_000);
    let counts: Vec<u64> = counts.iter().copied().filter(|count| *count <= most).collect();
    let mut rounds = Vec::new();
    for _ in 0..number("ARRIVAL_ROUNDS", 1) {
        rounds.push(counts.iter().map(|count| run_known(*count, options.clone())).collect::<Outcome<Vec<f64>>>()?);
    }
    table("series", &counts.iter().map(u64::to_string).collect::<Vec<_>>(), &rounds)
}

/// A request whose times and values are written anew for each round.
#[derive(Debug)]
struct Template {
    bytes: Vec<u8>,
    lines: Vec<Line>,
}

/// Number of a line's series, the second of its round in which it is, and where its values and its
/// time stand.
#[derive(Debug)]
struct Line {
    series: u64,
    tick: u64,
    user: usize,
    idle: usize,
    time: usize,
}

impl Template {
    /// Has a line for each series, in their order, `ticks` times.
    fn new(series: &[u64], ticks: u64) -> Self {
        let (mut text, mut lines) = (String::new(), Vec::new());
        for (tick, series) in (0..ticks).flat_map(|tick| series.iter().map(move |series| (tick, *series))) {
            let _ = write!(text, "short,host=host_{series},region=region-{} usage_user=", series % 8);
            let user = text.len();
            text.push_str("00.00,usage_idle=");
            let idle = text.len();
            text.push_str("00.00 ");
            lines.push(Line { series, tick, user, idle, time: text.len() });
            text.push_str("0000000000000000000\n");
        }
        Self { bytes: text.into_bytes(), lines }
    }

    /// Returns the request of a round that begins at a second.
    fn at(&mut self, start: u64) -> &[u8] {
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(slot) = self.bytes.get_mut(at..at + bytes.len()) {
                slot.copy_from_slice(bytes);
            }
        };
        let (mut second, mut time) = (0, String::new());
        for Line { series, tick, user, idle, time: at } in &self.lines {
            // Two decimals that walk slowly, as measurements do.
            let now = start + tick;
            for (at, value) in [(user, series * 7 + now * 3), (idle, series * 13 + now)] {
                let digit = |unit: u64| u8::try_from(value / unit % 10).map_or(b'0', |digit| b'0' + digit);
                let [a, b, c, d] = [1_000, 100, 10, 1].map(digit);
                put(*at, &[a, b, b'.', c, d]);
            }
            if second != now {
                (second, time) = (now, (now * 1_000_000_000).to_string());
            }
            put(*at, time.as_bytes());
        }
        &self.bytes
    }
}

/// The requests of one writer: those of a round, round after round.
#[derive(Debug)]
struct Rounds {
    templates: Vec<Template>,
    /// Seconds of a round, and when the next one begins.
    ticks: u64,
    start: u64,
}

impl Rounds {
    /// Of each `KNOWN_WRITERS`th of the series.
    fn new(writer: u64, series: u64) -> Self {
        let own: Vec<u64> = (0..series).filter(|number| number % KNOWN_WRITERS == writer).collect();
        let ticks = (KNOWN_BATCH / own.len().max(1)).max(1) as u64;
        let templates = own.chunks(KNOWN_BATCH).map(|series| Template::new(series, ticks)).collect();
        Self { templates, ticks, start: 1_767_225_600 }
    }

    /// Returns how many points a round has.
    fn points(&self) -> u64 {
        self.templates.iter().map(|template| template.lines.len() as u64).sum()
    }

    /// Hands over the requests of so many rounds.
    fn advance(&mut self, rounds: u64, mut send: impl FnMut(&[u8]) -> Outcome<()>) -> Outcome<()> {
        for _ in 0..rounds {
            let start = self.start;
            self.start += self.ticks;
            self.templates.iter_mut().try_for_each(|template| send(template.at(start)))?;
        }
        Ok(())
    }

    /// Writes so many rounds, a few requests at a time under way.
    fn write(&mut self, engine: &Engine, rounds: u64) -> Outcome<()> {
        let mut pending: VecDeque<PendingWrite> = VecDeque::new();
        self.advance(rounds, |body| {
            if pending.len() == PENDING
                && let Some(first) = pending.pop_front()
            {
                drop(first.wait()?);
            }
            pending.push_back(engine.submit_lp("bench", body.to_vec().into(), &WriteOptions::new())?);
            Ok(())
        })?;
        for pending in pending {
            let _ = pending.wait()?;
        }
        Ok(())
    }
}

fn run_known(series: u64, options: Options) -> Outcome<f64> {
    let mut writers: Vec<Rounds> = (0..KNOWN_WRITERS).map(|writer| Rounds::new(writer, series)).collect();
    let of_round: u64 = writers.iter().map(Rounds::points).sum();
    let rounds = KNOWN_POINTS.div_ceil(of_round);
    let before = cpu();
    each(&mut writers, |rounds_of| {
        rounds_of.advance(rounds, |body| {
            std::hint::black_box(body.to_vec());
            Ok(())
        })
    })?;
    let making = cpu() - before;
    let folder = tempfile::tempdir()?;
    let engine = Engine::builder(folder.path()).options(options).open()?;
    each(&mut writers, |writer| writer.write(&engine, 1))?;
    engine.flush()?;
    let before = cpu();
    each(&mut writers, |writer| writer.write(&engine, rounds))?;
    engine.flush()?;
    let took = cpu() - before - making;
    let (points, stored) = (rounds * of_round, engine.stats().points - of_round);
    engine.close()?;
    if stored == points { Ok(took * 1e6 / points as f64) } else { Err(format!("{stored} of {points} points").into()) }
}

/// Has each writer do its work in a thread of its own.
fn each<W: Send>(writers: &mut [W], work: impl Fn(&mut W) -> Outcome<()> + Sync) -> Outcome<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = writers.iter_mut().map(|writer| scope.spawn(move || work(writer))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a writer panicked".into())))
    })
}
