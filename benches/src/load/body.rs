//! Request bodies with holes for their timestamps.
//!
//! A body is written once; before each sending only the bytes of its timestamps change, which are
//! of one length. Never sends the same time twice: that is its caller's clock.

use std::io;

use rmp::encode;

use super::{
    options::{Kind, Shape},
    rows::{Row, Value},
};

/// Nanoseconds between two ticks. 100 hosts at a million points a second then report in about real
/// time, so that a run stays in one day.
pub const TICK_NS: i64 = 100_000;

/// A time is 19 digits from 2001 to 2286.
const DIGITS: usize = 19;

/// How a body holds its timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    /// 19 decimal digits.
    Digits,
    /// Eight bytes, the highest first, after a MessagePack marker that stays.
    BigEndian,
}

/// Where a timestamp goes and which it is.
#[derive(Debug, Clone, Copy)]
struct Slot {
    at: usize,
    tick: u32,
}

/// A body whose timestamps can be set.
#[derive(Debug, Clone)]
pub(super) struct Template {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    time: Time,
}

impl Template {
    /// Writes `rows` as `kind`; every timestamp is a hole until [`at`](Self::at).
    pub(super) fn new(kind: Kind, shape: Shape, rows: &[Row<'_>]) -> io::Result<Self> {
        match kind {
            Kind::Lp => Ok(Self::lp(shape, rows)),
            Kind::MsgpackColumnar => Self::columnar(shape, rows),
            Kind::MsgpackRow => Self::row_wise(shape, rows),
        }
    }

    /// Sets the timestamps, that of tick 0 to `base_ns`, and returns the bytes.
    pub(super) fn at(&mut self, base_ns: i64) -> &[u8] {
        // Rows of one tick follow each other, so that each time is written out once.
        let mut tick = None;
        let mut time = [0; DIGITS];
        for slot in &self.slots {
            if tick != Some(slot.tick) {
                tick = Some(slot.tick);
                time = self.time.write(base_ns + i64::from(slot.tick) * TICK_NS);
            }
            let len = self.time.len();
            if let (Some(hole), Some(time)) = (self.bytes.get_mut(slot.at..slot.at + len), time.get(..len)) {
                hole.copy_from_slice(time);
            }
        }
        &self.bytes
    }

    fn empty(time: Time, rows: &[Row<'_>]) -> Self {
        Self { bytes: Vec::with_capacity(rows.len() * 100), slots: Vec::with_capacity(rows.len()), time }
    }

    fn hole(&mut self, tick: u32) {
        self.slots.push(Slot { at: self.bytes.len(), tick });
        self.bytes.resize(self.bytes.len() + self.time.len(), b'0');
    }

    fn lp(shape: Shape, rows: &[Row<'_>]) -> Self {
        let mut body = Self::empty(Time::Digits, rows);
        for row in rows {
            body.bytes.extend_from_slice(shape.table().as_bytes());
            for (key, value) in shape.tags().iter().zip(row.tags) {
                body.bytes.extend_from_slice(format!(",{key}={value}").as_bytes());
            }
            let mut before = ' ';
            for (key, value) in shape.fields().iter().zip(&row.values) {
                let text = match value {
                    Value::Float(value) => format!("{before}{key}={value}"),
                    Value::Whole(value) => format!("{before}{key}={value}i"),
                };
                body.bytes.extend_from_slice(text.as_bytes());
                before = ',';
            }
            body.bytes.push(b' ');
            body.hole(row.tick);
            body.bytes.push(b'\n');
        }
        body
    }

    fn columnar(shape: Shape, rows: &[Row<'_>]) -> io::Result<Self> {
        let mut body = Self::empty(Time::BigEndian, rows);
        let count = length(rows.len())?;
        encode::write_map_len(&mut body.bytes, 2)?;
        encode::write_str(&mut body.bytes, "m")?;
        encode::write_str(&mut body.bytes, shape.table())?;
        encode::write_str(&mut body.bytes, "columns")?;
        encode::write_map_len(&mut body.bytes, length(1 + shape.tags().len() + shape.fields().len())?)?;
        encode::write_str(&mut body.bytes, "time")?;
        encode::write_array_len(&mut body.bytes, count)?;
        for row in rows {
            body.msgpack_time(row.tick)?;
        }
        for (index, key) in shape.tags().iter().enumerate() {
            encode::write_str(&mut body.bytes, key)?;
            encode::write_array_len(&mut body.bytes, count)?;
            for tag in rows.iter().filter_map(|row| row.tags.get(index)) {
                encode::write_str(&mut body.bytes, tag)?;
            }
        }
        for (index, key) in shape.fields().iter().enumerate() {
            encode::write_str(&mut body.bytes, key)?;
            encode::write_array_len(&mut body.bytes, count)?;
            for value in rows.iter().filter_map(|row| row.values.get(index)) {
                body.msgpack_value(*value)?;
            }
        }
        Ok(body)
    }

    fn row_wise(shape: Shape, rows: &[Row<'_>]) -> io::Result<Self> {
        let mut body = Self::empty(Time::BigEndian, rows);
        encode::write_array_len(&mut body.bytes, length(rows.len())?)?;
        for row in rows {
            encode::write_map_len(&mut body.bytes, 4)?;
            encode::write_str(&mut body.bytes, "m")?;
            encode::write_str(&mut body.bytes, shape.table())?;
            encode::write_str(&mut body.bytes, "t")?;
            body.msgpack_time(row.tick)?;
            encode::write_str(&mut body.bytes, "fields")?;
            encode::write_map_len(&mut body.bytes, length(shape.fields().len())?)?;
            for (key, value) in shape.fields().iter().zip(&row.values) {
                encode::write_str(&mut body.bytes, key)?;
                body.msgpack_value(*value)?;
            }
            encode::write_str(&mut body.bytes, "tags")?;
            encode::write_map_len(&mut body.bytes, length(shape.tags().len())?)?;
            for (key, value) in shape.tags().iter().zip(row.tags) {
                encode::write_str(&mut body.bytes, key)?;
                encode::write_str(&mut body.bytes, value)?;
            }
        }
        Ok(body)
    }

    fn msgpack_time(&mut self, tick: u32) -> io::Result<()> {
        encode::write_i64(&mut self.bytes, i64::MAX)?;
        self.bytes.truncate(self.bytes.len() - size_of::<i64>());
        self.hole(tick);
        Ok(())
    }

    fn msgpack_value(&mut self, value: Value) -> io::Result<()> {
        match value {
            Value::Float(value) => encode::write_f64(&mut self.bytes, value)?,
            Value::Whole(value) => drop(encode::write_sint(&mut self.bytes, value)?),
        }
        Ok(())
    }
}

impl Time {
    const fn len(self) -> usize {
        match self {
            Self::Digits => DIGITS,
            Self::BigEndian => size_of::<i64>(),
        }
    }

    /// Returns the bytes of `time_ns`; those after [`len`](Self::len) mean nothing.
    fn write(self, time_ns: i64) -> [u8; DIGITS] {
        let mut out = [b'0'; DIGITS];
        match self {
            Self::Digits => {
                let mut rest = time_ns.unsigned_abs();
                for byte in out.iter_mut().rev() {
                    *byte = b'0' + u8::try_from(rest % 10).unwrap_or(0);
                    rest /= 10;
                }
            }
            Self::BigEndian => out.iter_mut().zip(time_ns.to_be_bytes()).for_each(|(to, from)| *to = from),
        }
        out
    }
}

fn length(len: usize) -> io::Result<u32> {
    u32::try_from(len).map_err(|_| io::Error::other("more points in a request than MessagePack can count"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::load::rows::Rows;

    const BASE_NS: i64 = 1_767_225_600_000_000_000;

    fn template(kind: Kind, shape: Shape, count: u32) -> Template {
        let mut rows = Rows::new(shape, 0..100, 42, 0);
        Template::new(kind, shape, &rows.take(count)).unwrap()
    }

    fn times(text: &[u8]) -> Vec<i64> {
        arc_lp::points(text).map(|point| point.unwrap().timestamp().unwrap()).collect()
    }

    #[test]
    fn only_the_timestamps_change() {
        let mut body = template(Kind::Lp, Shape::Short, 250);
        let first = times(body.at(BASE_NS));
        let second = times(body.at(BASE_NS + 7));
        assert_eq!(first.len(), 250);
        assert_eq!(first[0], BASE_NS);
        assert_eq!(first[249], BASE_NS + 2 * TICK_NS);
        assert!(first.iter().zip(&second).all(|(first, second)| first + 7 == *second));
    }

    #[test]
    fn no_two_points_of_a_body_are_one() {
        let mut body = template(Kind::Lp, Shape::Iot, 1000);
        let text = body.at(BASE_NS).to_vec();
        let points: BTreeSet<_> = arc_lp::points(&text)
            .map(|point| point.map(|point| (point.series_key().to_vec(), point.timestamp())).unwrap())
            .collect();
        assert_eq!(points.len(), 1000);
    }

    #[test]
    fn bodies_have_the_sizes_of_the_targets() {
        // (kind, shape, least and greatest bytes a point)
        let cases = [
            (Kind::Lp, Shape::Short, 80, 92),
            (Kind::Lp, Shape::Tsbs, 325, 360),
            (Kind::MsgpackColumnar, Shape::Iot, 42, 48),
            (Kind::MsgpackColumnar, Shape::Tsbs, 80, 95),
        ];
        for (kind, shape, least, greatest) in cases {
            let size = template(kind, shape, 1000).at(BASE_NS).len() / 1000;
            assert!((least..=greatest).contains(&size), "{kind} {shape}: {size}");
        }
    }

    #[test]
    fn messagepack_times_are_64_bit_integers() {
        for kind in [Kind::MsgpackColumnar, Kind::MsgpackRow] {
            let mut body = template(kind, Shape::Iot, 2);
            let marked: Vec<u8> = [&[0xd3], BASE_NS.to_be_bytes().as_slice()].concat();
            let bytes = body.at(BASE_NS);
            assert_eq!(bytes.windows(9).filter(|window| *window == marked).count(), 2, "{kind}");
        }
    }
}
