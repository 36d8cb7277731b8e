use super::*;
use crate::buffer::SeriesId;

fn rows(points: &[(SeriesId, i64)]) -> Rows {
    let mut rows = Rows::default();
    for (series, time) in points {
        rows.end_row(*time, Some(*series));
    }
    rows
}

fn times(parts: &[Part], late: bool) -> Vec<i64> {
    let of_kind = parts.iter().filter(|part| part.late == late);
    of_kind.flat_map(|part| &part.chunks).flat_map(|chunk| chunk.time.iter().copied()).collect()
}

#[test]
fn rows_that_a_query_came_for_are_copied_once_at_most() {
    let mut buffer = TableBuffer::new(None);
    let many = i64::try_from(SHOWN_BYTES / 12).unwrap();
    let mut shown = Vec::new();
    for (first, count, is_kept) in [(0, 5, false), (5, many, true), (5 + many, 5, false)] {
        let points: Vec<_> = (first..first + count).map(|time| (1, time)).collect();
        for points in points.chunks(1_000) {
            buffer.append(SequenceNumber(1), rows(points)).unwrap();
        }
        let [one, two] = [(); 2].map(|()| buffer.snapshot().unwrap());
        let expected: Vec<i64> = (0..first + count).collect();
        assert_eq!((times(&one, false), times(&two, false)), (expected.clone(), expected));
        let last = |parts: &[Part]| parts.last().unwrap().chunks.last().map(Arc::clone).unwrap();
        assert_eq!(Arc::ptr_eq(&last(&one), &last(&two)), is_kept, "{first}");
        shown.push(one);
    }
    // What a query has got stays as it was.
    assert_eq!(times(&shown[0], false), [0, 1, 2, 3, 4]);
}

#[test]
fn rows_not_newer_than_their_series_are_late() {
    let mut buffer = TableBuffer::new(None);
    buffer.append(SequenceNumber(1), rows(&[(0, 10), (1, 5), (0, 10), (0, 11), (1, 4)])).unwrap();
    let parts = buffer.snapshot().unwrap();
    assert_eq!(times(&parts, false), [10, 5, 11]);
    assert_eq!(times(&parts, true), [10, 4]);
    assert_eq!(buffer.newest, [11, 5]);
}

#[test]
fn after_a_restart_rows_within_the_files_time_are_late() {
    let mut buffer = TableBuffer::new(Some(100));
    buffer.append(SequenceNumber(1), rows(&[(7, 100), (7, 101)])).unwrap();
    assert_eq!(times(&buffer.snapshot().unwrap(), true), [100]);
}

#[test]
fn freeze_keeps_rows_visible_until_they_are_forgotten() {
    let mut buffer = TableBuffer::new(None);
    buffer.append(SequenceNumber(3), rows(&[(0, 1)])).unwrap();
    buffer.freeze().unwrap();
    buffer.freeze().unwrap();
    buffer.append(SequenceNumber(4), rows(&[(0, 2)])).unwrap();
    assert_eq!(times(&buffer.snapshot().unwrap(), false), [1, 2]);
    assert_eq!(buffer.frozen().len(), 1);
    assert_eq!(buffer.frozen()[0].max_seq, SequenceNumber(3));
    assert!(buffer.forget(1) > 0);
    assert_eq!(times(&buffer.snapshot().unwrap(), false), [2]);
    assert_eq!(buffer.rows(), 1);
}

#[test]
fn memory_is_kept_where_rows_come_to_use_it() {
    let mut buffer = TableBuffer::new(None);
    let mut next = 0;
    let mut fill = |buffer: &mut TableBuffer, chunks: usize| {
        for _ in 0..chunks * 8 {
            let points: Vec<_> = (0..i64::try_from(CHUNK_ROWS / 8).unwrap()).map(|n| (0, next + n)).collect();
            next += i64::try_from(points.len()).unwrap();
            buffer.append(SequenceNumber(1), rows(&points)).unwrap();
        }
    };
    // Chunks before and during each flush, which the next one flushes as well, and those that there
    // is space for at its end. Of what came during it the last one is still the tail.
    for (before, during, kept) in [(4, 0, 0), (4, 1, 0), (4, 2, 5), (2, 1, 0), (4, 2, 5), (2, 2, 4), (1, 2, 3)] {
        fill(&mut buffer, before);
        buffer.freeze().unwrap();
        fill(&mut buffer, during);
        let frozen = buffer.frozen().to_vec();
        buffer.forget(frozen.len());
        let flushed = frozen.into_iter().filter_map(Arc::into_inner).flat_map(FrozenBuffer::into_chunks);
        buffer.recycle(flushed.collect());
        let spare = &buffer.main.spare;
        assert_eq!(spare.len(), kept, "{before}, {during}");
        let has_capacity = |rows: &Rows| rows.time.capacity().min(rows.series.capacity()) >= CHUNK_ROWS / 2;
        assert!(spare.iter().all(has_capacity));
        let left: Vec<i64> = times(&buffer.snapshot().unwrap(), false);
        assert_eq!(left.len(), during * CHUNK_ROWS);
        assert!(left.is_sorted_by(|a, b| a + 1 == *b));
    }
}

#[test]
fn large_writes_and_full_tails_become_chunks() {
    let mut buffer = TableBuffer::new(None);
    let mut next = 0;
    for size in [10, WHOLE_ROWS, 3, CHUNK_ROWS / 8] {
        let points: Vec<_> = (0..size)
            .map(|_| {
                next += 1;
                (0, next)
            })
            .collect();
        buffer.append(SequenceNumber(1), rows(&points)).unwrap();
    }
    let expected: Vec<i64> = (1..=next).collect();
    assert_eq!(times(&buffer.snapshot().unwrap(), false), expected);
}

#[test]
fn a_buffer_that_has_lost_rows_is_never_frozen_nor_shown() {
    type Work = fn(&mut TableBuffer) -> Result<()>;
    let works: [Work; 2] = [TableBuffer::freeze, |buffer| buffer.snapshot().map(drop)];
    for first in works {
        let mut buffer = TableBuffer::new(None);
        buffer.append(SequenceNumber(1), rows(&[(1, 1)])).unwrap();
        buffer.freeze().unwrap();
        for rows in rows_that_cannot_be_sealed(2) {
            buffer.append(SequenceNumber(2), rows).unwrap();
        }
        assert!(first(&mut buffer).is_err());
        for work in works {
            assert!(work(&mut buffer).is_err());
        }
        assert!(buffer.append(SequenceNumber(3), rows(&[(1, 1_000)])).is_err());
        assert!(buffer.freeze().is_err());
        assert_eq!(buffer.frozen_up_to(SequenceNumber(9)).len(), 1, "what was frozen before can be flushed");
    }
}

#[test]
fn small_days_are_those_whose_share_is_small() {
    let mut buffer = TableBuffer::new(None);
    let day = 86_400_000_000_000;
    let mut points: Vec<(SeriesId, i64)> = (0..1_000).map(|n| (1, n)).collect();
    points.extend((1..=50).map(|n| (1, n * day)));
    // Late rows are of their days.
    points.extend([(1, 5), (1, day), (1, -1)]);
    buffer.append(SequenceNumber(1), rows(&points)).unwrap();
    buffer.freeze().unwrap();
    let frozen = &buffer.frozen()[0];
    assert_eq!(frozen.small_days(frozen.bytes_of(2)), 51);
    assert_eq!(frozen.small_days(frozen.bytes_of(1_001)), 52);
    assert_eq!(frozen.small_days(0), 0);
}
