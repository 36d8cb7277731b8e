//! How fast is a compressed body plain again?
//!
//! Bodies of line protocol, 1 MB each when they are plain, as clients send them: gzip at level 6,
//! zstd at level 3. `gzip` is what the server does with one member, libdeflate over the whole body;
//! `gzip-in-pieces` is flate2, which it falls back to and which `arc-server import` reads files
//! with, on whatever its feature in the workspace's Cargo.toml says: `zlib-rs`, `zlib-ng`, `zlib`
//! or `rust_backend`. `zstd` is one frame of known size, `zstd-in-pieces` any other.
//!
//! Not measured: the search for a second member and the second checksum that the server adds to
//! libdeflate, about 3 %.

use std::io::{Read, Write};

use arc_benches::corpus::Corpus;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const BYTES: usize = 1_000_000;

fn gzip(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(plain)?;
    encoder.finish()
}

fn read_all(mut from: impl Read, out: &mut Vec<u8>) -> usize {
    out.clear();
    from.read_to_end(out).unwrap_or_default()
}

fn decompress(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decompress");
    for (name, corpus) in [("cpu-only", Corpus::CpuOnly), ("telegraf", Corpus::Telegraf), ("floats", Corpus::Floats)] {
        let plain = corpus.generate(1, BYTES);
        let (gzip, zstd) = (gzip(&plain).unwrap_or_default(), zstd::bulk::compress(&plain, 3).unwrap_or_default());
        let mut out = Vec::with_capacity(plain.len());
        group.throughput(Throughput::Bytes(plain.len() as u64));
        group.bench_function(BenchmarkId::new("gzip", name), |bencher| {
            bencher.iter(|| {
                let mut out = vec![0; plain.len()];
                libdeflater::Decompressor::new().gzip_decompress(&gzip, &mut out).map(|_| out)
            });
        });
        group.bench_function(BenchmarkId::new("gzip-in-pieces", name), |bencher| {
            bencher.iter(|| read_all(flate2::bufread::MultiGzDecoder::new(&*gzip), &mut out));
        });
        group.bench_function(BenchmarkId::new("zstd", name), |bencher| {
            bencher.iter(|| zstd::bulk::decompress(&zstd, plain.len()));
        });
        group.bench_function(BenchmarkId::new("zstd-in-pieces", name), |bencher| {
            bencher.iter(|| zstd::stream::read::Decoder::with_buffer(&*zstd).map(|from| read_all(from, &mut out)));
        });
    }
    group.finish();
}

criterion_group!(benches, decompress);
criterion_main!(benches);
