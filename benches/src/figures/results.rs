//! What criterion left in its folder, and the counts of allocations beside it.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::{Deserialize, de::DeserializeOwned};

use super::invalid;

/// What one bench took.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    /// Nanoseconds of an iteration in the fastest sample: what a busy machine disturbs least.
    pub(super) best_ns: f64,
    /// The same in the sample in the middle.
    pub(super) median_ns: f64,
    /// Records, points or rows in an iteration.
    pub(super) elements: Option<f64>,
    /// Bytes in an iteration.
    pub(super) bytes: Option<f64>,
    /// Allocations for each record, where they were counted.
    pub(super) allocations: Option<f64>,
}

impl Measured {
    /// Returns MB/s of the fastest sample, a MB being 10^6 bytes.
    pub(super) fn mb_per_second(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes * 1e3 / self.best_ns)
    }

    /// Returns the nanoseconds of one element in the fastest sample.
    pub(super) fn ns_an_element(&self) -> Option<f64> {
        self.elements.map(|elements| self.best_ns / elements)
    }
}

/// Every bench of a folder, by its full name: `group/bench`.
#[derive(Debug, Default)]
pub(super) struct Results(BTreeMap<String, Measured>);

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
    throughput: Option<Throughput>,
}

#[derive(Deserialize)]
enum Throughput {
    Bits(f64),
    Bytes(f64),
    BytesDecimal(f64),
    Elements(f64),
    ElementsAndBytes { elements: f64, bytes: f64 },
}

#[derive(Deserialize)]
struct Sample {
    iters: Vec<f64>,
    times: Vec<f64>,
}

impl Results {
    /// Reads the folder that `CRITERION_HOME` named.
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let mut results = Self::default();
        results.read_below(folder)?;
        let counts = folder.join("allocations.json");
        if counts.exists() {
            for (name, count) in json::<BTreeMap<String, f64>>(&counts)? {
                if let Some(measured) = results.0.get_mut(&name) {
                    measured.allocations = Some(count);
                }
            }
        }
        Ok(results)
    }

    fn read_below(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if !path.is_dir() {
                continue;
            }
            if path.join("new/sample.json").exists() {
                let benchmark: Benchmark = json(&path.join("new/benchmark.json"))?;
                let sample: Sample = json(&path.join("new/sample.json"))?;
                let measured = measured(benchmark.throughput, &sample)
                    .ok_or_else(|| invalid(format!("{} has no samples", path.display())))?;
                self.0.insert(benchmark.full_id, measured);
            } else {
                self.read_below(&path)?;
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, name: &str) -> Option<&Measured> {
        self.0.get(name)
    }

    /// Returns every bench whose name begins with `group` and a slash, with the rest of its name,
    /// in alphabetical order.
    pub(super) fn group<'a>(&'a self, group: &'a str) -> impl Iterator<Item = (&'a str, &'a Measured)> {
        self.0.iter().filter_map(move |(name, measured)| {
            let rest = name.strip_prefix(group)?.strip_prefix('/')?;
            Some((rest, measured))
        })
    }

    #[cfg(test)]
    pub(super) fn of(all: impl IntoIterator<Item = (&'static str, Measured)>) -> Self {
        Self(all.into_iter().map(|(name, measured)| (name.to_owned(), measured)).collect())
    }
}

fn measured(throughput: Option<Throughput>, sample: &Sample) -> Option<Measured> {
    let mut times: Vec<f64> = sample.times.iter().zip(&sample.iters).map(|(time, iters)| time / iters).collect();
    times.sort_unstable_by(f64::total_cmp);
    let (elements, bytes) = match throughput {
        Some(Throughput::Elements(elements)) => (Some(elements), None),
        Some(Throughput::Bytes(bytes) | Throughput::BytesDecimal(bytes)) => (None, Some(bytes)),
        Some(Throughput::Bits(bits)) => (None, Some(bits / 8.0)),
        Some(Throughput::ElementsAndBytes { elements, bytes }) => (Some(elements), Some(bytes)),
        None => (None, None),
    };
    let (best_ns, median_ns) = (*times.first()?, *times.get(times.len() / 2)?);
    Some(Measured { best_ns, median_ns, elements, bytes, allocations: None })
}

fn json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&fs::read(path)?).map_err(|error| invalid(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_sample_and_the_one_in_the_middle_are_read_with_their_sizes() {
        let folder = tempfile::tempdir().unwrap();
        let bench = folder.path().join("lp_parse_short/values/new");
        fs::create_dir_all(&bench).unwrap();
        fs::create_dir_all(folder.path().join("report")).unwrap();
        let benchmark = r#"{"group_id":"lp_parse/short","function_id":null,"value_str":"values",
            "throughput":{"ElementsAndBytes":{"elements":100,"bytes":7000}},"full_id":"lp_parse/short/values"}"#;
        fs::write(bench.join("benchmark.json"), benchmark).unwrap();
        let sample = r#"{"sampling_mode":"Flat","iters":[2.0,2.0,1.0],"times":[8000.0,2000.0,9000.0]}"#;
        fs::write(bench.join("sample.json"), sample).unwrap();
        fs::write(folder.path().join("allocations.json"), r#"{"lp_parse/short/values":0.5,"other":1.0}"#).unwrap();

        let results = Results::read(folder.path()).unwrap();
        let want = Measured {
            best_ns: 1000.0,
            median_ns: 4000.0,
            elements: Some(100.0),
            bytes: Some(7000.0),
            allocations: Some(0.5),
        };
        assert_eq!(results.get("lp_parse/short/values"), Some(&want));
        assert_eq!((want.mb_per_second(), want.ns_an_element()), (Some(7000.0), Some(10.0)));
        assert_eq!(results.group("lp_parse/short").map(|(name, _)| name).collect::<Vec<_>>(), ["values"]);
        assert_eq!(results.group("lp_parse/sho").count(), 0);
    }

    #[test]
    fn a_broken_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let bench = folder.path().join("a/new");
        fs::create_dir_all(&bench).unwrap();
        fs::write(bench.join("sample.json"), "{}").unwrap();
        fs::write(bench.join("benchmark.json"), "{").unwrap();
        let error = Results::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("benchmark.json"), "{error}");
    }
}
