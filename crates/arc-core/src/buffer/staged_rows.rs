//! Rows of many tables in the order of their arrival, on their way into the buffers.
//!
//! Where a request has a point or two of each of a thousand tables, columns for each of these
//! tables cost more than the points. Here all rows share three vectors. A row has values of its
//! table's plain columns, each of the column's own type, which the caller has checked; it is put
//! into the buffer value by value. Knows no names and no tables.

use super::{CELL_BYTES, scalar::Scalar, series::SeriesId};

/// Bytes in a buffer of time and series of a row.
const ROW_BYTES: usize = size_of::<i64>() + size_of::<SeriesId>();
/// Most values of all rows.
const MAX_CELLS: usize = u32::MAX as usize;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct StagedRows {
    rows: Vec<Row>,
    cells: Vec<StagedCell>,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    time: i64,
    series: SeriesId,
    /// Index of its table among those that the caller knows.
    table: u32,
    /// Where its cells and texts end.
    cells_end: u32,
    text_end: u32,
}

/// Sixteen bytes: there are many, and they are read once.
#[derive(Debug, Clone, Copy)]
struct StagedCell {
    bits: u64,
    column: u32,
    kind: CellKind,
}

/// What the bits of a cell are.
#[derive(Debug, Clone, Copy)]
enum CellKind {
    Float,
    Integer,
    Unsigned,
    Boolean,
    /// The length of a text, which begins where the one before it ends.
    Text,
}

/// One of the rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StagedRow<'a> {
    pub(crate) time: i64,
    pub(crate) series: SeriesId,
    cells: &'a [StagedCell],
    text: &'a [u8],
}

impl StagedRows {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Puts a value into a column of the row that is being built, which has none of that column
    /// yet. `false`, and no value, where it is larger than a value can be.
    #[inline]
    pub(crate) fn put(&mut self, column: usize, value: Scalar<'_>) -> bool {
        let (kind, bits) = match value {
            Scalar::Float(v) => (CellKind::Float, v.to_bits()),
            Scalar::Integer(v) => (CellKind::Integer, v.cast_unsigned()),
            Scalar::Unsigned(v) => (CellKind::Unsigned, v),
            Scalar::Boolean(v) => (CellKind::Boolean, v.into()),
            Scalar::Text(v) => return self.put(column, Scalar::Bytes(v.as_bytes())),
            Scalar::Bytes(v) => {
                if u32::try_from(self.text.len() + v.len()).is_err() {
                    return false;
                }
                self.text.extend_from_slice(v);
                (CellKind::Text, v.len() as u64)
            }
        };
        let (Ok(column), true) = (u32::try_from(column), self.cells.len() < MAX_CELLS) else { return false };
        self.cells.push(StagedCell { bits, column, kind });
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
    pub(crate) fn pending(&self) -> StagedRow<'_> {
        let (cells, text) = self.ends_before(self.rows.len());
        StagedRow {
            time: 0,
            series: 0,
            cells: self.cells.get(cells..).unwrap_or_default(),
            text: self.text.get(text..).unwrap_or_default(),
        }
    }

    /// Ends the row that is being built.
    #[inline]
    pub(crate) fn end_row(&mut self, time: i64, series: SeriesId, table: usize) {
        // No more cells and bytes were taken, and there are no more tables.
        let [table, cells_end, text_end] =
            [table, self.cells.len(), self.text.len()].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        self.rows.push(Row { time, series, table, cells_end, text_end });
    }

    /// Returns the table of each row.
    pub(crate) fn tables(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().map(|row| row.table as usize)
    }

    /// Returns one of the rows, or an empty one if there is none.
    pub(crate) fn row(&self, row: usize) -> StagedRow<'_> {
        let (cells, text) = self.ends_before(row);
        let Some(Row { time, series, cells_end, text_end, .. }) = self.rows.get(row) else { return self.pending() };
        StagedRow {
            time: *time,
            series: *series,
            cells: self.cells.get(cells..*cells_end as usize).unwrap_or_default(),
            text: self.text.get(text..*text_end as usize).unwrap_or_default(),
        }
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
        before.map_or((0, 0), |row| (row.cells_end as usize, row.text_end as usize))
    }

    /// Returns the rows in the order of their arrival.
    pub(crate) fn rows(&self) -> impl Iterator<Item = StagedRow<'_>> {
        (0..self.rows.len()).map(|row| self.row(row))
    }

    /// Returns the bytes that the rows take in buffers: those of each, [`StagedRow::bytes`].
    pub(crate) fn bytes(&self) -> usize {
        let (cells, text) = self.ends_before(self.rows.len());
        self.rows.len() * ROW_BYTES + cells * CELL_BYTES + text
    }
}

impl<'a> StagedRow<'a> {
    /// Returns the columns that it has values of, with these.
    pub(crate) fn values(&self) -> impl Iterator<Item = (usize, Scalar<'a>)> {
        let mut text = self.text;
        self.cells.iter().map(move |cell| {
            let value = match cell.kind {
                CellKind::Float => Scalar::Float(f64::from_bits(cell.bits)),
                CellKind::Integer => Scalar::Integer(cell.bits.cast_signed()),
                CellKind::Unsigned => Scalar::Unsigned(cell.bits),
                CellKind::Boolean => Scalar::Boolean(cell.bits != 0),
                CellKind::Text => {
                    let len = usize::try_from(cell.bits).unwrap_or(usize::MAX);
                    let (own, rest) = text.split_at_checked(len).unwrap_or((text, &[]));
                    text = rest;
                    Scalar::Bytes(own)
                }
            };
            (cell.column as usize, value)
        })
    }

    /// Returns the bytes that it takes in a buffer: time, series, and eight or so for each value
    /// beside its text.
    pub(crate) fn bytes(&self) -> usize {
        ROW_BYTES + self.cells.len() * CELL_BYTES + self.text.len()
    }

    /// Reads something of all that there is to read.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.cells.first().map_or(0, |cell| cell.bits) ^ self.cells.last().map_or(0, |cell| cell.bits)
    }

    /// Returns the number of columns that rows must have to have its values.
    pub(super) fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.column as usize + 1).max().unwrap_or(0)
    }
}
