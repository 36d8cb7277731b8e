// Requests to the server that the page is from: relative addresses, the token of the session, errors as errors.
//
// The token is in the header of requests, never in an address. Nothing asks another host.

import { StreamReader } from "./lib/arrow.js";
import { Rows } from "./lib/rows.js";
import { token } from "./session.js";

/** Most of an answer that a page holds; the rest is for a download. */
export const MOST_ROWS = 1_000_000;
export const MOST_BYTES = 256 * 1024 * 1024;

let onUnauthorized = () => {};

export function whenUnauthorized(handler) {
  onUnauthorized = handler;
}

/** What a request that failed was answered. */
export class Failed extends Error {
  constructor(message, status, body = null) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

/** Sends a request; an answer that is no success is thrown. */
export async function send(path, { method = "GET", body, headers = {}, signal } = {}) {
  const all = { accept: "application/json", ...headers };
  if (token()) all.authorization = `Bearer ${token()}`;
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), { method, body, headers: all, signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failed("The server does not answer. It may be restarting; try again.", 0);
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => null);
  if (response.status === 401 && path !== "api/v1/auth/verify") onUnauthorized();
  throw new Failed(answer?.error ?? `the server answered ${response.status}`, response.status, answer);
}

export async function get(path, options) {
  return (await send(path, options)).json();
}

/** Sends JSON, and reads JSON if there is any. */
export async function change(method, path, value) {
  const body = value === undefined ? undefined : JSON.stringify(value);
  const response = await send(path, { method, body, headers: body ? { "content-type": "application/json" } : {} });
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** Makes an address of parts that may have any character. */
export function path(strings, ...parts) {
  return strings.reduce((all, text, index) => all + text + (index < parts.length ? encodeURIComponent(parts[index]) : ""), "");
}

/** Runs a statement. `onProgress` is told of the rows as they come; the rows end at what a page can hold (`truncated`). */
export async function query(sql, { database, signal, onProgress } = {}) {
  const started = performance.now();
  const controller = new AbortController();
  const abort = () => controller.abort();
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  const rows = new Rows();
  const outcome = { rows, id: "", bytes: 0, truncated: false };
  try {
    const response = await send("api/v1/query?format=arrow", {
      method: "POST",
      body: JSON.stringify({ sql, database }),
      headers: { "content-type": "application/json" },
      signal: controller.signal,
    });
    outcome.id = response.headers.get("x-arc-query-id") ?? "";
    await readAnswer(response, outcome, () => onProgress?.(outcome));
    if (outcome.truncated) abort();
  } catch (error) {
    error.partial = rows.length > 0 ? outcome : null;
    throw error;
  } finally {
    signal?.removeEventListener("abort", abort);
    outcome.ms = performance.now() - started;
  }
  return outcome;
}

async function readAnswer(response, outcome, onProgress) {
  const { rows } = outcome;
  // Statements without rows are answered in JSON or with an empty stream.
  const reader = new StreamReader();
  const stream = response.body.getReader();
  let told = 0;
  for (;;) {
    const { done, value } = await read(stream, rows);
    if (done) break;
    outcome.bytes += value.length;
    const batches = reader.push(value);
    if (reader.fields) rows.fields = reader.fields;
    for (const batch of batches) {
      if (rows.length >= MOST_ROWS || rows.bytes >= MOST_BYTES) {
        outcome.truncated = true;
        return;
      }
      rows.add(batch);
    }
    if (performance.now() - told > 100) {
      told = performance.now();
      onProgress();
    }
  }
  if (!reader.ended) throw broken(rows);
}

async function read(stream, rows) {
  try {
    return await stream.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw broken(rows);
  }
}

function broken(rows) {
  return new Failed(`The answer broke off after ${rows.length} rows: the query failed half-way or the server went away. Its log has the reason.`, 0);
}

/** Opens a tail of a table. Kept once the server has it, by a function that waits until rows come. */
export async function tail(table, database, signal) {
  const response = await send(path`api/v1/tail?format=ndjson&db=${database}&table=${table}`, { signal });
  return () => firstRow(response.body.getReader());
}

async function firstRow(stream) {
  let text = "";
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await stream.read().catch((error) => {
      throw error.name === "AbortError" ? error : new Failed("The server went away while its rows were followed.", 0);
    });
    if (done) throw new Failed("The server ended the rows that were followed.", 0);
    text = (text + decoder.decode(value, { stream: true })).trimStart();
    const end = text.indexOf("\n");
    if (end < 0) continue;
    const row = JSON.parse(text.slice(0, end));
    // The last line of a tail says why it has ended; each row has a time.
    if (!("time" in row)) throw new Failed(row.error, row.status);
    return;
  }
}

/** Runs a statement and returns its rows as arrays of values; for small answers. */
export async function queryRows(sql, options) {
  const { rows } = await query(sql, options);
  return Array.from({ length: rows.length }, (_, row) => rows.fields.map((_, column) => rows.get(row, column)));
}

/** Bytes of a download that are held before they go into a blob, which a browser keeps on disk. */
const PIECE_BYTES = 16 * 1024 * 1024;

/** Has the browser save what a statement answers in a format. One that breaks off is not saved. */
export async function download(sql, database, format, name, { signal, onProgress } = {}) {
  const response = await send(`api/v1/query?format=${format}`, {
    method: "POST",
    body: JSON.stringify({ sql, database }),
    headers: { "content-type": "application/json", accept: "*/*" },
    signal,
  });
  const stream = response.body.getReader();
  const type = response.headers.get("content-type") ?? "";
  let whole = new Blob([], { type });
  let pieces = [];
  let held = 0;
  let bytes = 0;
  for (;;) {
    const { done, value } = await stream.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      throw new Failed(`The download broke off after ${bytes} bytes, and nothing was saved: the query failed half-way or the server went away. Its log has the reason.`, 0);
    });
    if (value) {
      pieces.push(value);
      held += value.length;
      bytes += value.length;
    }
    if (done || held > PIECE_BYTES) {
      whole = new Blob([whole, ...pieces], { type });
      pieces = [];
      held = 0;
    }
    onProgress?.(bytes);
    if (done) break;
  }
  save(whole, name);
}

/** Has the browser save a file. */
export function save(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
