//! Files in archives of ZIP.

use std::{io::Write as _, path::PathBuf};

use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::{all_of, engine, files, gzip, in_milliseconds, table};
use crate::import::ImportOptions;

/// An archive of these files; those that end with a slash are folders.
pub(super) fn zip(files: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipArchiveWriter::new(Vec::new());
    for (name, bytes) in files {
        if name.ends_with('/') {
            archive.new_dir(name).create().unwrap();
            continue;
        }
        let (mut entry, config) = archive.new_file(name).compression_method(method).start().unwrap();
        let descriptor = if method == CompressionMethod::DEFLATE {
            let packed = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::fast());
            let mut plain = config.wrap(packed);
            plain.write_all(bytes).unwrap();
            let (packed, descriptor) = plain.finish().unwrap();
            packed.finish().unwrap();
            descriptor
        } else {
            let mut plain = config.wrap(&mut entry);
            plain.write_all(bytes).unwrap();
            plain.finish().unwrap().1
        };
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap()
}

#[test]
fn an_archive_is_refused_by_what_is_wrong_with_it() {
    let csv = b"time,v\n1,2\n".as_slice();
    let good = zip(&[("a.csv", csv)], CompressionMethod::DEFLATE);
    let changed = |from: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[from] ^= byte;
        bytes
    };
    let directory = good.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    let other = zip(&[("a.xlsx", csv)], CompressionMethod::STORE);
    let unknown = zip(&[("a.csv", csv)], CompressionMethod::ZSTD);
    for (bytes, reason) in [
        (zip(&[("a.csv", csv), ("b.csv", csv)], CompressionMethod::DEFLATE), "several files (\"a.csv\", \"b.csv\")"),
        (zip(&[("in/", b"")], CompressionMethod::DEFLATE), "without a file"),
        (changed(directory + 8, 1), "needs a password"),
        (changed(directory + 16, 1), "checksum"),
        (changed(directory + 24, 1), "size"),
        (good[..good.len() - 30].to_vec(), "cannot be read"),
        (good[..30].to_vec(), "cannot be read"),
        (unknown, "expected DEFLATE"),
        (other, "does not say its format"),
    ] {
        let (_dir, engine) = engine();
        let error = all_of("a.zip", &bytes, &table("t"), &engine).unwrap_err();
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let text = causes.map(|error| error.to_string()).collect::<Vec<_>>().join(": ");
        assert!(text.contains(reason), "{text}, not {reason}");
    }
}

#[test]
fn what_is_laid_down_unpacked_has_a_limit_and_a_folder() {
    let (name, bytes) = files(2_000).into_iter().find(|(name, _)| name.ends_with("parquet")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let unpacked = |most: usize, unpack_in: PathBuf| {
        let options =
            ImportOptions { unpack_in: Some(unpack_in), unpacked_bytes: most as u64, ..in_milliseconds(&[], 1 << 20) };
        let (_dir, engine) = engine();
        all_of(&format!("{name}.gz"), &gzip(&bytes), &options, &engine)
    };
    assert_eq!(unpacked(bytes.len(), folder.path().into()).unwrap().rows, 2_000);
    let error = unpacked(bytes.len() - 1, folder.path().into()).unwrap_err();
    assert!(error.to_string().contains("when it is unpacked"), "{error}");
    unpacked(bytes.len(), folder.path().join("none")).unwrap_err();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
