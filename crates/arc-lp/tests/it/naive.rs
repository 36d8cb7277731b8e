//! The grammar once more, written for reading: byte by byte, copying, slow.
//!
//! Shares no code with the crate. Each step cites the point of the dialect it follows, as numbered
//! in the crate's documentation.

use crate::collect::{
    Outcome, Record, Value, assert_small_scratch, pulled_with, pushed_with, pushed_with_cache, split_with,
};
use arc_lp::{Backslash, Dialect, Utf8};

/// The part of the record that is wrong, and the offset after which the next line feed is sought.
type Bad = (&'static str, usize);

/// A good record, or the line and the part that is wrong.
pub(crate) type Naive = Result<Record, (u64, &'static str)>;

/// The two switches: names keep two backslashes, text need not be UTF-8.
#[derive(Copy, Clone, Default)]
pub(crate) struct Rules {
    keeps_backslashes: bool,
    is_lossy: bool,
}

pub(crate) fn parse(input: &[u8], rules: Rules) -> Vec<Naive> {
    let mut outcomes = Vec::new();
    let mut at = 0;
    while at < input.len() {
        match input[at] {
            // 3: blanks in front of a record, blank lines, comments.
            b' ' | b'\t' | b'\n' => at += 1,
            b'\r' if line_ends(input, at) => at += 1,
            b'#' => at = behind_line_feed(input, at),
            _ => {
                let line = 1 + count_line_feeds(&input[..at]);
                match record(input, at, line, rules) {
                    Ok((record, end)) => {
                        outcomes.push(Ok(record));
                        at = end;
                    }
                    // 12: go on after the next line feed.
                    Err((part, offset)) => {
                        outcomes.push(Err((line, part)));
                        at = behind_line_feed(input, offset);
                    }
                }
            }
        }
    }
    outcomes
}

fn behind_line_feed(input: &[u8], from: usize) -> usize {
    (from..input.len()).find(|&at| input[at] == b'\n').map_or(input.len(), |at| at + 1)
}

fn count_line_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// 2: LF, CR LF, CR at the end of input, the end of input.
fn line_ends(input: &[u8], at: usize) -> bool {
    match input.get(at) {
        None | Some(b'\n') => true,
        Some(b'\r') => matches!(input.get(at + 1), None | Some(b'\n')),
        _ => false,
    }
}

fn is(input: &[u8], at: usize, byte: u8) -> bool {
    !line_ends(input, at) && input.get(at) == Some(&byte)
}

fn skip_spaces(input: &[u8], mut at: usize) -> usize {
    while is(input, at, b' ') {
        at += 1;
    }
    at
}

/// 1: `measurement[,tag=value]* SP+ field=value[,field=value]* [SP+ timestamp] SP*`.
fn record(input: &[u8], start: usize, line: u64, rules: Rules) -> Result<(Record, usize), Bad> {
    let mut record = Record { line, ..Record::default() };
    let (measurement, mut at) = name(input, start, "measurement", b", ", rules)?;
    record.measurement = measurement;
    while is(input, at, b',') {
        let (key, equals) = name(input, at + 1, "tag", b"=, ", rules)?;
        if !is(input, equals, b'=') {
            return Err(("tag", equals));
        }
        let (value, end) = name(input, equals + 1, "tag", b", ", rules)?;
        record.tags.push((key, value));
        at = end;
    }
    record.series_key = input[start..at].to_vec();
    if line_ends(input, at) {
        return Err(("field", at));
    }
    at = skip_spaces(input, at);
    loop {
        let (key, equals) = name(input, at, "field", b"=, ", rules)?;
        if !is(input, equals, b'=') {
            return Err(("field", equals));
        }
        let (value, end) = value(input, equals + 1, rules)?;
        record.fields.push((key, value));
        at = end;
        // 10: after a comma another field must follow.
        if !is(input, at, b',') {
            break;
        }
        at += 1;
    }
    at = skip_spaces(input, at);
    if !line_ends(input, at) {
        let end = (at..).find(|&end| line_ends(input, end) || input[end] == b' ').unwrap();
        record.timestamp = Some(integer(&input[at..end]).ok_or(("timestamp", at))?);
        at = skip_spaces(input, end);
        if !line_ends(input, at) {
            return Err(("timestamp", at));
        }
    }
    Ok((record, behind_line_feed(input, at)))
}

/// 4, 5, 6: a name that is not empty, up to a byte of `ends` that has no backslash in front.
fn name(input: &[u8], start: usize, part: &'static str, ends: &[u8], rules: Rules) -> Result<(String, usize), Bad> {
    let plain = |byte: &u8| match byte {
        b'\\' => !rules.keeps_backslashes,
        b'=' => part != "measurement",
        _ => matches!(byte, b',' | b' '),
    };
    let mut text = Vec::new();
    let mut at = start;
    while !line_ends(input, at) && !ends.contains(&input[at]) {
        if input[at] == b'\\' && input.get(at + 1).is_some_and(plain) {
            at += 1;
        }
        text.push(input[at]);
        at += 1;
    }
    if at == start {
        return Err((part, at));
    }
    // The first byte that is wrong decides.
    let is_control = |byte: &u8| *byte == b'\t' || (*byte == 0 && part == "measurement");
    let control = text.iter().position(is_control);
    if !rules.is_lossy && std::str::from_utf8(&text[..control.unwrap_or(text.len())]).is_err() {
        return Err(("utf8", start));
    }
    if control.is_some() {
        return Err((part, start));
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), at))
}

