// Files: dropped or picked, looked into before they go, imported with their progress.

import { useState } from "preact/hooks";

import { Failed } from "../api.js";
import { bytes } from "../lib/display.js";
import { check } from "../lib/lineprotocol.js";
import { count } from "../lib/locale.js";
import { readParquet } from "../lib/parquet.js";
import { csvPreview } from "../lib/preview.js";
import { href } from "../route.js";
import { token } from "../session.js";
import { Button, Field, Notice, Select, useApp } from "../ui.jsx";
import { DatabaseField, Measurements } from "./load-parts.jsx";

const KINDS = { csv: "csv", tsv: "csv", parquet: "parquet", lp: "lp", txt: "lp", line: "lp" };

/** Tells by its name what a file is; `a.csv.gz` is CSV. */
function kindOf(name) {
  const parts = name.toLowerCase().split(".").filter((part) => !["gz", "zst", "zip"].includes(part));
  return KINDS[parts.at(-1)] ?? "csv";
}

const HEAD_BYTES = 64 * 1024;
const SEPARATORS = [[",", "comma"], [";", "semicolon"], ["\t", "tab"], ["|", "bar"]];
const TIMES = [
  ["", "found in the file"],
  ["epoch_s", "seconds since 1970"], ["epoch_ms", "milliseconds"], ["epoch_us", "microseconds"], ["epoch_ns", "nanoseconds"],
  ["%d.%m.%Y", "31.1.2026"], ["%d.%m.%Y %H:%M", "31.1.2026 12:00"], ["%d/%m/%Y", "31/1/2026"], ["%d/%m/%Y %H:%M", "31/1/2026 12:00"],
  ["%m/%d/%Y", "1/31/2026"], ["%m/%d/%Y %H:%M", "1/31/2026 12:00"],
  ["excel", "days of a spreadsheet"], ["year", "years"], ["julian", "Julian days"], ["ordinal", "days of the calendar"],
];

/** Reads the beginning of a file as text, also of one that gzip has made small; `null` of zstd and ZIP, which browsers cannot unpack. */
async function headOf(file) {
  const part = file.slice(0, HEAD_BYTES);
  const magic = new Uint8Array(await part.slice(0, 4).arrayBuffer());
  if (["28b52ffd", "504b0304"].includes([...magic].map((byte) => byte.toString(16).padStart(2, "0")).join(""))) return null;
  if (magic[0] !== 0x1f || magic[1] !== 0x8b) return part.text();
  const reader = part.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const text = new TextDecoder();
  let found = "";
  try {
    while (found.length < HEAD_BYTES) {
      const { done, value } = await reader.read();
      if (done) break;
      found += text.decode(value, { stream: true });
    }
    reader.cancel().catch(() => {});
  } catch {
    // The part that was taken ends in the middle of what is compressed.
  }
  return found;
}

/** Looks into a file: what is in it, as far as its beginning or its end says. */
async function look(file) {
  const kind = kindOf(file.name);
  const table = file.name.replace(/\.(gz|zst|zip)$/i, "").replace(/\.[^.]*$/, "");
  const one = { file, kind, table, tags: "", times: "", state: "waits", progress: 0, columns: [], head: "", trouble: "" };
  try {
    if (kind === "parquet") {
      const { columns, rows } = await readParquet(file);
      const time = columns.find(({ name }) => /^_?(time|timestamp|ts|date|datetime)$/i.test(name)) ?? columns.find(({ type }) => type.startsWith("timestamp"));
      return { ...one, columns, rowCount: rows, time: time?.name ?? "" };
    }
    return { ...one, ...read(kind, (await headOf(file)) ?? "", file.size > HEAD_BYTES) };
  } catch (error) {
    return { ...one, time: "", trouble: error.message };
  }
}

/** Reads the beginning of a text file as one of a kind; with `separator` as CSV that has it. */
function read(kind, head, goesOn, separator) {
  if (kind === "lp") return { head, goesOn, lines: check(goesOn ? head.slice(0, head.lastIndexOf("\n") + 1) : head), columns: [], time: "" };
  if (kind !== "csv" || head === "") return { head, goesOn, columns: [], time: "" };
  const found = csvPreview(head, separator ? { separator, goesOn } : { goesOn });
  return { head, goesOn, separator: found.separator, columns: found.columns, rows: found.rows, time: found.time };
}

