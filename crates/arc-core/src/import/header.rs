//! The names of a file's columns, and which of them make the time.

use std::collections::HashSet;

use super::{ImportColumn, ImportOptions, report::LEFT_OUT, source::ImportSource};
use crate::{Error, Result, ingest::MAX_COLUMNS, model::TIME_COLUMN};

/// What a column that has the time is called where nothing says which it is, in any case of letters; the first that is there.
const TIME_NAMES: [&str; 5] = [TIME_COLUMN, "timestamp", "datetime", "date_time", "date"];

/// Names of columns beside a date that have the rest of the time.
const CLOCK_NAMES: [&str; 6] = ["hour", "hours", "hr", "minute", "time_of_day", "clock"];

/// Names of columns beside a year that count its quarters.
const QUARTER_NAMES: [&str; 3] = ["quarter", "qtr", "q"];

/// Names of columns beside a year that count what only a pattern can say.
const COUNT_NAMES: [&str; 13] = [
    "week",
    "weeks",
    "wk",
    "isoweek",
    "iso_week",
    "doy",
    "yday",
    "dayofyear",
    "day_of_year",
    "period",
    "semester",
    "half",
    "season",
];

/// Names of columns that have years.
const YEAR_NAMES: [&str; 3] = ["year", "yr", "yyyy"];

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnRole {
    Time,
    Value,
    LeftOut,
}

/// The columns of a file in its order, as a table has them.
#[derive(Debug)]
pub(super) struct FileHeader {
    pub(super) names: Vec<String>,
    pub(super) roles: Vec<ColumnRole>,
    /// Where the time's columns are, in the order in which they are put together.
    pub(super) times: Vec<usize>,
    /// Their names.
    pub(super) time_name: String,
    /// Which of several of them counts the quarters of a year, where no pattern says what they are.
    quarter: Option<usize>,
}

impl FileHeader {
    /// Takes the names that a file has; blanks around them and ends of lines in them are not part of a name.
    pub(super) fn new<'n>(
        source: &ImportSource,
        options: &ImportOptions,
        given: impl Iterator<Item = &'n str>,
    ) -> Result<Self> {
        let names: Vec<String> = given.map(plain).collect();
        if names.len() > MAX_COLUMNS {
            return Err(source.bad(format!("it has {} columns, and a table up to {MAX_COLUMNS}", names.len())));
        }
        let mut seen = HashSet::new();
        if let Some(name) = names.iter().find(|name| !name.is_empty() && !seen.insert(name.as_str())) {
            return Err(source.bad(format!("column {name:?} comes twice")));
        }
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        let asked = options.tags.iter().chain(options.types.iter().map(|(name, _)| name)).chain(&options.exclude);
        if let Some(name) = asked.filter(|name| place(name).is_none()).min() {
            return Err(source.bad(format!("there is no column {name:?}")));
        }
        let times = times(options, &names).map_err(|missing| without_time(source, &names, &missing))?;
        let of_times = || times.iter().filter_map(|index| names.get(*index)).map(String::as_str);
        let mut quarter = None;
        if times.len() > 1 && options.time_format.is_none() && of_times().any(|name| is_one_of(name, &YEAR_NAMES)) {
            if let Some(name) = of_times().find(|name| is_one_of(name, &COUNT_NAMES)) {
                return Err(source.bad(format!(
                    "column {name:?} may count anything within a year; say what: time_format, as %Y %j for days, or %G %V %u \
                     for weeks and their days, with a blank between two columns"
                )));
            }
            quarter = of_times().position(|name| is_one_of(name, &QUARTER_NAMES));
        }
        let role = |(index, name): (usize, &String)| match () {
            () if times.contains(&index) => ColumnRole::Time,
            () if name.is_empty() || options.exclude.contains(name) => ColumnRole::LeftOut,
            () => ColumnRole::Value,
        };
        let roles: Vec<ColumnRole> = names.iter().enumerate().map(role).collect();
        let time_name = of_times().collect::<Vec<_>>().join(",");
        if names.iter().zip(&roles).any(|(name, role)| name == TIME_COLUMN && *role == ColumnRole::Value) {
            return Err(source.bad(format!(
                "column {TIME_COLUMN:?} cannot be stored beside {time_name:?}, which becomes the table's time; \
                 leave it out (exclude), or name both for the time"
            )));
        }
        Ok(Self { names, roles, times, time_name, quarter })
    }

    /// Puts the values together that make the time of a row; nothing where one of them is missing.
    pub(super) fn joined<'t>(&self, parts: impl Iterator<Item = &'t str>) -> String {
        let mut text = String::new();
        for (nth, part) in parts.map(str::trim).enumerate() {
            // As pandas writes a column of integers with a gap.
            let whole = part.strip_suffix(".0").filter(|whole| whole.bytes().all(|byte| byte.is_ascii_digit()));
            let part = whole.unwrap_or(part);
            if part.is_empty() {
                return String::new();
            }
            if nth > 0 {
                text.push(' ');
            }
            if self.quarter == Some(nth) && part.len() == 1 {
                text.push('Q');
            }
            text.push_str(part);
        }
        text
    }

    /// Returns whether the column of the time says that it has years.
    pub(super) fn has_years(&self) -> bool {
        is_one_of(&self.time_name, &YEAR_NAMES)
    }

    /// Says that nothing names the time, of a file in which only a column without a name was left for it.
    pub(super) fn without_time(&self, source: &ImportSource) -> Option<Error> {
        self.time_name.is_empty().then(|| without_time(source, &self.names, TIME_COLUMN))
    }

    /// Returns the header without the columns that are left out.
    pub(super) fn kept(self) -> Self {
        let kept: Vec<usize> = self
            .roles
            .iter()
            .enumerate()
            .filter(|(_, role)| **role != ColumnRole::LeftOut)
            .map(|(index, _)| index)
            .collect();
        let times = self.times.iter().filter_map(|time| kept.iter().position(|index| index == time)).collect();
        let named = self.names.into_iter().zip(self.roles).filter(|(_, role)| *role != ColumnRole::LeftOut);
        let (names, roles) = named.unzip();
        Self { names, roles, times, time_name: self.time_name, quarter: self.quarter }
    }

    /// Returns the columns that are left out.
    pub(super) fn left_out(&self) -> Vec<ImportColumn> {
        let left_out = self.names.iter().zip(&self.roles).filter(|(_, role)| **role == ColumnRole::LeftOut);
        let column = |name: &String| ImportColumn { name: name.clone(), kind: LEFT_OUT.to_owned(), decided_by: None };
        left_out.map(|(name, _)| column(name)).collect()
    }
}

