// Load: line protocol from a box, files by dropping them, sample data, and how other programs write to this server.

import { useMemo, useState } from "preact/hooks";

import { send } from "../api.js";
import { sampleLines } from "../lib/sample.js";
import { bytes } from "../lib/display.js";
import { count } from "../lib/locale.js";
import { check } from "../lib/lineprotocol.js";
import { clients } from "../lib/clients.js";
import { href } from "../route.js";
import { Button, Field, Notice, Select, Snippet, Tabs, useApp } from "../ui.jsx";
import { DatabaseField, Measurements } from "./load-parts.jsx";
import { Files } from "./files.jsx";

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
      {found && <Measurements found={found.measurements} />}
    </>
  );
}

function Clients() {
  const app = useApp();
  const [name, setName] = useState("curl");
  const all = clients({ url: new URL(".", document.baseURI).href.replace(/\/$/, ""), database: app.database, open: app.who.open });
  const chosen = all.find((client) => client.name === name);
  return (
    <>
      <p>These lines are for this server{app.who.open ? "" : <>; they take a token from the environment, as <code>ARC_TOKEN</code>: an administrator makes one under Server</>}.</p>
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
