//! A repair that is cut off or fails gives up nothing more than one that is not, once it is done
//! again.

use std::sync::Arc;

use super::*;
use crate::{
    Engine, Options, SequenceNumber, Severity,
    maintenance::copied_store::{ROOT, read},
    vfs::{CrashFs, Fault, FaultFs, Image, stride},
    wal::frame_locations,
};

fn engine(fs: &CrashFs) -> Engine {
    fs.create_dir_all(Path::new(ROOT)).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    let flush_after = std::time::Duration::from_secs(1 << 30);
    let options = Options { wal_segment_bytes: 64 << 10, flush_after, ..Options::default() };
    Engine::builder(ROOT).options(options).vfs(Arc::new(fs.clone())).open().unwrap()
}

/// 20 flushed points in two files, and 110 in a log of three segments.
fn sample() -> Image {
    let fs = CrashFs::new();
    let open = engine(&fs);
    let filler = "x".repeat(1200);
    for n in 0..130 {
        let line = format!("m,host=a n={n}i,text=\"{filler}\" {n}");
        assert_eq!(open.write_lp("d", line.as_bytes()).unwrap().points, 1);
        if [9, 19].contains(&n) {
            open.flush().unwrap();
        }
    }
    fs.current()
}

fn find_path(image: &Image, part: &str, nth: usize) -> PathBuf {
    image.files().filter(|path| path.display().to_string().contains(part)).nth(nth).unwrap().to_owned()
}

/// Flips a bit in the body of a frame.
fn damage_frame(image: &mut Image, seq: u64) {
    let of = |path: &&Path| path.extension().is_some_and(|e| e == "wal");
    let paths: Vec<PathBuf> = image.files().filter(of).map(Path::to_owned).collect();
    for path in paths {
        let mut bytes = image.get(&path).unwrap().to_vec();
        if let Some((offset, len, _)) = frame_locations(&bytes, &path).iter().find(|(_, _, found)| *found == seq) {
            bytes[offset + len - 1] ^= 1;
            image.set(&path, bytes);
        }
    }
}

fn flip(image: &mut Image, path: &Path) {
    let mut bytes = image.get(path).unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    image.set(path, bytes);
}

/// The sample with two frames, a data file, a commit and the marker damaged: 11 + 2 points are lost
/// for good.
fn damaged() -> Image {
    let mut image = sample();
    damage_frame(&mut image, 40);
    damage_frame(&mut image, 90);
    let (file, commit) = (find_path(&image, ".parquet", 0), find_path(&image, "/meta/0/", 1));
    flip(&mut image, &file);
    flip(&mut image, &commit);
    image.set(&Path::new(ROOT).join(MARKER), Vec::new());
    image
}

fn random() -> Arc<dyn RandomSource> {
    Arc::new(SystemRandom::default())
}

/// Plans and repairs; returns what is left, in files and in the log.
fn repaired(fs: &CrashFs) -> u64 {
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let plan = find(fs, Path::new(ROOT)).unwrap().plan;
    let report = repair_on(&vfs, Path::new(ROOT), &plan, random()).unwrap();
    assert!(report.is_clean(), "{plan}\n{report}");
    assert!(find(fs, Path::new(ROOT)).unwrap().plan.is_empty());
    report.totals.rows + report.totals.points
}

#[test]
fn a_log_of_several_segments_is_written_anew_without_what_is_lost() {
    let mut image = sample();
    damage_frame(&mut image, 40);
    damage_frame(&mut image, 90);
    let fs = CrashFs::from_image(&image);
    let plan = find(&fs, Path::new(ROOT)).unwrap().plan;
    let [RepairStep::RewriteLog { segments, frames, points, given_up, recreated, widened }] = plan.steps.as_slice()
    else {
        panic!("{plan}");
    };
    assert!(segments.len() >= 3 && widened.is_empty(), "{plan}");
    let seqs: Vec<_> = given_up.iter().map(|lost| (lost.first.0, lost.last.0)).collect();
    assert_eq!((seqs, *frames, *points, *recreated), (vec![(40, 40), (90, 90)], 108, 108, 0), "{plan}");
    assert_eq!(repaired(&fs), 128);
    let report = crate::maintenance::verify::verify_on(&fs, Path::new(ROOT)).unwrap();
    assert!(report.findings.iter().all(|finding| finding.severity == Severity::Info), "{report}");
    assert_eq!(read(&fs, ROOT), 128, "also by who does not open it for writing");
    // The log goes on after it, under numbers that were never used.
    let open = engine(&fs);
    assert_eq!(open.write_lp("d", b"m,host=a n=130i 130").unwrap().points, 1);
    open.close().unwrap();
    assert_eq!(crate::maintenance::verify::verify_on(&fs, Path::new(ROOT)).unwrap().totals.rows, 129);
}