fn value(input: &[u8], start: usize, rules: Rules) -> Result<(Value, usize), Bad> {
    if is(input, start, b'"') {
        return string(input, start, rules);
    }
    // 8: up to a comma, a space or the end of the record.
    let end = (start..).find(|&at| line_ends(input, at) || matches!(input[at], b',' | b' ')).unwrap();
    Ok((bare_value(&input[start..end]).ok_or(("value", start))?, end))
}

/// 7: up to a quote that has no backslash escape; two escapes.
fn string(input: &[u8], start: usize, rules: Rules) -> Result<(Value, usize), Bad> {
    let mut text = Vec::new();
    let mut at = start + 1;
    loop {
        match (input.get(at), input.get(at + 1)) {
            (None, _) => return Err(("string", input.len())),
            (Some(b'"'), _) => break,
            (Some(b'\\'), Some(&plain @ (b'"' | b'\\'))) => {
                text.push(plain);
                at += 2;
            }
            (Some(&byte), _) => {
                text.push(byte);
                at += 1;
            }
        }
    }
    if !rules.is_lossy && std::str::from_utf8(&text).is_err() {
        return Err(("utf8", at));
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    at += 1;
    if !line_ends(input, at) && !matches!(input[at], b',' | b' ') {
        return Err(("value", at));
    }
    Ok((Value::String(text), at))
}

fn bare_value(bytes: &[u8]) -> Option<Value> {
    match bytes {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => return Some(Value::Boolean(true)),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => return Some(Value::Boolean(false)),
        [number @ .., b'i'] => return Some(Value::Integer(integer(number)?)),
        [number @ .., b'u'] => {
            let value = if number.first() == Some(&b'-') { None } else { wide_integer(number) };
            return Some(Value::Unsigned(u64::try_from(value?).ok()?));
        }
        _ => {}
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let number = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        None => (number, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = [whole, fraction].concat() != "" && !exponent.is_empty();
    if !has_digits || !is_digits(whole) || !is_digits(fraction) || !is_digits(exponent) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Value::Float(value.to_bits()))
}

/// 9: `-?[0-9]+` in 64 bits.
fn integer(bytes: &[u8]) -> Option<i64> {
    i64::try_from(wide_integer(bytes)?).ok()
}

fn wide_integer(bytes: &[u8]) -> Option<i128> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let significant = digits.iter().position(|&digit| digit != b'0').unwrap_or(digits.len() - 1);
    // More digits than any 64-bit number has.
    let text = std::str::from_utf8(digits[significant..].get(..30).unwrap_or(&digits[significant..]));
    let value: i128 = text.ok()?.parse().ok()?;
    Some(if bytes.len() > digits.len() { -value } else { value })
}

/// Asserts that every face says what the naive parser says, in every dialect in which the input may
/// mean something else.
pub(crate) fn assert_agrees(input: &[u8]) {
    assert_agrees_with(input, Dialect::new(), Rules::default());
    let keeps_backslashes = input.windows(2).any(|pair| pair == b"\\\\");
    let is_lossy = std::str::from_utf8(input).is_err();
    let (keep, lossy) = (Dialect::new().backslash(Backslash::Keep), Dialect::new().utf8(Utf8::Lossy));
    if keeps_backslashes {
        assert_agrees_with(input, keep, Rules { keeps_backslashes, is_lossy: false });
    }
    if is_lossy {
        assert_agrees_with(input, lossy, Rules { is_lossy, keeps_backslashes: false });
    }
    if keeps_backslashes && is_lossy {
        assert_agrees_with(input, keep.utf8(Utf8::Lossy), Rules { keeps_backslashes, is_lossy });
    }
}

fn assert_agrees_with(input: &[u8], dialect: Dialect, rules: Rules) {
    let expected = parse(input, rules);
    let coarse = |outcomes: &[Outcome]| -> Vec<Naive> {
        outcomes
            .iter()
            .map(|outcome| match outcome {
                Ok(record) => Ok(record.clone()),
                Err(error) => {
                    assert!(error.offset() <= input.len());
                    assert!(error.column(input) > 0);
                    Err((error.line(), error.kind().part()))
                }
            })
            .collect()
    };
    let pushed = pushed_with(input, dialect);
    assert_eq!(coarse(&pushed), expected, "{dialect:?} {:?}", String::from_utf8_lossy(input));
    assert_eq!(pulled_with(input, dialect), pushed);
    // A tag takes four bytes, a field as many.
    assert_eq!(split_with(input, dialect, input.len() / 4 + 1), pushed);
    assert_small_scratch(input, dialect, &pushed);
    let without_series = |outcomes: Vec<Outcome>| -> Vec<Outcome> {
        let strip = |record: Record| Record { measurement: String::new(), tags: vec![], ..record };
        outcomes.into_iter().map(|outcome| outcome.map(strip)).collect()
    };
    assert_eq!(without_series(pushed_with_cache(input, dialect)), without_series(pushed));
}

#[test]
fn agrees_on_records_that_meet_the_borders_of_blocks_and_windows() {
    let record = "m\\ é,t=a\\,b f=1.5,s=\"x\\\"\ny\",i=2i 17\r\n";
    for shift in 0..130 {
        for far in [0, 4000] {
            let comment = format!("#{}\n", "-".repeat(shift + far));
            assert_agrees(format!("{comment}{}", record.repeat(3)).as_bytes());
        }
    }
}

#[test]
fn agrees_on_records_of_many_fields_of_every_type() {
    let values = ["1.5", "-2i", "3u", "t", "\"x,\\\" y\"", "F", "1e3"];
    for fields in 1..40 {
        let pairs: Vec<_> = (0..fields).map(|at| format!("f\\ {at}={}", values[at * 5 % 7])).collect();
        assert_agrees(format!("m,t={} {} 1\r\nm f=1", "x".repeat(fields), pairs.join(",")).as_bytes());
    }
}

#[test]
fn agrees_on_names_and_strings_longer_than_a_window() {
    for length in [4090, 4096, 5000, 9000] {
        let long = "é".repeat(length);
        assert_agrees(format!("{long},{long}={long} {long}=\"{long}\" 1\nm f=1").as_bytes());
        let mut bad = format!("m,t={long}").into_bytes();
        bad.extend(b"\xff f=1\nm f=1");
        assert_agrees(&bad);
        assert_agrees(format!("m,t={}\tx f=1\nm f=1", "x".repeat(length)).as_bytes());
        assert_agrees(format!("m,t={} f=1\nm f=1", "\\ ".repeat(length)).as_bytes());
    }
}

#[test]
fn agrees_on_every_short_text_of_the_bytes_that_matter() {
    const BYTES: &[u8] = b"a1=, \\\"\n\r";
    for front in ["", "m", "m,", "m,t=", "m ", "m f=", "m f=1", "m f=\"", "m f=1 1"] {
        for index in 0..BYTES.len().pow(4) {
            let mut input = front.as_bytes().to_vec();
            let mut rest = index;
            for _ in 0..4 {
                input.push(BYTES[rest % BYTES.len()]);
                rest /= BYTES.len();
            }
            assert_agrees(&input);
        }
    }
}