export function Files() {
  const app = useApp();
  const [database, setDatabase] = useState(app.database);
  const [files, setFiles] = useState([]);
  const [over, setOver] = useState(false);
  const add = async (list) => {
    const more = await Promise.all([...list].map(look));
    setFiles((before) => [...before, ...more]);
  };
  const patch = (file, change) => setFiles((before) => before.map((one) => (one.file === file ? { ...one, ...change } : one)));
  const upload = async (one, check) => {
    patch(one.file, { state: "runs", progress: 0, error: "", result: undefined });
    const params = new URLSearchParams({ db: database, check });
    if (one.kind !== "lp") {
      params.set("measurement", one.table);
      if (one.time) params.set("time_column", one.time);
      if (one.tags.trim()) params.set("tags", one.tags);
    }
    if (one.kind !== "lp" && one.times) params.set("time_format", one.times);
    if (one.kind === "csv" && one.separator && one.separator !== ",") params.set("delimiter", one.separator === "\t" ? "tab" : one.separator);
    try {
      const { result, status } = await post(`api/v1/import/${one.kind}?${params}`, one.file, (progress) => patch(one.file, { progress }));
      patch(one.file, { state: check ? "waits" : status === "ok" ? "done" : "partial", result });
      if (!check) app.refresh();
    } catch (error) {
      patch(one.file, { state: "failed", error: error.message });
    }
  };
  return (
    <>
      <div class="row">
        <DatabaseField value={database} onInput={setDatabase} />
      </div>
      <label class={`drop ${over ? "over" : ""}`} onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)} onDrop={(event) => { event.preventDefault(); setOver(false); add(event.dataTransfer.files); }}>
        <b>Drop files here</b> or click to pick them
        <small>CSV, Parquet or line protocol; gzip, zstd and zip are fine</small>
        <input type="file" multiple onChange={(event) => { add(event.currentTarget.files); event.currentTarget.value = ""; }} />
      </label>
      {files.map((one) => (
        <section class="card upload" key={one.file.name + one.file.size} aria-label={one.file.name}>
          <header>
            <h2>{one.file.name}</h2>
            <span class="note">{bytes(one.file.size)}</span>
            <div class="spacer" />
            <Button icon="close" kind="ghost" label={`Remove ${one.file.name}`} onClick={() => setFiles(files.filter((other) => other !== one))} />
          </header>
          <div class="row">
            <Field label="Format"><Select value={one.kind} options={[["csv", "CSV"], ["parquet", "Parquet"], ["lp", "Line protocol"]]} onPick={(kind) => patch(one.file, { kind, ...(kind === "parquet" ? { columns: [] } : read(kind, one.head, one.goesOn)) })} /></Field>
            {one.kind !== "lp" && (
              <>
                <Field label="Table"><input type="text" value={one.table} onInput={(event) => patch(one.file, { table: event.currentTarget.value })} /></Field>
                <Field label="Time column">
                  {one.columns.length > 1 ? <Select value={one.time} options={[["", "found by its name"], ...one.columns.map((column) => [column.name, column.name])]} onPick={(time) => patch(one.file, { time })} /> : <input type="text" value={one.time} placeholder="found by its name" onInput={(event) => patch(one.file, { time: event.currentTarget.value })} />}
                </Field>
                {one.kind === "csv" && one.separator && <Field label="Separator"><Select value={one.separator} options={SEPARATORS} onPick={(separator) => patch(one.file, read("csv", one.head, one.goesOn, separator))} /></Field>}
                <Field label="Form of times"><Select value={one.times} options={TIMES} onPick={(times) => patch(one.file, { times })} /></Field>
                <Field label="Tags" hint="names, with commas"><input type="text" value={one.tags} onInput={(event) => patch(one.file, { tags: event.currentTarget.value })} /></Field>
              </>
            )}
            <Button disabled={one.state === "runs" || database === ""} onClick={() => upload(one, true)}>Check</Button>
            <Button kind="primary" disabled={one.state === "runs" || database === ""} onClick={() => upload(one, false)}>{one.state === "runs" ? "Importing…" : "Import"}</Button>
          </div>
          {one.trouble && one.state === "waits" && <Notice>{one.trouble}</Notice>}
          {one.state === "waits" && <Preview one={one} />}
          {one.state === "runs" && <progress max={1} value={one.progress} aria-label={`Import of ${one.file.name}`} />}
          {one.state === "failed" && <Notice>{one.error}</Notice>}
          {one.result && <Imported result={one.result} database={database} />}
        </section>
      ))}
    </>
  );
}