#[test]
fn a_power_cut_during_a_repair_costs_nothing_more() {
    let image = damaged();
    let fs = CrashFs::from_image(&image);
    let before = fs.operations();
    let left = repaired(&fs);
    assert!(left < 130 && left > 110, "{left}");
    let mut images = 0;
    for cut in fs.power_cuts().skip(before).step_by(stride(3)) {
        for image in cut.images(cut.operations() as u64, 3) {
            images += 1;
            let fs = CrashFs::from_image(&image);
            assert_eq!(repaired(&fs), left, "after {} operations", cut.operations());
        }
    }
    assert!(images > 20, "{images}");
}

#[test]
fn a_call_that_fails_during_a_repair_costs_nothing_more() {
    let image = damaged();
    let left = repaired(&CrashFs::from_image(&image));
    let plan = find(&CrashFs::from_image(&image), Path::new(ROOT)).unwrap().plan;
    let mut failed = 0;
    for nth in (1..).step_by(stride(5)) {
        let fs = CrashFs::from_image(&image);
        let faulty = FaultFs::new(Arc::new(fs.clone()));
        faulty.set(Fault::nth(nth, ErrorKind::Other));
        let vfs: Arc<dyn Vfs> = Arc::new(faulty.clone());
        let result = repair_on(&vfs, Path::new(ROOT), &plan, random());
        if faulty.failed().is_empty() {
            break;
        }
        failed += u64::from(result.is_err());
        drop(result);
        assert_eq!(repaired(&fs), left, "call {nth}");
    }
    assert!(failed > 5, "{failed}");
}

#[test]
fn a_log_without_its_beginning_keeps_the_rest() {
    let mut image = sample();
    let first = find_path(&image, "/wal/0", 0);
    image.remove(&first);
    let fs = CrashFs::from_image(&image);
    let plan = find(&fs, Path::new(ROOT)).unwrap().plan;
    let [RepairStep::RewriteLog { given_up, points, .. }] = plan.steps.as_slice() else { panic!("{plan}") };
    assert_eq!(given_up[0].first, SequenceNumber(23), "{plan}");
    let left = 20 + points;
    assert_eq!(repaired(&fs), left);
    assert!(left > 60, "{left}");
}

#[test]
fn a_log_that_is_gone_is_begun_anew_by_a_repair_that_says_what_it_gives_up() {
    let mut image = sample();
    let of = |path: &&Path| path.extension().is_some_and(|e| e == "wal");
    let segments: Vec<PathBuf> = image.files().filter(of).map(Path::to_owned).collect();
    segments.iter().for_each(|path| image.remove(path));
    let fs = CrashFs::from_image(&image);
    let vfs: Arc<dyn Vfs> = Arc::new(fs.clone());
    let plan = find(vfs.as_ref(), Path::new(ROOT)).unwrap().plan;
    let wal = Path::new(ROOT).join(WAL_DIR);
    assert_eq!(plan.steps, [RepairStep::ForgetLog { path: wal }]);
    assert!(plan.to_string().contains("gives up all points that were in it and in no data file"), "{plan}");
    assert!(repair_on(&vfs, Path::new(ROOT), &plan, random()).unwrap().is_clean());
    assert!(find(vfs.as_ref(), Path::new(ROOT)).unwrap().plan.is_empty());
    let open = engine(&fs);
    assert_eq!(open.tables("d").unwrap()[0].file_rows, 20, "what was flushed is there");
    assert_eq!(open.write_lp("d", b"m,host=a n=1i 500").unwrap().points, 1);
}
