// What is in a Parquet file, from its end alone: names and types of columns, and how many rows. Reads no data.
//
// The end of a file is Thrift in its compact form: parquet.thrift of apache/parquet-format, FileMetaData.

const MAGIC = 0x31524150;
const MOST_FOOTER = 64 * 1024 * 1024;
const MOST_COLUMNS = 100_000;
const MOST_DEPTH = 32;

/** Reads the end of a file, which is a Blob. Returns `{ columns: [{ name, type }], rows }`; throws where it is no Parquet. */
export async function readParquet(file) {
  const wrong = (reason) => new Error(`This is no Parquet file: ${reason}.`);
  if (file.size < 12) throw wrong("it is too short");
  const tail = new DataView(await file.slice(file.size - 8).arrayBuffer());
  if (tail.getUint32(4, true) !== MAGIC) throw wrong("it does not end in PAR1");
  const length = tail.getUint32(0, true);
  if (length > Math.min(MOST_FOOTER, file.size - 12)) throw wrong("the size of its end is wrong");
  const footer = new Uint8Array(await file.slice(file.size - 8 - length, file.size - 8).arrayBuffer());
  return readFooter(footer);
}

export function readFooter(bytes) {
  const reader = new Compact(bytes);
  // The groups of rows, which follow, are of no interest here.
  const meta = reader.struct(0, 3);
  const schema = meta[2];
  if (!Array.isArray(schema) || schema.length === 0 || schema.length > MOST_COLUMNS) throw new Error("This Parquet file has no columns that can be read.");
  return { columns: topLevel(schema), rows: meta[3] ?? 0n };
}

/** The columns right below the root; what is in them is a part of them. */
function topLevel(schema) {
  const columns = [];
  let at = 1;
  const skip = (from, depth) => {
    const children = Number(schema[from]?.[5] ?? 0);
    let next = from + 1;
    if (depth > MOST_DEPTH) throw new Error("The columns of this Parquet file lie too deep in one another.");
    for (let child = 0; child < children && next < schema.length; child++) next = skip(next, depth + 1);
    return next;
  };
  while (at < schema.length) {
    columns.push({ name: text(schema[at][4]), type: typeOf(schema[at]) });
    at = skip(at, 0);
  }
  return columns;
}

const text = (bytes) => (bytes instanceof Uint8Array ? new TextDecoder().decode(bytes) : "");

const PHYSICAL = ["boolean", "int32", "int64", "int96 (a time)", "float32", "float64", "binary", "binary"];
const CONVERTED = { 0: "text", 1: "map", 2: "map", 3: "list", 4: "text", 5: "decimal", 6: "date", 7: "time of day", 8: "time of day", 9: "timestamp(ms)", 10: "timestamp(us)", 11: "uint8", 12: "uint16", 13: "uint32", 14: "uint64", 15: "int8", 16: "int16", 17: "int32", 18: "int64", 19: "JSON text", 21: "interval" };
const UNITS = { 1: "ms", 2: "us", 3: "ns" };

function typeOf(element) {
  const logical = element[10];
  const [kind] = Object.keys(logical ?? {}).map(Number);
  const of = logical?.[kind];
  if (kind === 8) return `timestamp(${UNITS[Object.keys(of?.[2] ?? {})[0]] ?? "?"})`;
  if (kind === 10) return `${of?.[2] === false ? "uint" : "int"}${of?.[1] ?? ""}`;
  if (kind === 5) return `decimal(${of?.[2] ?? "?"}, ${of?.[1] ?? 0})`;
  const named = { 1: "text", 2: "map", 3: "list", 4: "text", 6: "date", 7: "time of day", 12: "JSON text", 14: "UUID", 15: "float16" }[kind];
  if (named) return named;
  if (element[6] !== undefined && CONVERTED[element[6]]) return CONVERTED[element[6]];
  if (element[1] === undefined) return "structure";
  return PHYSICAL[element[1]] ?? "unknown";
}

/** Thrift's compact protocol, as far as files have it. */
class Compact {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  byte() {
    if (this.at >= this.bytes.length) throw new Error("This Parquet file ends in the middle of its description.");
    return this.bytes[this.at++];
  }

  varint() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error("A number in the description of this Parquet file is too long.");
  }

  zigzag() {
    const value = this.varint();
    return (value >> 1n) ^ -(value & 1n);
  }

  /** Reads a structure as `{ number of field: value }`, up to the field `last` if one is named. */
  struct(depth, last = Infinity) {
    if (depth > MOST_DEPTH) throw new Error("The description of this Parquet file is too deep.");
    const found = {};
    let id = 0;
    for (;;) {
      const head = this.byte();
      if (head === 0) return found;
      id = head >> 4 ? id + (head >> 4) : Number(this.zigzag());
      if (id > last) return found;
      found[id] = this.value(head & 15, depth);
      if (id === last) return found;
    }
  }

  value(kind, depth) {
    if (kind === 1) return true;
    if (kind === 2) return false;
    if (kind === 3) return (this.byte() << 24) >> 24;
    if (kind === 4 || kind === 5) return Number(this.zigzag());
    if (kind === 6) return this.zigzag();
    if (kind === 7) return this.take(8);
    if (kind === 8) return this.take(Number(this.varint()));
    if (kind === 9 || kind === 10) return this.list(depth);
    if (kind === 12) return this.struct(depth + 1);
    throw new Error("The description of this Parquet file has something unknown in it.");
  }

  take(length) {
    if (length > this.bytes.length - this.at) throw new Error("This Parquet file ends in the middle of its description.");
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  list(depth) {
    const head = this.byte();
    const length = head >> 4 === 15 ? Number(this.varint()) : head >> 4;
    if (length > this.bytes.length - this.at) throw new Error("A list in the description of this Parquet file is too long.");
    const kind = head & 15;
    // In a list a truth is a byte of its own.
    return Array.from({ length }, () => (kind === 1 || kind === 2 ? this.byte() === 1 : this.value(kind, depth + 1)));
  }
}