const MOST_SHOWN = 50;

/** Names and types, as far as they can be told before the file goes, and the first rows. */
function Preview({ one }) {
  if (one.lines) {
    return (
      <>
        {one.lines.errorCount > 0 && <Notice>{count(one.lines.errorCount)} of the first lines are wrong; line {one.lines.errors[0].line}, column {one.lines.errors[0].column}: {one.lines.errors[0].reason}</Notice>}
        <Measurements found={one.lines.measurements} />
      </>
    );
  }
  if (one.columns.length === 0) return null;
  const tags = new Set(one.tags.split(",").map((name) => name.trim()));
  const shown = one.columns.slice(0, MOST_SHOWN);
  const type = (column) => (column.name === one.time ? "time" : tags.has(column.name) ? "tag" : column.type);
  return (
    <div class="preview" tabIndex={0} role="region" aria-label={`What is in ${one.file.name}`}>
      <table>
        <thead>
          <tr>{shown.map((column, index) => <th scope="col" key={index}>{column.name}<small>{type(column)}</small></th>)}</tr>
        </thead>
        {one.rows && <tbody>{one.rows.map((row, index) => <tr key={index}>{shown.map((_, column) => <td key={column}>{(row[column] ?? "").slice(0, 100)}</td>)}</tr>)}</tbody>}
      </table>
      <p class="hint">
        {one.rowCount !== undefined && `${count(one.rowCount)} rows. `}
        {one.columns.length > MOST_SHOWN && `${count(one.columns.length)} columns, of which the first ${MOST_SHOWN} are here. `}
        {one.kind === "csv" && "Types are those that the first rows fit; the import looks at all of them."}
      </p>
    </div>
  );
}

function Imported({ result, database }) {
  const app = useApp();
  const table = result.check ? undefined : result.measurement ?? result.measurements?.[0];
  const types = result.types?.map(({ column, type, row, value }) => `${column} ${type}${type === "string" && row ? ` (row ${row}: ${JSON.stringify(value)})` : ""}`);
  return (
    <Notice kind={result.rows_rejected > 0 ? "bad" : "good"} action={table && <a class="button" href={href("draw", { table, db: database })} onClick={() => app.setDatabase(database)}>Draw {table}</a>}>
      {count(result.rows_imported)} rows {result.check ? "would be" : "are"} stored{result.rows_merged > 0 && `, ${count(result.rows_merged)} of them merged with rows of the same tags and time`}
      {result.rows_rejected > 0 && `, ${count(result.rows_rejected)} ${result.check ? "would be" : "were"} refused`}.
      {types && <p>{types.join(", ")}</p>}
      {result.time_form && <p>Times are {result.time_form}.</p>}
      {result.rejected?.length > 0 && <ul>{result.rejected.slice(0, 20).map((row) => <li key={row.row}>Row {row.row}{row.column && `, ${row.column}`}: {row.reason}</li>)}</ul>}
    </Notice>
  );
}

/** Sends a file in a form, telling how much of it has gone. */
function post(path, file, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", new URL(path, document.baseURI));
    if (token()) request.setRequestHeader("authorization", `Bearer ${token()}`);
    request.responseType = "json";
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.onerror = () => reject(new Failed("The connection broke; what was stored before is there.", 0));
    request.onload = () => {
      if (request.status < 300) resolve(request.response);
      else reject(new Failed(request.response?.error ?? `the server answered ${request.status}`, request.status));
    };
    const form = new FormData();
    form.append("file", file, file.name);
    request.send(form);
  });
}
