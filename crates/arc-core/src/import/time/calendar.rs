//! Dates and times as people and programs write them, beyond RFC 3339.
//!
//! What may be read in two ways is not read: years of two digits, days and months of which nothing
//! has said which comes first, names of time zones.

use std::fmt;

use chrono::NaiveDate;

/// What comes first in `01/02/2024`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DayOrder {
    DayFirst,
    MonthFirst,
}

impl DayOrder {
    /// Decides by some texts, nothing if it does not matter to them; the error names one that may be either, or that
    /// others speak against.
    pub(super) fn decide<'t>(texts: impl Iterator<Item = &'t str>) -> Result<Option<Self>, String> {
        let (mut either, mut only_day_first, mut only_month_first) = (None, false, false);
        for text in texts.filter(|text| read(text, None) == CalendarTime::EitherOrder) {
            let reads = |order| matches!(read(text, Some(order)), CalendarTime::Time(_));
            match (reads(Self::DayFirst), reads(Self::MonthFirst)) {
                (true, false) => only_day_first = true,
                (false, true) => only_month_first = true,
                // It is no date, and refused for itself.
                (false, false) => continue,
                (true, true) => {}
            }
            either.get_or_insert(text);
        }
        match (either, only_day_first, only_month_first) {
            (None, ..) => Ok(None),
            (_, true, false) => Ok(Some(Self::DayFirst)),
            (_, false, true) => Ok(Some(Self::MonthFirst)),
            (Some(text), ..) => Err(either_order(text)),
        }
    }
}

impl fmt::Display for DayOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DayFirst => "day before month",
            Self::MonthFirst => "month before day",
        })
    }
}

/// Says that a date may be one or the other.
pub(super) fn either_order(text: &str) -> String {
    format!(
        "{text:?} may have the day or the month first; say which: time_format, as %d/%m/%Y or %m/%d/%Y, with the time behind"
    )
}

/// What a text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CalendarTime {
    /// Nanoseconds since the epoch.
    Time(i64),
    OutOfRange,
    EitherOrder,
    None,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TimeOfDay {
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) nanosecond: u32,
}

/// Returns the time of year, month and day at a time of day, so many seconds east of Greenwich.
pub(super) fn at((year, month, day): (u32, u32, u32), clock: TimeOfDay, offset: i64) -> CalendarTime {
    let date = i32::try_from(year).ok().and_then(|year| NaiveDate::from_ymd_opt(year, month, day));
    let TimeOfDay { hour, minute, second, nanosecond } = clock;
    let Some(time) = date.and_then(|date| date.and_hms_nano_opt(hour, minute, second, nanosecond)) else {
        return CalendarTime::None;
    };
    let time = time.and_utc().timestamp_nanos_opt().and_then(|time| time.checked_sub(offset * 1_000_000_000));
    time.map_or(CalendarTime::OutOfRange, CalendarTime::Time)
}

/// Reads a date, with a time of day or without.
pub(super) fn read(text: &str, order: Option<DayOrder>) -> CalendarTime {
    parse(text, order).unwrap_or(CalendarTime::None)
}

fn parse(text: &str, order: Option<DayOrder>) -> Option<CalendarTime> {
    // RFC 9557: the zone behind an offset changes nothing.
    let text = match text.strip_suffix(']') {
        Some(rest) => rest.rsplit_once('[')?.0,
        None => text,
    };
    if let Some(basic) = basic(text) {
        return Some(basic);
    }
    let (before, time, after) = split_at_clock(text);
    let mut date = DateParts::default();
    before.split([' ', '-', '/', '.', ',']).try_for_each(|word| {
        let number = word.strip_suffix(['T', 't']).filter(|rest| digits(rest));
        date.add(number.unwrap_or(word))
    })?;
    date.has_dots = before.contains('.');
    let mut clock = match time {
        "" => date.take_clock()?,
        time => read_clock(time)?,
    };
    let mut offset = 0;
    for word in after.split_whitespace() {
        match word {
            _ if word.eq_ignore_ascii_case("am") || word.eq_ignore_ascii_case("pm") => {
                let is_afternoon = word.eq_ignore_ascii_case("pm");
                clock.hour =
                    (1..=12).contains(&clock.hour).then_some(clock.hour % 12 + 12 * u32::from(is_afternoon))?;
            }
            "Z" | "z" | "UTC" | "GMT" => {}
            _ if word.starts_with(['+', '-']) => offset = read_offset(word)?,
            // As `date` and `ctime` have it.
            _ if word.len() == 4 => date.add(word)?,
            _ => return None,
        }
    }
    Some(match date.order(order)? {
        Some(date) => at(date, clock, offset),
        None => CalendarTime::EitherOrder,
    })
}

/// Reads `20240131T120000Z`, ISO 8601's basic format.
fn basic(text: &str) -> Option<CalendarTime> {
    let (date, rest) = text.split_at_checked(8)?;
    let rest = rest.strip_prefix(['T', 't'])?;
    let end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at_checked(end)?;
    let (time, fraction) = time.split_once(['.', ',']).unwrap_or((time, ""));
    if !matches!(time.len(), 4 | 6) || !digits(date) || !digits(time) {
        return None;
    }
    let part = |text: &str, from: usize, to: usize| text.get(from..to).map_or(Some(0), |part| part.parse().ok());
    let clock = TimeOfDay {
        hour: part(time, 0, 2)?,
        minute: part(time, 2, 4)?,
        second: part(time, 4, 6)?,
        nanosecond: nanoseconds(fraction)?,
    };
    let offset = if matches!(zone, "" | "Z" | "z") { 0 } else { read_offset(zone)? };
    Some(at((part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, 8)?), clock, offset))
}