fn without_time(source: &ImportSource, names: &[String], missing: &str) -> Error {
    let shown: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let shown = shown.join(", ");
    source.bad(format!("there is no column {missing:?} for the time; there are {shown}; say which it is (time_column)"))
}

/// Returns whether a file that has these names has a column for the time.
pub(super) fn has_time<'n>(options: &ImportOptions, given: impl Iterator<Item = &'n str>) -> bool {
    times(options, &given.map(plain).collect::<Vec<_>>()).is_ok()
}

/// Returns a name without blanks around it, and without ends of lines.
fn plain(name: &str) -> String {
    name.split(['\r', '\n']).map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Returns where the columns are that make the time, or the name of one that is missing.
fn times(options: &ImportOptions, names: &[String]) -> Result<Vec<usize>, String> {
    let place = |wanted: &str| names.iter().position(|name| name == wanted);
    match &options.time_column {
        None => {
            let found = guessed(names).or_else(|| unnamed(names));
            found.map(|place| vec![place]).ok_or_else(|| TIME_COLUMN.to_owned())
        }
        Some(name) => match place(name) {
            Some(place) => Ok(vec![place]),
            None => name.split(',').map(str::trim).map(|part| place(part).ok_or_else(|| part.to_owned())).collect(),
        },
    }
}

/// Finds the column that has the time; of a date beside hours nobody can say whether it is all of it.
fn guessed(names: &[String]) -> Option<usize> {
    let place = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
    let exact = names.iter().position(|name| name == TIME_COLUMN);
    let found = exact.or_else(|| TIME_NAMES.into_iter().find_map(place))?;
    let is_date = names.get(found).is_some_and(|name| name.eq_ignore_ascii_case("date"));
    (!is_date || CLOCK_NAMES.into_iter().all(|name| place(name).is_none())).then_some(found)
}

/// Returns the one column that has no name, as the index of a data frame.
fn unnamed(names: &[String]) -> Option<usize> {
    let mut unnamed = names.iter().enumerate().filter(|(_, name)| name.is_empty());
    let (place, _) = unnamed.next()?;
    unnamed.next().is_none().then_some(place)
}
