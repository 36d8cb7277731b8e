// Reads an Arrow IPC stream while it comes: exact 64-bit numbers, NaN, nulls, nested values and nanoseconds, which JSON has not.
//
// Columnar format and IPC: https://arrow.apache.org/docs/format/Columnar.html. Never shows anything; display.js does.

const TYPES = [
  "none", "null", "int", "float", "binary", "utf8", "bool", "decimal", "date", "time", "timestamp", "interval", "list", "struct",
  "union", "fixed_binary", "fixed_list", "map", "duration", "large_binary", "large_utf8", "large_list",
];
const UNITS = ["s", "ms", "us", "ns"];
const CONTINUATION = 0xffffffff;
const MAX_METADATA = 64 * 1024 * 1024;

/** One flatbuffer table: fields by their number. */
class Table {
  constructor(view, at) {
    this.view = view;
    this.at = at;
    this.vtable = at - view.getInt32(at, true);
    this.vtableSize = view.getUint16(this.vtable, true);
  }

  static root(view) {
    return new Table(view, view.getUint32(0, true));
  }

  offset(field) {
    const entry = 4 + 2 * field;
    const offset = entry < this.vtableSize ? this.view.getUint16(this.vtable + entry, true) : 0;
    return offset === 0 ? 0 : this.at + offset;
  }

  int(field, size, otherwise = 0) {
    const at = this.offset(field);
    if (at === 0) return otherwise;
    if (size === 1) return this.view.getUint8(at);
    if (size === 2) return this.view.getInt16(at, true);
    if (size === 4) return this.view.getInt32(at, true);
    return Number(this.view.getBigInt64(at, true));
  }

  target(field) {
    const at = this.offset(field);
    return at === 0 ? 0 : at + this.view.getUint32(at, true);
  }

  table(field) {
    const at = this.target(field);
    return at === 0 ? null : new Table(this.view, at);
  }

  string(field) {
    const at = this.target(field);
    if (at === 0) return "";
    const length = this.view.getUint32(at, true);
    return new TextDecoder().decode(new Uint8Array(this.view.buffer, this.view.byteOffset + at + 4, length));
  }

  /** Positions and number of the elements of a vector. */
  vector(field) {
    const at = this.target(field);
    return at === 0 ? { start: 0, length: 0 } : { start: at + 4, length: this.view.getUint32(at, true) };
  }

  tables(field) {
    const { start, length } = this.vector(field);
    return Array.from({ length }, (_, index) => {
      const at = start + 4 * index;
      return new Table(this.view, at + this.view.getUint32(at, true));
    });
  }
}

function readType(table) {
  const kind = TYPES[table.int(2, 1)] ?? "unknown";
  const of = table.table(3);
  switch (kind) {
    case "int":
      return { kind, bits: of.int(0, 4), signed: of.int(1, 1) !== 0 };
    case "float":
      return { kind, bits: [16, 32, 64][of.int(0, 2)] };
    case "decimal":
      return { kind, precision: of.int(0, 4), scale: of.int(1, 4), bits: of.int(2, 4, 128) };
    case "date":
      return { kind, unit: of.int(0, 2, 1) === 0 ? "day" : "ms" };
    case "time":
      return { kind, unit: UNITS[of.int(0, 2, 1)], bits: of.int(1, 4, 32) };
    case "timestamp":
      return { kind, unit: UNITS[of.int(0, 2)], zone: of.string(1) };
    case "duration":
      return { kind, unit: UNITS[of.int(0, 2, 1)] };
    case "interval":
      return { kind, unit: ["months", "day_time", "month_day_nano"][of.int(0, 2)] };
    case "fixed_binary":
    case "fixed_list":
      return { kind, size: of.int(0, 4) };
    default:
      return { kind };
  }
}

function readField(table) {
  const field = { name: table.string(0), type: readType(table), children: table.tables(5).map(readField), dictionary: null };
  const encoding = table.table(4);
  if (encoding) {
    const index = encoding.table(1);
    field.dictionary = { id: encoding.int(0, 8), bits: index ? index.int(0, 4) : 32, signed: index ? index.int(1, 1) !== 0 : true };
  }
  return field;
}

/** Walks the nodes and buffers of one record batch in the order of its fields. */
class BatchReader {
  constructor(batch, body, dictionaries) {
    if (batch.table(3)) throw new Error("the answer is compressed in a way that was not asked for");
    this.view = batch.view;
    this.body = body;
    this.dictionaries = dictionaries;
    this.nodes = batch.vector(1);
    this.buffers = batch.vector(2);
    this.node = 0;
    this.buffer = 0;
  }

  nextNode() {
    const at = this.nodes.start + 16 * this.node++;
    return { length: Number(this.view.getBigInt64(at, true)), nulls: Number(this.view.getBigInt64(at + 8, true)) };
  }

