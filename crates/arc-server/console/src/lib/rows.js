// The rows of an answer: any cell by its row and column. Columns stay the buffers that came.

/** The rows that have come of an answer: any cell by its row and column. */
export class Rows {
  constructor() {
    this.fields = [];
    this.batches = [];
    this.starts = [];
    this.length = 0;
    this.bytes = 0;
  }

  add(batch) {
    this.starts.push(this.length);
    this.batches.push(batch);
    this.length += batch.length;
    this.bytes += batch.bytes ?? 0;
  }

  get(row, column) {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= row) low = middle;
      else high = middle - 1;
    }
    return this.batches[low].columns[column].get(row - this.starts[low]);
  }

  index(name) {
    return this.fields.findIndex((field) => field.name === name);
  }
}

/** Makes rows of plain arrays, for answers of endpoints that are JSON. */
export function rowsOf(fields, data) {
  const rows = new Rows();
  rows.fields = fields.map((field) => ({ children: [], ...field }));
  rows.add({ length: data.length, columns: fields.map((_, column) => ({ length: data.length, get: (row) => data[row][column] ?? null })) });
  return rows;
}
