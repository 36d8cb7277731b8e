// Load: line protocol from a box, files by dropping them, sample data, and how other programs write to this server.

import { useMemo, useState } from "preact/hooks";

import { Failed, send, token } from "../api.js";
import { sampleLines } from "../lib/sample.js";
import { bytes, count } from "../lib/display.js";
import { check } from "../lib/lineprotocol.js";
import { clients } from "../lib/clients.js";
import { href } from "../route.js";
import { Button, Field, Notice, Select, Snippet, Tabs, useApp } from "../ui.jsx";

const EXAMPLE = "pump,site=north,id=7 rpm=1450i,flow=12.5 \npump,site=north,id=8 rpm=1390i,flow=11.9 ";
const PRECISIONS = [["ns", "nanoseconds"], ["us", "microseconds"], ["ms", "milliseconds"], ["s", "seconds"]];
const MOST_CHECKED = 2_000_000;

export function Load() {
  const [tab, setTab] = useState("lines");
  return (
    <section class="work scroll" aria-label="Bring data in">
      <Tabs label="Ways to bring data in" current={tab} onPick={setTab} tabs={[["lines", "Lines"], ["files", "Files"], ["clients", "Other programs"], ["sample", "Sample data"]]} />
      <div class="pane narrow">
        {tab === "lines" && <Lines />}
        {tab === "files" && <Files />}
        {tab === "clients" && <Clients />}
        {tab === "sample" && <Sample />}
      </div>
    </section>
  );
}

function DatabaseField({ value, onInput }) {
  const { databases } = useApp();
  return (
    <Field label="Database" hint="Made if it is not there">
      <input type="text" list="databases" value={value} required onInput={(event) => onInput(event.currentTarget.value)} />
      <datalist id="databases">
        {databases.map(({ name }) => <option key={name} value={name} />)}
      </datalist>
    </Field>
  );
}