  nextBuffer() {
    const at = this.buffers.start + 16 * this.buffer++;
    const offset = Number(this.view.getBigInt64(at, true));
    return { offset, length: Number(this.view.getBigInt64(at + 8, true)) };
  }

  array(Type) {
    const { offset, length } = this.nextBuffer();
    return new Type(this.body, offset, Math.floor(length / Type.BYTES_PER_ELEMENT));
  }

  validity(nulls) {
    const bits = this.array(Uint8Array);
    return nulls > 0 && bits.length > 0 ? (index) => (bits[index >> 3] & (1 << (index & 7))) !== 0 : null;
  }

  vector(field) {
    if (field.dictionary) return this.dictionaryVector(field);
    const { kind } = field.type;
    const { length, nulls } = this.nextNode();
    if (kind === "null") return { length, get: () => null };
    if (kind === "union" || kind === "unknown") throw new Error(`the column ${field.name} has a type that is not shown here`);
    const valid = this.validity(nulls);
    const get = this.getter(field);
    return { length, get: valid ? (index) => (valid(index) ? get(index) : null) : get };
  }

  dictionaryVector(field) {
    const { length, nulls } = this.nextNode();
    const valid = this.validity(nulls);
    const keys = this.array(intArray(field.dictionary));
    const values = this.dictionaries.get(field.dictionary.id);
    if (!values) throw new Error(`the column ${field.name} has a dictionary that did not come`);
    return { length, get: (index) => (valid && !valid(index) ? null : values.get(Number(keys[index]))) };
  }

  getter(field) {
    const { type } = field;
    switch (type.kind) {
      case "int":
        return at(this.array(intArray(type)));
      case "float":
        return type.bits === 16 ? halves(this.array(Uint16Array)) : at(this.array(type.bits === 32 ? Float32Array : Float64Array));
      case "bool": {
        const bits = this.array(Uint8Array);
        return (index) => (bits[index >> 3] & (1 << (index & 7))) !== 0;
      }
      case "utf8":
      case "large_utf8":
      case "binary":
      case "large_binary":
        return this.bytesGetter(type.kind);
      case "fixed_binary": {
        const bytes = this.array(Uint8Array);
        return (index) => bytes.subarray(index * type.size, (index + 1) * type.size);
      }
      case "decimal":
        return this.decimalGetter(type);
      case "date":
        return at(this.array(type.unit === "day" ? Int32Array : BigInt64Array));
      case "time":
        return at(this.array(type.bits === 32 ? Int32Array : BigInt64Array));
      case "timestamp":
      case "duration":
        return at(this.array(BigInt64Array));
      case "interval":
        return this.intervalGetter(type);
      default:
        return this.nestedGetter(field);
    }
  }

  bytesGetter(kind) {
    const offsets = this.array(kind.startsWith("large") ? BigInt64Array : Int32Array);
    const bytes = this.array(Uint8Array);
    const slice = (index) => bytes.subarray(Number(offsets[index]), Number(offsets[index + 1]));
    if (kind.endsWith("binary")) return slice;
    const decoder = new TextDecoder();
    return (index) => decoder.decode(slice(index));
  }

  decimalGetter({ bits, scale }) {
    const words = this.array(bits === 32 ? Int32Array : BigInt64Array);
    const count = Math.max(1, bits / 64);
    return (index) => {
      if (count === 1) return decimalText(BigInt(words[index]), scale);
      let value = words[index * count + count - 1];
      for (let word = count - 2; word >= 0; word--) value = (value << 64n) | BigInt.asUintN(64, words[index * count + word]);
      return decimalText(value, scale);
    };
  }

  intervalGetter({ unit }) {
    if (unit === "months") {
      const months = this.array(Int32Array);
      return (index) => ({ months: months[index], days: 0, ns: 0n });
    }
    const words = this.array(Int32Array);
    if (unit === "day_time") {
      return (index) => ({ months: 0, days: words[2 * index], ns: BigInt(words[2 * index + 1]) * 1_000_000n });
    }
    const long = new BigInt64Array(words.buffer, words.byteOffset, words.length >> 1);
    return (index) => ({ months: words[4 * index], days: words[4 * index + 1], ns: long[2 * index + 1] });
  }

  nestedGetter(field) {
    const { kind, size } = field.type;
    if (kind === "struct") {
      const children = field.children.map((child) => [child, this.vector(child)]);
      return (index) => ({ struct: children.map(([child, vector]) => [child, vector.get(index)]) });
    }
    if (kind === "fixed_list") {
      const [child] = field.children;
      const vector = this.vector(child);
      return (index) => list(child, vector, index * size, (index + 1) * size);
    }
    const offsets = this.array(kind === "large_list" ? BigInt64Array : Int32Array);
    const [child] = field.children;
    const vector = this.vector(child);
    const of = (index) => list(child, vector, Number(offsets[index]), Number(offsets[index + 1]));
    if (kind === "list" || kind === "large_list") return of;
    if (kind !== "map") throw new Error(`the column ${field.name} has a type that is not shown here`);
    return (index) => ({ map: of(index).list.map(({ struct: [key, value] }) => [key, value]) });
  }
}

