//! Rows of many tables in the order of their arrival, on their way into the buffers.
//!
//! Where a request has a point or two of each of a thousand tables, columns for each of these tables cost more than the
//! points. Here all rows share three vectors. A row has values of its table's plain columns, each of the column's own type,
//! which the caller has checked; it is put into the buffer value by value. Knows no names and no tables.

use super::{scalar::Scalar, series::SeriesId};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct LooseRows {
    rows: Vec<Row>,
    cells: Vec<Cell>,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    time: i64,
    series: SeriesId,
    /// Where its cells and texts end.
    cells_end: usize,
    text_end: usize,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    column: u32,
    value: Value,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Float(f64),
    Integer(i64),
    Unsigned(u64),
    Boolean(bool),
    /// Begins where the text before it ends.
    Text {
        len: u32,
    },
}

/// One of the rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LooseRow<'a> {
    pub(crate) time: i64,
    pub(crate) series: SeriesId,
    cells: &'a [Cell],
    text: &'a [u8],
}

impl LooseRows {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Puts a value into a column of the row that is being built, which has none of that column yet. `false`, and no
    /// value, where it is larger than a value can be.
    #[inline]
    pub(crate) fn put(&mut self, column: usize, value: Scalar<'_>) -> bool {
        let value = match value {
            Scalar::Float(v) => Value::Float(v),
            Scalar::Integer(v) => Value::Integer(v),
            Scalar::Unsigned(v) => Value::Unsigned(v),
            Scalar::Boolean(v) => Value::Boolean(v),
            Scalar::Text(v) => return self.put(column, Scalar::Bytes(v.as_bytes())),
            Scalar::Bytes(v) => {
                let Ok(len) = u32::try_from(v.len()) else { return false };
                self.text.extend_from_slice(v);
                Value::Text { len }
            }
        };
        let Ok(column) = u32::try_from(column) else { return false };
        self.cells.push(Cell { column, value });
        true
    }

    /// Returns whether the row that is being built has a value of a column.
    pub(crate) fn has(&self, column: usize) -> bool {
        self.pending().cells.iter().any(|cell| cell.column as usize == column)
    }

    /// Returns how many values the row that is being built has.
    pub(crate) fn pending_len(&self) -> usize {
        self.pending().cells.len()
    }

    /// Returns the row that is being built, without time and series.
    pub(crate) fn pending(&self) -> LooseRow<'_> {
        let (cells, text) = self.ends_before(self.rows.len());
        LooseRow {
            time: 0,
            series: 0,
            cells: self.cells.get(cells..).unwrap_or_default(),
            text: self.text.get(text..).unwrap_or_default(),
        }
    }

    /// Ends the row that is being built.
    #[inline]
    pub(crate) fn end_row(&mut self, time: i64, series: SeriesId) {
        self.rows.push(Row { time, series, cells_end: self.cells.len(), text_end: self.text.len() });
    }

    /// Takes back what the row that is being built has.
    pub(crate) fn take_back(&mut self) {
        let (cells, text) = self.ends_before(self.rows.len());
        self.cells.truncate(cells);
        self.text.truncate(text);
    }

    /// Returns where the cells and the texts of a row begin.
    fn ends_before(&self, row: usize) -> (usize, usize) {
        let before = row.checked_sub(1).and_then(|before| self.rows.get(before));
        before.map_or((0, 0), |row| (row.cells_end, row.text_end))
    }

    /// Returns the rows in the order of their arrival.
    pub(crate) fn rows(&self) -> impl Iterator<Item = LooseRow<'_>> {
        let mut begin = (0, 0);
        self.rows.iter().map(move |row| {
            let (cells, text) = std::mem::replace(&mut begin, (row.cells_end, row.text_end));
            LooseRow {
                time: row.time,
                series: row.series,
                cells: self.cells.get(cells..row.cells_end).unwrap_or_default(),
                text: self.text.get(text..row.text_end).unwrap_or_default(),
            }
        })
    }

    /// Returns the bytes that the rows take in buffers: those of each, [`LooseRow::bytes`].
    pub(crate) fn bytes(&self) -> usize {
        self.rows().map(|row| row.bytes()).sum()
    }
}

impl<'a> LooseRow<'a> {
    /// Returns the columns that it has values of, with these.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, Scalar<'a>)> {
        let mut text = self.text;
        self.cells.iter().map(move |cell| {
            let value = match cell.value {
                Value::Float(v) => Scalar::Float(v),
                Value::Integer(v) => Scalar::Integer(v),
                Value::Unsigned(v) => Scalar::Unsigned(v),
                Value::Boolean(v) => Scalar::Boolean(v),
                Value::Text { len } => {
                    let (own, rest) = text.split_at_checked(len as usize).unwrap_or((text, &[]));
                    text = rest;
                    Scalar::Bytes(own)
                }
            };
            (cell.column as usize, value)
        })
    }

    /// Returns the bytes that it takes in a buffer: time, series, and eight or so for each value beside its text.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<i64>() + size_of::<SeriesId>() + self.cells.len() * 8 + self.text.len()
    }

    /// Returns the number of columns that rows must have to have its values.
    pub(super) fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.column as usize + 1).max().unwrap_or(0)
    }
}
