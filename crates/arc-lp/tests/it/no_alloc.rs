//! Parsing allocates nothing, whatever the input: counted by the allocator itself.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use arc_lp::{Backslash, Chunks, Dialect, Error, FieldValue, LineWriter, ResumableSink, Series, Sink, Text, Utf8};

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator can only be written in unsafe code")]
// SAFETY: every call goes to the system's allocator unchanged; counting touches a thread-local that
// needs no allocation and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above with the same layout, so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Adds up something of everything, so that nothing can be left out.
#[derive(Default)]
struct Sum(u64);

impl<'a> Sink<'a> for Sum {
    fn series(&mut self, line: u64, series_key: &'a [u8]) -> Series {
        self.0 += line + series_key.len() as u64;
        Series::Unknown
    }
    fn measurement(&mut self, name: Text<'a>) {
        self.0 += name.unescaped_len() as u64;
    }
    fn tag(&mut self, key: Text<'a>, value: Text<'a>) {
        self.0 += (key.chars().count() + value.chars().count()) as u64;
    }
    fn field(&mut self, key: Text<'a>, value: FieldValue<'a>) {
        self.0 += key.raw().len() as u64;
        if let FieldValue::String(text) = value {
            self.0 += text.unescape_into(&mut [0; 64]).map_or(0, str::len) as u64;
        }
    }
    fn point(&mut self, timestamp: Option<i64>) {
        self.0 += u64::from(timestamp.is_some());
    }
    fn error(&mut self, error: Error) {
        self.0 += error.offset() as u64;
    }
}

impl<'a> ResumableSink<'a> for Sum {
    fn unfinished(&mut self) {
        self.0 += 1;
    }
}

#[test]
fn good_and_bad_records_are_parsed_without_an_allocation() {
    let input = concat!(
        "cpu,host=a\\ b,région=à usage=12.345678901234567,n=-3i,u=7u,ok=t,s=\"x \\\"y\\\" z\" 1\n",
        "# comment\n\nbad\nm a=1e999\nm,t= a=1\nm a=\"never closed",
    );
    let mut sum = Sum::default();
    assert_eq!(
        allocations(|| {
            arc_lp::parse(input.as_bytes(), &mut sum);
        }),
        0
    );
    assert!(sum.0 > 0);

    let mut parts = 0;
    let pull = || {
        for point in arc_lp::points(input.as_bytes()).flatten() {
            parts += point.tags().count() + point.fields().count();
        }
    };
    assert_eq!(allocations(pull), 0);
    assert_eq!(parts, 7);

    let mut scratch = [arc_lp::Token::default(); 8];
    let split = || {
        let mut points = arc_lp::split_points(input.as_bytes(), &mut scratch);
        while let Some(point) = points.next_point() {
            parts += point.map_or(0, |point| point.tags().len() + point.fields().len());
        }
    };
    assert_eq!(allocations(split), 0);
    assert_eq!(parts, 14);

    let lossy = Dialect::new().utf8(Utf8::Lossy).backslash(Backslash::Keep);
    let with_dialect = || _ = arc_lp::parse_with(b"m\xff\\\\,t=\xfe f=\"\xfd\" 1\nm f=1\n", lossy, &mut sum);
    assert_eq!(allocations(with_dialect), 0);

    let in_pieces = || {
        let (first, second) = input.as_bytes().split_at(90);
        let mut chunks = Chunks::new();
        let done = chunks.parse(first, &mut sum);
        assert!(done > 0);
        _ = chunks.finish(second, &mut sum);
    };
    assert_eq!(allocations(in_pieces), 0);

    let mut buffer = [0; 256];
    let written = || {
        let mut writer = LineWriter::new(&mut buffer);
        for point in arc_lp::points(input.as_bytes()).flatten() {
            let mut line = writer.line(point.measurement()).unwrap();
            for (key, value) in point.fields() {
                line.field(key, value).unwrap();
            }
            line.end(point.timestamp()).unwrap();
        }
    };
    assert_eq!(allocations(written), 0);

    // The counter does count.
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}