function list(child, vector, from, to) {
  return { child, list: Array.from({ length: to - from }, (_, index) => vector.get(from + index)) };
}

function at(array) {
  return (index) => array[index];
}

function intArray({ bits, signed }) {
  if (signed) return { 8: Int8Array, 16: Int16Array, 32: Int32Array, 64: BigInt64Array }[bits];
  return { 8: Uint8Array, 16: Uint16Array, 32: Uint32Array, 64: BigUint64Array }[bits];
}

function halves(array) {
  return (index) => {
    const bits = array[index];
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  };
}

/** Writes an unscaled number with its decimal point; all digits are kept. */
export function decimalText(value, scale) {
  const sign = value < 0n ? "-" : "";
  const digits = (value < 0n ? -value : value).toString();
  if (scale <= 0) return sign + digits + "0".repeat(value === 0n ? 0 : -scale);
  const padded = digits.padStart(scale + 1, "0");
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}

/** Takes bytes in pieces of any size and gives them out in pieces of the size that is asked for. */
class Bytes {
  constructor() {
    this.chunks = [];
    this.length = 0;
  }

  push(chunk) {
    if (chunk.length > 0) this.chunks.push(chunk);
    this.length += chunk.length;
  }

  /** Copies the first `size` bytes into a buffer of their own, so that arrays in it are aligned. */
  peek(size) {
    const out = new Uint8Array(size);
    let filled = 0;
    for (const chunk of this.chunks) {
      const part = chunk.subarray(0, size - filled);
      out.set(part, filled);
      filled += part.length;
      if (filled === size) break;
    }
    return out;
  }

  take(size) {
    const out = this.peek(size);
    let left = size;
    while (left > 0) {
      const [first] = this.chunks;
      if (first.length <= left) {
        left -= first.length;
        this.chunks.shift();
      } else {
        this.chunks[0] = first.subarray(left);
        left = 0;
      }
    }
    this.length -= size;
    return out;
  }
}

/** Reads a stream piece by piece: `push` returns the batches that are whole. */
export class StreamReader {
  constructor() {
    this.bytes = new Bytes();
    this.fields = null;
    this.dictionaries = new Map();
    this.ended = false;
  }

  /** Returns the batches that have come, each `{ length, columns }`. */
  push(chunk) {
    this.bytes.push(chunk);
    const batches = [];
    while (!this.ended) {
      const message = this.nextMessage();
      if (!message) break;
      const batch = this.read(message);
      if (batch) batches.push(batch);
    }
    return batches;
  }

  nextMessage() {
    if (this.bytes.length < 8) return null;
    const head = new DataView(this.bytes.peek(8).buffer);
    if (head.getUint32(0, true) !== CONTINUATION) throw new Error("the answer is not an Arrow stream");
    const size = head.getInt32(4, true);
    if (size === 0) {
      this.ended = true;
      return null;
    }
    if (size < 0 || size > MAX_METADATA) throw new Error("the answer is not an Arrow stream");
    if (this.bytes.length < 8 + size) return null;
    const message = Table.root(new DataView(this.bytes.peek(8 + size).buffer, 8));
    const bodyLength = message.int(3, 8);
    if (this.bytes.length < 8 + size + bodyLength) return null;
    this.bytes.take(8 + size);
    return { message, body: this.bytes.take(bodyLength).buffer };
  }

  read({ message, body }) {
    const header = message.table(2);
    switch (message.int(1, 1)) {
      case 1:
        this.fields = header.tables(1).map(readField);
        return null;
      case 2:
        this.readDictionary(header, body);
        return null;
      case 3: {
        const reader = new BatchReader(header, body, this.dictionaries);
        return { length: header.int(0, 8), bytes: body.byteLength, columns: this.fields.map((field) => reader.vector(field)) };
      }
      default:
        return null;
    }
  }

  readDictionary(header, body) {
    const id = header.int(0, 8);
    const find = (fields) => {
      for (const field of fields) {
        const found = field.dictionary?.id === id ? field : find(field.children);
        if (found) return found;
      }
      return null;
    };
    const field = find(this.fields);
    if (!field) return;
    const vector = new BatchReader(header.table(1), body, this.dictionaries).vector({ ...field, dictionary: null });
    const before = header.int(2, 1) ? this.dictionaries.get(id) : null;
    this.dictionaries.set(id, before ? joined(before, vector) : vector);
  }
}

function joined(one, other) {
  return { length: one.length + other.length, get: (index) => (index < one.length ? one.get(index) : other.get(index - one.length)) };
}