function Lines() {
  const app = useApp();
  const [text, setText] = useState("");
  const [database, setDatabase] = useState(app.database);
  const [precision, setPrecision] = useState("ns");
  const [answer, setAnswer] = useState(null);
  const [busy, setBusy] = useState(false);
  const found = useMemo(() => (text.length > MOST_CHECKED ? null : check(text)), [text]);
  const write = async () => {
    setBusy(true);
    try {
      const response = await send(`api/v1/write/line-protocol?precision=${precision}&db=${encodeURIComponent(database)}`, { method: "POST", body: text });
      setAnswer({ kind: "good", text: `${count(Number(response.headers.get("x-arc-points")))} points are stored.`, table: [...(found?.measurements.keys() ?? [])][0] });
      app.refresh();
    } catch (error) {
      setAnswer({ kind: "bad", text: error.message, lines: error.body?.lines ?? [], stored: error.body?.stored });
      if (error.body?.stored) app.refresh();
    }
    setBusy(false);
  };
  return (
    <>
      <div class="row">
        <DatabaseField value={database} onInput={setDatabase} />
        <Field label="Times are in">
          <Select value={precision} options={PRECISIONS} onPick={setPrecision} />
        </Field>
      </div>
      <Field label="Line protocol" wide hint="measurement,tag=value field=1.5,other=2i time – without a time, now is taken">
        <textarea class="code" rows={12} spellcheck={false} placeholder={EXAMPLE} value={text} onInput={(event) => { setText(event.currentTarget.value); setAnswer(null); }} />
      </Field>
      <div class="toolbar">
        <Button kind="primary" onClick={write} disabled={busy || text.trim() === "" || database === ""}>{busy ? "Writing…" : "Write"}</Button>
        <Button onClick={() => setText(EXAMPLE)}>Example</Button>
        <span class="status" role="status">
          {found ? `${count(found.points)} points${found.errorCount > 0 ? `, ${count(found.errorCount)} lines are wrong` : ""}` : `${bytes(text.length)}: too long to check here`}
        </span>
      </div>
      {answer && (
        <Notice kind={answer.kind} action={answer.table && <a class="button" href={href("draw", { table: answer.table, db: database })} onClick={() => app.setDatabase(database)}>Draw {answer.table}</a>}>
          {answer.text}
          {answer.lines?.length > 0 && (
            <ul>{answer.lines.map((line) => <li key={line.line}>Line {line.line}, column {line.column}: {line.reason}</li>)}</ul>
          )}
        </Notice>
      )}
      {found?.errors.length > 0 && (
        <div class="problems">
          <h2>Before it is sent</h2>
          <ul>{found.errors.slice(0, 20).map((error) => <li key={error.line}><b>Line {error.line}</b>, column {error.column}: {error.reason}</li>)}</ul>
        </div>
      )}
      {found?.measurements.size > 0 && (
        <table>
          <thead><tr><th scope="col">Table</th><th scope="col" class="number">Points</th><th scope="col">Tags</th><th scope="col">Fields</th></tr></thead>
          <tbody>
            {[...found.measurements].slice(0, 50).map(([name, about]) => (
              <tr key={name}>
                <td>{name}</td>
                <td class="number">{count(about.points)}</td>
                <td>{[...about.tags].join(", ")}</td>
                <td>{[...about.fields].map(([field, type]) => `${field} (${type})`).join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

const KINDS = { csv: "csv", tsv: "csv", parquet: "parquet", lp: "lp", txt: "lp", line: "lp" };

/** Tells by its name what a file is; `a.csv.gz` is CSV. */
function kindOf(name) {
  const parts = name.toLowerCase().split(".").filter((part) => part !== "gz" && part !== "zst");
  return KINDS[parts.at(-1)] ?? "csv";
}

async function look(file) {
  const kind = kindOf(file.name);
  const name = file.name.replace(/\.(gz|zst)$/i, "").replace(/\.[^.]*$/, "");
  const plain = kind !== "parquet" && !/\.(gz|zst)$/i.test(file.name);
  const head = plain ? await file.slice(0, 8192).text() : "";
  const columns = kind === "csv" && head ? head.split(/\r?\n/)[0].split(file.name.toLowerCase().endsWith(".tsv") ? "\t" : ",").map((column) => column.replace(/^"|"$/g, "")) : [];
  const time = columns.find((column) => /^(time|timestamp|ts|date|datetime|_time)$/i.test(column)) ?? "time";
  return { file, kind, table: name, time, tags: "", preview: head.split(/\r?\n/).slice(0, 6), columns, state: "waits", progress: 0 };
}

function Files() {
  const app = useApp();
  const [database, setDatabase] = useState(app.database);
  const [files, setFiles] = useState([]);
  const [over, setOver] = useState(false);
  const add = async (list) => {
    const more = await Promise.all([...list].map(look));
    setFiles((before) => [...before, ...more]);
  };
  const patch = (file, change) => setFiles((before) => before.map((one) => (one.file === file ? { ...one, ...change } : one)));
  const upload = async (one) => {
    patch(one.file, { state: "runs", progress: 0, error: "" });
    const params = new URLSearchParams({ db: database });
    if (one.kind !== "lp") {
      params.set("measurement", one.table);
      params.set("time_column", one.time);
      if (one.tags.trim()) params.set("tags", one.tags);
    }
    if (one.file.name.toLowerCase().includes(".tsv")) params.set("delimiter", "tab");
    try {
      const { result, status } = await post(`api/v1/import/${one.kind}?${params}`, one.file, (progress) => patch(one.file, { progress }));
      patch(one.file, { state: status === "ok" ? "done" : "partial", result });
      app.refresh();
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
        <small>CSV, Parquet or line protocol; gzip and zstd are fine</small>
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
            <Field label="Format"><Select value={one.kind} options={[["csv", "CSV"], ["parquet", "Parquet"], ["lp", "Line protocol"]]} onPick={(kind) => patch(one.file, { kind })} /></Field>
            {one.kind !== "lp" && (
              <>
                <Field label="Table"><input type="text" value={one.table} onInput={(event) => patch(one.file, { table: event.currentTarget.value })} /></Field>
                <Field label="Time column">
                  {one.columns.length > 1 ? <Select value={one.time} options={one.columns} onPick={(time) => patch(one.file, { time })} /> : <input type="text" value={one.time} onInput={(event) => patch(one.file, { time: event.currentTarget.value })} />}
                </Field>
                <Field label="Tags" hint="names, with commas"><input type="text" value={one.tags} onInput={(event) => patch(one.file, { tags: event.currentTarget.value })} /></Field>
              </>
            )}
            <Button kind="primary" disabled={one.state === "runs" || database === ""} onClick={() => upload(one)}>{one.state === "runs" ? "Importing…" : "Import"}</Button>
          </div>
          {one.preview.some(Boolean) && one.state === "waits" && <pre class="preview" tabIndex={0} aria-label="First lines">{one.preview.map((line) => line.slice(0, 300)).join("\n")}</pre>}
          {one.state === "runs" && <progress max={1} value={one.progress} aria-label={`Import of ${one.file.name}`} />}
          {one.state === "failed" && <Notice>{one.error}</Notice>}
          {one.result && <Imported result={one.result} database={database} />}
        </section>
      ))}
    </>
  );
}

function Imported({ result, database }) {
  const app = useApp();
  const table = result.measurement ?? result.measurements?.[0];
  return (
    <Notice kind={result.rows_rejected > 0 ? "bad" : "good"} action={table && <a class="button" href={href("draw", { table, db: database })} onClick={() => app.setDatabase(database)}>Draw {table}</a>}>
      {count(result.rows_imported)} rows are stored{result.rows_rejected > 0 && `, ${count(result.rows_rejected)} were refused`}.
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

function Clients() {
  const app = useApp();
  const [name, setName] = useState("curl");
  const all = clients({ url: new URL(".", document.baseURI).href.replace(/\/$/, ""), database: app.database, open: app.who.open });
  const chosen = all.find((client) => client.name === name);
  return (
    <>
      <p>These lines are for this server{app.who.open ? "" : "; TOKEN stands for a token that may write, made under Server"}.</p>
      <div class="row">
        <Field label="Program"><Select value={name} options={all.map((client) => client.name)} onPick={setName} /></Field>
      </div>
      <Snippet text={chosen.text} label={chosen.name} />
      <p class="hint">{chosen.hint}</p>
    </>
  );
}

function Sample() {
  const app = useApp();
  const [answer, setAnswer] = useState(null);
  const [busy, setBusy] = useState(false);
  const write = async () => {
    setBusy(true);
    try {
      const response = await send("api/v1/write/line-protocol?db=sample&precision=s", { method: "POST", body: sampleLines(Math.floor(Date.now() / 1000)) });
      setAnswer({ kind: "good", text: `${count(Number(response.headers.get("x-arc-points")))} points are in the database sample.` });
      await app.refresh();
      app.setDatabase("sample");
    } catch (error) {
      setAnswer({ kind: "bad", text: error.message });
    }
    setBusy(false);
  };
  return (
    <>
      <p>Six hours of made-up weather from three stations and of machines in a hall, up to now, in a database of its own: <code>sample</code>.</p>
      <div class="toolbar">
        <Button kind="primary" onClick={write} disabled={busy}>{busy ? "Writing…" : "Write sample data"}</Button>
      </div>
      {answer && <Notice kind={answer.kind} action={answer.kind === "good" && <a class="button" href={href("draw", { db: "sample", table: "weather" })}>Draw weather</a>}>{answer.text}</Notice>}
    </>
  );
}
