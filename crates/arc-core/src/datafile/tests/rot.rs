//! Bits that rot: every one of a data file is in a checksum that its readers compare, wherever and
//! however it was written.

use ulid::Ulid;

use super::{
    super::file_checks::{FileChecks, FileComparison, Rotten},
    *,
};
use crate::{Error, arrays::Columns, model::packed};

/// Rows that are all in memory, as a flush has them.
struct InMemory(RecordBatch);

impl Columns for InMemory {
    fn len(&self) -> usize {
        self.0.num_rows()
    }

    fn column(
        &self,
        index: usize,
        rows: std::ops::Range<usize>,
        take: &mut dyn FnMut(&ArrayRef) -> Result<()>,
    ) -> Result<()> {
        take(&self.0.column(index).slice(rows.start, rows.len()))
    }

    fn sample(&self, index: usize, step: usize) -> Result<ArrayRef> {
        let indices = arrow::array::UInt64Array::from_iter_values((0..self.0.num_rows() as u64).step_by(step));
        Ok(arrow::compute::take(self.0.column(index), &indices, None).unwrap())
    }
}

/// Rows of so many columns of floats that do not repeat.
fn floats(rows: u32, columns: usize) -> RecordBatch {
    let names: Vec<String> = (0..columns).map(|column| format!("f{column}")).collect();
    let column = |salt: usize| {
        let salt = u32::try_from(salt).unwrap();
        let value = |n: u32| f64::from(n.wrapping_mul(2_654_435_761) ^ salt) / 3.0;
        Arc::new(Float64Array::from_iter_values((0..rows).map(value))) as ArrayRef
    };
    batch(names.iter().enumerate().map(|(at, name)| (name.as_str(), column(at * 77))).collect())
}

/// Data files of each kind, and whether they have a tail.
fn files(fs: &CrashFs, root: &Path) -> Vec<(DataFile, bool)> {
    let options = ParquetOptions::default();
    let mut files = Vec::new();
    for (rows, columns, has_tail) in [(50, 2, false), (20_000, 2, true)] {
        let rows = floats(rows, columns);
        let spec = DataFileSpec { path: format!("{PATH}.{}", rows.num_rows()), ..spec(rows.schema(), &[]) };
        let file = write_data_file(fs, root, &spec, std::iter::once(Ok(rows)), &options).unwrap();
        files.push((file, has_tail));
    }
    let pack = PackWriter::new(fs, root, Ulid::from_parts(1, 2));
    let owner = Owner { database: "d", table: "t", day: PartitionDay::from_time_ns(0) };
    let mut writer = DataFileWriter::default();
    // A small one, one of few rows and many columns, and one of more rows than the writer of small
    // ones takes.
    for (rows, columns, has_tail) in [(50, 2, false), (1_000, 20, true), (9_000, 2, true)] {
        let rows = floats(rows, columns);
        let spec = DataFileSpec { path: pack.path().into(), ..spec(rows.schema(), &[]) };
        let file = writer.write_to_pack(&pack, owner, &spec, &InMemory(rows), &options).unwrap();
        files.push((file, has_tail));
    }
    pack.finish().unwrap();
    files
}

/// Returns what those who read some bytes of a file, in order, find in it.
fn check_parts(bytes: &[u8], checks: FileChecks) -> std::result::Result<(), Rotten> {
    match checks.checked() {
        FileComparison::Whole => checks.check_whole(bytes),
        FileComparison::Blocks { tail } => {
            let (data, end) = bytes.split_at(usize::try_from(tail).unwrap());
            checks.check_tail(end)?.check(0, data)
        }
        FileComparison::Not => panic!("a file that nobody can check"),
    }
}

#[test]
fn every_byte_of_every_kind_of_data_file_is_in_a_checksum_that_its_readers_compare() {
    let (fs, root) = (CrashFs::new(), Path::new("/r"));
    for (file, has_tail) in files(&fs, root) {
        let path = root.join(&file.path);
        assert_eq!((file.tail.is_some(), file.bytes > 64 << 10), (has_tail, has_tail), "{}", file.path);
        let rows: u64 = stream(&fs, root, &file, 1_000).unwrap().map(|batch| batch.unwrap().num_rows() as u64).sum();
        assert_eq!(rows, file.rows);
        let whole = read_whole(&fs, root, &file).unwrap();
        let checks = FileChecks::of(&file);
        assert_eq!(check_parts(&whole, checks), Ok(()));
        let step = if has_tail { 127 } else { 1 };
        for at in (0..whole.len()).step_by(step).chain(whole.len().saturating_sub(600)..whole.len()) {
            for bit in [0, 3, 7] {
                let mut rotten = whole.clone();
                rotten[at] ^= 1 << bit;
                assert!(check_parts(&rotten, checks).is_err(), "bit {bit} of byte {at} of {}", file.path);
            }
        }
        // Those who read all of it.
        let (stored, start) = packed(&file.path).map_or((file.path.as_str(), 0), |(pack, range)| (pack, range.start));
        for at in (0..file.bytes).step_by(usize::try_from(file.bytes / 40).unwrap()) {
            let mut image = fs.current();
            let mut bytes = image.get(&root.join(stored)).unwrap().to_vec();
            bytes[usize::try_from(start + at).unwrap()] ^= 1;
            image.set(&root.join(stored), bytes);
            match CheckedDataFile::open(&CrashFs::from_image(&image), root, &file).map(drop) {
                Err(Error::Corrupt { path: named, .. }) => assert_eq!(named, path),
                other => panic!("{other:?}"),
            }
        }
    }
}
