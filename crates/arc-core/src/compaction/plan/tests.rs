use super::{
    super::tests::fake::{DAY_NS, file, late, sized, table},
    *,
};

const SETTINGS: Settings =
    Settings { files: 3, target_bytes: 100, open_columns: 4096, quiet_ns: 10, slice_rows: SLICE_ROWS };
const OVER: i64 = DAY_NS + SETTINGS.quiet_ns;

/// Returns the paths of each task's inputs.
fn planned(files: &[Arc<DataFile>], now_ns: i64) -> Vec<(Vec<&str>, MergeOutput)> {
    let tasks = plan(&table(), files, now_ns, &SETTINGS).tasks;
    let of = |task: MergeTask| {
        let path = |file: &Arc<DataFile>| files.iter().find(|f| Arc::ptr_eq(f, file)).map(|f| f.path.as_str());
        (task.files.iter().filter_map(path).collect(), task.output)
    };
    tasks.into_iter().map(of).collect()
}

fn on_time(paths: &[&'static str]) -> Vec<(Vec<&'static str>, MergeOutput)> {
    vec![(paths.to_vec(), MergeOutput::OnTime)]
}

#[test]
fn an_open_day_merges_files_of_one_size_once_there_are_enough() {
    let rows = |path, at: i64, rows| sized(&file(path, at..=at, 1..=1), rows, rows);
    let cases = [
        (vec![rows("a", 1, 1), rows("b", 2, 2)], vec![]),
        // Whatever the order in the manifest, the oldest first; nine rows are another size.
        (vec![rows("b", 2, 2), rows("big", 3, 9), rows("a", 1, 1), rows("c", 4, 1)], on_time(&["b", "a", "c"])),
        (vec![rows("a", 1, 9), rows("b", 2, 20), rows("c", 4, 10), rows("d", 5, 1)], on_time(&["a", "b", "c"])),
        // Large enough already.
        (vec![rows("a", 1, 50), rows("b", 2, 50), rows("c", 4, 50)], vec![]),
    ];
    for (files, expected) in cases {
        assert_eq!(planned(&files, 0), expected, "{files:?}");
    }
}

#[test]
fn a_day_of_flushes_keeps_few_files_and_rewrites_each_row_a_few_times() {
    const FLUSHES: i64 = 1_440;
    let settings = Settings { files: 8, target_bytes: 1 << 40, quiet_ns: 0, ..SETTINGS };
    let mut files: Vec<Arc<DataFile>> = Vec::new();
    let (mut rewritten, mut most) = (0, 0);
    for at in 0..=FLUSHES {
        let is_over = at == FLUSHES;
        if !is_over {
            files.push(sized(&file(&at.to_string(), at..=at, 1..=1), 100, 100));
        }
        while let Some(task) = plan(&table(), &files, if is_over { OVER } else { 0 }, &settings).tasks.pop() {
            let rows = task.files.iter().map(|file| file.rows).sum();
            let (first, last) = (task.files[0].min_time, task.files.iter().map(|file| file.max_time).max().unwrap());
            files.retain(|file| !task.files.contains(file));
            files.push(sized(&file(&format!("{first}-{last}"), first..=last, 1..=1), rows, rows));
            rewritten += rows;
        }
        most = most.max(files.len());
    }
    assert_eq!((files.len(), files[0].rows), (1, 100 * FLUSHES as u64));
    assert!(most <= 30, "{most} files");
    assert!(rewritten <= 4 * files[0].rows, "{rewritten} rows rewritten");
}

#[test]
fn late_files_come_along_where_they_overlap_nothing_else() {
    let mut files = vec![file("a", 0..=9, 1..=1), file("b", 10..=19, 2..=2), file("c", 20..=29, 3..=3)];
    files.push(sized(&file("big", 30..=39, 4..=4), 40, 40));
    files.push(late("inside", 5..=15, 2..=2));
    files.push(late("outside", 25..=31, 4..=4));
    // What it overwrites stays outside, and so must it.
    files.push(late("later", 26..=27, 5..=5));
    assert_eq!(planned(&files, 0), on_time(&["a", "b", "c", "inside"]));
}

#[test]
fn late_files_are_merged_into_what_they_overlap_once_it_is_worth_it() {
    let lates =
        |rows| (1..4).map(move |seq| sized(&late(["x", "y", "z"][seq - 1], 0..=9, seq as u64..=seq as u64), rows, 1));
    let with = |rows: u64, base: u64| {
        let mut files = vec![sized(&file("base", 0..=9, 1..=1), base, 60)];
        files.extend(lates(rows));
        files
    };
    assert_eq!(planned(&with(10, 90), 0), on_time(&["base", "x", "y", "z"]));
    assert_eq!(planned(&with(10, 91), 0), [(vec!["x", "y", "z"], MergeOutput::Late)]);
    let two: Vec<_> = with(10, 91).into_iter().take(3).collect();
    assert_eq!(planned(&two, 0), []);
    // Neighbours only, and those of one size first.
    let mut files = with(1, 1_000);
    files.extend([sized(&late("large", 0..=9, 4..=4), 30, 1), late("w", 0..=9, 5..=5)]);
    assert_eq!(planned(&files, 0), [(vec!["x", "y", "z"], MergeOutput::Late)]);
}

/// Does what is planned until there is nothing left to do, and returns the files then and how many
/// tasks it took. Rows are spread evenly over the time of their file.
fn settled(mut files: Vec<Arc<DataFile>>, settings: &Settings) -> (Vec<Arc<DataFile>>, usize) {
    for tasks in 0..20_000 {
        let Some(task) = plan(&table(), &files, OVER, settings).tasks.pop() else { return (files, tasks) };
        files.retain(|file| !task.files.iter().any(|input| Arc::ptr_eq(input, file)));
        let ends = task.cuts.iter().copied().chain([i64::MAX]);
        let mut from = i64::MIN;
        for (part, end) in ends.enumerate() {
            let inputs = task.files.iter().filter(|file| file.max_time >= from && file.min_time < end);
            let inputs: Vec<_> = inputs.collect();
            let share = |of: fn(&DataFile) -> u64| {
                inputs.iter().map(|file| of(file) / (1 + task.cuts.len() as u64)).sum::<u64>()
            };
            let (bytes, rows) = (share(|file| file.bytes), share(|file| file.rows).max(1));
            let times = inputs.iter().map(|file| (file.min_time.max(from), file.max_time.min(end - 1)));
            let times = times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
            let Some((first, last)) = times else { continue };
            let (max_seq, min_seq) = inputs.iter().map(|file| file.version()).max().unwrap();
            let outputs =
                if task.output == MergeOutput::Late { 1 } else { bytes.div_ceil(settings.target_bytes).max(1) };
            for n in 0..outputs {
                let path = format!("{tasks}-{part}-{n}");
                let made =
                    DataFile::clone(&sized(&file(&path, first..=last, min_seq..=max_seq), rows, bytes / outputs));
                files.push(Arc::new(DataFile { late: task.output == MergeOutput::Late, ..made }));
            }
            from = end;
        }
    }
    panic!("there is no end to it: {} files", files.len());
}

#[test]
fn a_late_file_over_more_files_than_may_be_open_is_merged_part_by_part() {
    let large = |n: i64, wide: i64| sized(&file(&format!("f{n}"), 100 * n..=100 * n + wide, 1..=1), 1_000, 80);
    // Files that touch, that overlap their neighbours, and that overlap several of them.
    for (columns, wide) in [(4096 / 128, 99), (4096 / 128, 150), (4096 / 10, 99), (4096 / 10, 150), (4096 / 10, 350)] {
        let settings = Settings { open_columns: 4096 / columns, ..SETTINGS };
        let mut files: Vec<_> = (0..300).map(|n| large(n, wide)).collect();
        files.extend([late("l", 50..=29_950, 2..=2), late("k", 10_000..=20_000, 3..=3)]);
        let first = plan(&table(), &files, OVER, &settings).tasks.remove(0);
        assert_eq!((first.files.len(), first.output, first.cuts.len()), (1, MergeOutput::Late, 1));
        let (left, tasks) = settled(files, &settings);
        assert!(left.iter().all(|file| !file.late), "{columns} columns, {wide}: {left:?}");
        assert!(tasks < 200 && left.len() < 300, "{columns} columns, {wide}: {tasks} tasks, {} files", left.len());
    }
}

#[test]
fn a_late_file_of_which_no_part_can_be_merged_stays_and_is_not_rewritten_for_ever() {
    let large = |n: usize| sized(&file(&format!("f{n}"), 0..=1_000, 1..=1), 1_000, 80);
    let mut files: Vec<Arc<DataFile>> = (0..MAX_INPUTS).map(large).collect();
    files.push(late("l", 10..=900, 2..=2));
    assert_eq!(planned(&files, OVER), []);
    files.push(late("k", 500..=990, 3..=3));
    assert_eq!(planned(&files, OVER), [(vec!["l", "k"], MergeOutput::Late)]);
    let fewer: Vec<_> = files.split_off(3);
    assert_eq!(planned(&fewer, OVER).len(), 1);
}

#[test]
fn old_rows_may_go_only_where_every_version_of_them_takes_part() {
    let may_drop_old = |files: &[Arc<DataFile>], now_ns| -> Vec<bool> {
        plan(&table(), files, now_ns, &SETTINGS).tasks.iter().map(|task| task.may_drop_old).collect()
    };
    let on_time = ["a", "b", "c"].map(|path| file(path, 0..=9, 1..=1));
    assert_eq!(may_drop_old(&on_time, 0), [true]);
    // It overlaps a large file, too, and stays outside.
    let large = sized(&file("large", 10..=19, 1..=1), 1_000, 1_000);
    let with_late = [&on_time[..], &[large.clone(), late("l", 5..=15, 2..=2)]].concat();
    assert_eq!(may_drop_old(&with_late, 0), [false]);
    assert_eq!(may_drop_old(&with_late, OVER), [true]);
    let only_late = [large, late("x", 10..=19, 2..=2), late("y", 10..=19, 3..=3), late("z", 10..=19, 4..=4)];
    assert_eq!(may_drop_old(&only_late, 0), [false]);
}

#[test]
fn large_files_wait_for_more_of_their_size() {
    let files = |rows: u64, count: i64| -> Vec<Arc<DataFile>> {
        (0..count).map(|at| sized(&file(&format!("{rows}-{at}"), at..=at, 1..=1), rows, 10)).collect()
    };
    let inputs = |files: &[Arc<DataFile>]| planned(files, 0).first().map_or(0, |(paths, _)| paths.len());
    for (rows, expected) in [
        (LARGE_ROWS - 1, [0, 3, 11, 12, 13]),
        (LARGE_ROWS, [0, 0, 0, 12, 13]),
        (12 * LARGE_ROWS - 1, [0, 0, 0, 12, 13]),
    ] {
        for (count, expected) in [2, 3, 11, 12, 13].into_iter().zip(expected) {
            assert_eq!(inputs(&files(rows, count)), expected, "{count} files of {rows} rows");
        }
    }
    // Neither with smaller ones nor with those that they were merged into.
    let mixed = [files(LARGE_ROWS - 1, 2), files(LARGE_ROWS, 11), files(12 * LARGE_ROWS, 11)].concat();
    assert_eq!(planned(&mixed, 0), []);
    // Columns that may be open at a time are fewer.
    let column = files(1, 1)[0].columns[0].clone();
    let wide: Vec<_> = files(LARGE_ROWS, 5)
        .iter()
        .map(|file| Arc::new(DataFile { columns: vec![column.clone(); 1024], ..DataFile::clone(file) }))
        .collect();
    assert_eq!(inputs(&wide), 4);
}

#[test]
fn large_files_in_order_of_time_alone_are_left_as_they_are_unless_they_are_many() {
    let appended = TableSchema { has_primary_key: false, ..table() };
    let files = |rows: u64, count: usize| -> Vec<Arc<DataFile>> {
        (0_i64..).take(count).map(|at| sized(&file(&format!("{rows}-{at}"), at..=at, 1..=1), rows, 10)).collect()
    };
    let inputs = |files: &[Arc<DataFile>], now_ns| {
        plan(&appended, files, now_ns, &SETTINGS).tasks.first().map_or(0, |task| task.files.len())
    };
    // While the day takes points, and when it is over.
    for (rows, count, expected) in [
        (LARGE_ROWS - 1, 2, [0, 2]),
        (LARGE_ROWS - 1, 3, [3, 3]),
        (LARGE_ROWS, 100, [0, 0]),
        (LARGE_ROWS, MAX_LEFT_ALONE, [0, 0]),
        (LARGE_ROWS, MAX_LEFT_ALONE + 1, [MAX_INPUTS; 2]),
    ] {
        let files = files(rows, count);
        assert_eq!([0, OVER].map(|now_ns| inputs(&files, now_ns)), expected, "{count} files of {rows} rows");
    }
    // The small ones beside them are merged with each other.
    let mixed = [files(LARGE_ROWS, 100), files(5, 3)].concat();
    assert_eq!([0, OVER].map(|now_ns| inputs(&mixed, now_ns)), [3, 3]);
}

#[test]
fn a_day_that_is_over_is_rewritten_once_more_and_then_left_alone() {
    let small = |path, at: i64| file(path, at..=at, 1..=1);
    let large = |path, at: i64| sized(&small(path, at), 80, 80);
    let cases = [
        (vec![small("a", 1)], vec![]),
        (vec![large("a", 1), large("b", 2)], vec![]),
        (vec![large("a", 1), small("b", 2)], vec![]),
        (vec![small("a", 1), small("b", 2)], on_time(&["a", "b"])),
        (vec![small("a", 1), large("b", 2), small("c", 3)], on_time(&["a", "c"])),
        (vec![large("a", 1), large("b", 2), late("l", 2..=3, 2..=2)], on_time(&["b", "l"])),
        (vec![large("a", 1), late("l", 5..=6, 2..=2)], on_time(&["l"])),
    ];
    for (files, expected) in cases {
        assert_eq!(planned(&files, OVER), expected, "{files:?}");
        let early = plan(&table(), &files, OVER - 1, &SETTINGS);
        assert_eq!(early, CompactionPlan { tasks: vec![], next_due_ns: (!expected.is_empty()).then_some(OVER) });
    }
}

#[test]
fn a_day_of_many_rows_is_rewritten_into_files_that_follow_each_other_in_time() {
    const HOURS: i64 = 24;
    let settings = Settings { target_bytes: 1 << 30, slice_rows: 100, ..SETTINGS };
    let hour = |n: i64, wide: i64, rows| sized(&file(&format!("h{n}"), 10 * n..=10 * n + wide, 1..=1), rows, 1);
    let hours = |wide, rows| (0..HOURS).map(|n| hour(n, wide, rows)).collect::<Vec<_>>();
    let ends = |files: &[Arc<DataFile>]| {
        let mut ends: Vec<_> = files.iter().map(|file| (file.min_time, file.max_time)).collect();
        ends.sort_unstable();
        ends
    };
    // So few rows that one file has all of them; slices of just enough; ends that overlap; as many
    // slices as there may be.
    for (wide, rows, expected) in [
        (9, 4, vec![(0, 239)]),
        (9, 15, vec![(0, 69), (70, 139), (140, 209), (210, 239)]),
        (12, 15, vec![(0, 72), (70, 142), (140, 212), (210, 242)]),
        (9, 200, (0..8).map(|n| (30 * n, 30 * n + 29)).collect()),
    ] {
        let (left, tasks) = settled(hours(wide, rows), &settings);
        assert_eq!(ends(&left), expected, "{wide} {rows}");
        assert_eq!(tasks, expected.len(), "each is written once");
    }
    // Files that have all times of the day are one slice, whatever their rows.
    let whole: Vec<_> = (0..4).map(|n| sized(&file(&format!("w{n}"), n..=239, 1..=1), 500, 1)).collect();
    assert_eq!(ends(&settled(whole, &settings).0), [(0, 239)]);
}

#[test]
fn late_files_rewrite_only_the_times_that_they_overlap() {
    let settings = Settings { target_bytes: 1 << 30, slice_rows: 100, ..SETTINGS };
    let mut files: Vec<_> =
        (0..4).map(|n| sized(&file(&format!("s{n}"), 60 * n..=60 * n + 59, 1..=1), 100, 1)).collect();
    files.push(late("l", 55..=65, 2..=2));
    let task = plan(&table(), &files, OVER, &settings).tasks.remove(0);
    let paths: Vec<&str> = task.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((paths, task.cuts, task.output), (vec!["s0", "s1", "l"], vec![60], MergeOutput::OnTime));
    let (left, _) = settled(files, &settings);
    assert_eq!(left.iter().filter(|file| file.path.starts_with('s')).count(), 2, "{left:?}");
    assert!(left.iter().all(|file| !file.late) && left.len() == 4, "{left:?}");
}

#[test]
fn a_day_that_still_gets_points_waits() {
    let written_ms = u64::try_from(DAY_NS / 1_000_000).unwrap() + 7;
    let path = format!("data/d/t/day=1970-01-01/{}.parquet", ulid::Ulid::from_parts(written_ms, 0));
    let files = [file("a", 0..=1, 1..=1), file(&path, 0..=1, 2..=2)];
    let due_ns = DAY_NS + 7_000_000 + SETTINGS.quiet_ns;
    assert_eq!(
        plan(&table(), &files, due_ns - 1, &SETTINGS),
        CompactionPlan { tasks: vec![], next_due_ns: Some(due_ns) }
    );
    assert_eq!(plan(&table(), &files, due_ns, &SETTINGS).tasks.len(), 1);
}

#[test]
fn days_are_apart_and_a_file_without_order_keeps_its_day_as_it_is() {
    let mut files: Vec<_> = (0..3).map(|i| file(["a", "b", "c"][i], 0..=1, 1..=1)).collect();
    let other_day = DAY_NS..=DAY_NS + 1;
    files.extend(["d", "e", "f"].map(|path| file(path, other_day.clone(), 1..=1)));
    let paths: Vec<_> = planned(&files, 0).into_iter().map(|(paths, _)| paths).collect();
    assert_eq!(paths, [["a", "b", "c"], ["d", "e", "f"]]);
    let unsorted = DataFile { sorted_by: Vec::new(), ..DataFile::clone(&files[0]) };
    files.push(Arc::new(unsorted));
    assert_eq!(planned(&files, OVER), [(vec!["d", "e", "f"], MergeOutput::OnTime)]);
}

#[test]
fn a_task_opens_no_more_columns_than_it_may() {
    let column = file("a", 0..=1, 1..=1).columns[0].clone();
    for (columns, inputs) in [(1, MAX_INPUTS), (100, 40), (SETTINGS.open_columns, 2)] {
        let wide = |at: i64| {
            let columns = vec![column.clone(); columns];
            Arc::new(DataFile { columns, ..DataFile::clone(&file(&at.to_string(), at..=at, 1..=1)) })
        };
        let files: Vec<_> = (0..200).map(wide).collect();
        for now_ns in [0, OVER] {
            assert_eq!(plan(&table(), &files, now_ns, &SETTINGS).tasks[0].files.len(), inputs, "{columns} columns");
        }
    }
}