/// Splits a text into what is before its time of day, that, and what is after it.
fn split_at_clock(text: &str) -> (&str, &str, &str) {
    let Some(colon) = text.find(':') else { return (text, "", "") };
    let head = text.get(..colon).unwrap_or_default();
    let start = head.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    let clock = text.get(start..).unwrap_or_default();
    let end = clock.find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, ':' | '.' | ','));
    let (clock, after) = clock.split_at(end.unwrap_or(clock.len()));
    (text.get(..start).unwrap_or_default(), clock, after)
}

fn read_clock(text: &str) -> Option<TimeOfDay> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let mut parts = whole.split(':').map(|part| part.parse().ok().filter(|_| matches!(part.len(), 1 | 2)));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() || (text.len() > whole.len() && fraction.is_empty()) {
        return None;
    }
    Some(TimeOfDay { hour, minute, second, nanosecond: nanoseconds(fraction)? })
}

/// Reads the digits of a fraction of a second; what is below a nanosecond is cut off.
fn nanoseconds(fraction: &str) -> Option<u32> {
    let fraction = Some(fraction).filter(|fraction| digits(fraction))?;
    format!("{fraction:0<9}").get(..9)?.parse().ok()
}

/// Reads `+01`, `+0100` or `+01:00` as seconds.
fn read_offset(text: &str) -> Option<i64> {
    let (sign, rest) = text.split_at_checked(1)?;
    let (hours, minutes) = match rest.split_once(':') {
        Some(parts) => parts,
        None => rest.split_at_checked(2)?,
    };
    let is_good = hours.len() == 2 && matches!(minutes.len(), 0 | 2) && digits(hours) && digits(minutes);
    let (hours, minutes): (i64, i64) =
        (hours.parse().ok()?, if minutes.is_empty() { 0 } else { minutes.parse().ok()? });
    let seconds = hours * 3_600 + minutes * 60;
    (is_good && hours < 24 && minutes < 60).then_some(if sign == "-" { -seconds } else { seconds })
}

fn digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Reads `Q1`, or `1974Q1`, as the year before it, or nothing, and the quarter.
fn quarter(word: &str) -> Option<(&str, u32)> {
    let (year, quarter) = word.split_once(['Q', 'q'])?;
    let quarter = quarter.parse().ok().filter(|number| (1..=4).contains(number) && quarter.len() == 1)?;
    (matches!(year.len(), 0 | 4) && digits(year)).then_some((year, quarter))
}

/// The words of a date.
#[derive(Debug, Default)]
struct DateParts {
    numbers: Vec<(u32, usize)>,
    /// The month, if it has its name, or the first of a quarter.
    month: Option<u32>,
    is_quarter: bool,
    has_dots: bool,
}

impl DateParts {
    fn add(&mut self, word: &str) -> Option<()> {
        if word.is_empty() {
            return Some(());
        }
        if let Some((year, quarter)) = quarter(word) {
            self.is_quarter = self.month.replace(quarter * 3 - 2).is_none();
            return self.is_quarter.then(|| self.add(year))?;
        }
        if digits(word) {
            self.numbers.push((word.parse().ok().filter(|_| matches!(word.len(), 1 | 2 | 4))?, word.len()));
            return (self.numbers.len() <= 6).then_some(());
        }
        let word = word.to_ascii_lowercase();
        let named = |names: &[&str]| names.iter().position(|name| word.len() >= 3 && name.starts_with(word.as_str()));
        let month = if word == "sept" { Some(8) } else { named(&MONTHS) };
        match month {
            Some(month) if self.month.is_none() => self.month = u32::try_from(month + 1).ok(),
            Some(_) => return None,
            None => drop(named(&WEEKDAYS)?),
        }
        Some(())
    }

    /// Returns the time of day that stands behind the date with blanks only, as in columns that were joined.
    fn take_clock(&mut self) -> Option<TimeOfDay> {
        let is_date_first = self.month.is_none() && self.numbers.first().is_some_and(|(_, length)| *length == 4);
        if self.numbers.len() <= 3 {
            return Some(TimeOfDay::default());
        }
        let rest = self.numbers.split_off(3);
        let part = |index: usize| rest.get(index).map_or(0, |(number, _)| *number);
        is_date_first.then_some(TimeOfDay { hour: part(0), minute: part(1), second: part(2), nanosecond: 0 })
    }

    /// Returns year, month and day; nothing within if it has to be said which of two is which.
    fn order(&self, order: Option<DayOrder>) -> Option<Option<(u32, u32, u32)>> {
        let date = match (self.month, self.numbers.as_slice()) {
            (Some(month), [(year, 4)]) => (*year, month, 1),
            (Some(_), _) if self.is_quarter => return None,
            (Some(month), [(year, 4), (day, 1 | 2)] | [(day, 1 | 2), (year, 4)]) => (*year, month, *day),
            (None, [(year, 4), (month, 1 | 2)]) | (None, [(month, 1 | 2), (year, 4)]) => (*year, *month, 1),
            (None, [(year, 4), (month, 1 | 2), (day, 1 | 2)]) => (*year, *month, *day),
            (None, [(first, 1 | 2), (second, 1 | 2), (year, 4)]) => match order {
                _ if self.has_dots => (*year, *second, *first),
                Some(DayOrder::DayFirst) => (*year, *second, *first),
                Some(DayOrder::MonthFirst) => (*year, *first, *second),
                None => return Some(None),
            },
            _ => return None,
        };
        Some(Some(date))
    }
}
