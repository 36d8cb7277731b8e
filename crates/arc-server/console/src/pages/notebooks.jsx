// Notebooks: cells of SQL and text, kept in the server; as a dashboard they show answers alone and refresh themselves.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { get, path, query, save } from "../api.js";
import { asOfClause, readAsOf } from "../lib/asof.js";
import { display } from "../lib/display.js";
import { moment } from "../lib/locale.js";
import { blocks } from "../lib/markdown.js";
import { roles, toSeries } from "../lib/series.js";
import { isRead, substitute, usesRange } from "../lib/sql.js";
import { isoTime, rangeEnds } from "../lib/time.js";
import { AsOfPicker } from "../parts/asof.jsx";
import { Chart, KINDS, UNIT_NAMES } from "../parts/chart.jsx";
import { SaveDocument, openDocuments, saveDocument } from "../parts/documents.jsx";
import { Editor } from "../parts/editor.jsx";
import { Grid } from "../parts/grid.jsx";
import { RangePicker } from "../parts/range.jsx";
import { go } from "../route.js";
import { Button, Confirm, Dialog, Empty, Field, Notice, Select, useApp, useEvery, useLoad } from "../ui.jsx";

const LIVE = [["0", "Not live"], ["5", "Every 5 s"], ["10", "Every 10 s"], ["30", "Every 30 s"], ["60", "Every minute"]];
const VIEWS = [["rows", "Rows"], ...KINDS];
const WIDTHS = [["half", "Half as wide"], ["whole", "As wide as the page"]];
const UNITS = UNIT_NAMES.map(([unit, text]) => [unit || "none", text]);
const MOST_CELLS = 100;
const VARIABLE = /^(?!from$|to$|interval$)[A-Za-z_]\w{0,40}$/;

const emptyBody = (database) => ({
  database,
  range: { last: "1h" },
  live: "0",
  asof: "",
  variables: [],
  cells: [
    { id: 1, kind: "text", text: "# A new notebook\n\nWrite **text** here, and SQL below. `$from`, `$to` and `$interval` follow the range." },
    { id: 2, kind: "sql", text: "SHOW TABLES", view: "rows" },
  ],
});

/** Reads a notebook from a file, leaving out what is none of it. */
export function readNotebook(text) {
  const found = JSON.parse(text);
  if (found?.arc !== "notebook" || !Array.isArray(found.body?.cells)) throw new Error("This file is no notebook of Arc.");
  const cells = found.body.cells.slice(0, MOST_CELLS).map((cell, index) => ({
    id: index + 1,
    kind: cell.kind === "text" ? "text" : "sql",
    text: String(cell.text ?? ""),
    view: VIEWS.some(([name]) => name === cell.view) ? cell.view : "rows",
    unit: UNITS.some(([name]) => name === cell.unit) ? cell.unit : "none",
    width: cell.width === "whole" ? "whole" : "half",
    log: cell.log === true,
  }));
  const variables = (Array.isArray(found.body.variables) ? found.body.variables : []).filter(({ name }) => VARIABLE.test(name)).map(({ name, sql, value }) => ({ name, sql: String(sql ?? ""), value: String(value ?? "") }));
  const range = found.body.range && typeof found.body.range === "object" ? found.body.range : { last: "1h" };
  return { name: String(found.name ?? "Notebook"), body: { database: String(found.body.database ?? "default"), range, live: "0", asof: String(found.body.asof ?? ""), variables, cells } };
}

export function Notebooks({ route }) {
  const id = route.params.get("id");
  return id ? <Opened key={id} id={id} grid={route.params.get("view") === "grid"} /> : <List />;
}

function List() {
  const { database, times, reader } = useApp();
  const { list, error, remove, reload } = openDocuments("notebook");
  const [failed, setFailed] = useState("");
  const [asks, setAsks] = useState(null);
  const create = async (name, body) => {
    try {
      const made = await saveDocument({ kind: "notebook", name, body });
      go("notebooks", { id: made.id });
    } catch (problem) {
      setFailed(problem.message);
    }
  };
  const bring = async (file) => {
    try {
      const { name, body } = readNotebook(await file.text());
      await create(name, body);
    } catch (problem) {
      setFailed(problem.message);
    }
  };
  return (
    <section class="work scroll" aria-label="Notebooks">
      <div class="toolbar">
        <h2>Notebooks</h2>
        <div class="spacer" />
        {!reader && <label class="button">
          Import
          <input class="unseen" type="file" accept=".json" onChange={(event) => event.currentTarget.files[0] && bring(event.currentTarget.files[0])} />
        </label>}
        {!reader && <Button kind="primary" icon="plus" onClick={() => create("Notebook", emptyBody(database))}>New notebook</Button>}
      </div>
      {(failed || error) && <Notice>{failed || error}</Notice>}
      <div class="pane narrow">
        <ul class="list">
          {list?.map((document) => (
            <li key={document.id}>
              <button type="button" onClick={() => go("notebooks", { id: document.id })}>
                <b>{document.name}</b>
                <small>{[document.owner, document.shared && "shared", moment(document.updated_at, times)].filter(Boolean).join(" · ")}</small>
              </button>
              <Button onClick={() => go("notebooks", { id: document.id, view: "grid" })}>As dashboard</Button>
              {document.editable && !reader && <Button icon="trash" kind="ghost" label={`Delete ${document.name}`} onClick={() => setAsks(document)} />}
            </li>
          ))}
        </ul>
        {list?.length === 0 && <Empty title="No notebooks yet"><p>A notebook has cells of SQL, charts and text, and is kept in the server. As a dashboard it refreshes itself.</p></Empty>}
      </div>
      {asks && <Confirm title="Delete the notebook" verb="Delete" onClose={() => setAsks(null)} onConfirm={() => remove(asks).then(reload)}>The notebook <b>{asks.name}</b> is gone for good.</Confirm>}
    </section>
  );
}

function Opened({ id, grid }) {
  const app = useApp();
  const loaded = useLoad(() => get(path`api/v1/console/documents/${id}`), [id]);
  const [document, setDocument] = useState(null);
  const [body, setBody] = useState(null);
  const [dirty, setDirty] = useState(false);
  const [dialog, setDialog] = useState(false);
  const [failed, setFailed] = useState(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (!loaded.value) return;
    const { body: kept, ...rest } = loaded.value;
    setDocument(rest);
    setBody({ range: { last: "1h" }, live: "0", asof: "", variables: [], cells: [], ...kept });
    setDirty(false);
  }, [loaded.value]);
  const change = (patch) => {
    setBody((before) => ({ ...before, ...patch }));
    setDirty(true);
  };
  const put = async () => {
    try {
      const saved = await saveDocument({ document, kind: "notebook", name: document.name, body, shared: document.shared });
      setDocument({ ...document, version: saved.version });
      setDirty(false);
      setFailed(null);
    } catch (problem) {
      setFailed(problem);
    }
  };
  const live = Number(body?.live ?? 0);
  useEvery(() => setTurn((before) => before + 1), live * 1000, [live]);
  useEffect(() => {
    const warn = (event) => dirty && !app.reader && event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [dirty]);
  if (loaded.error && !body) return <Notice>{loaded.error}</Notice>;
  if (!body || !document) return null;
  const cell = (at, patch) => change({ cells: body.cells.map((one, index) => (index === at ? { ...one, ...patch } : one)) });
  const add = (at, kind) => change({ cells: [...body.cells.slice(0, at), { id: Math.max(0, ...body.cells.map((one) => one.id)) + 1, kind, text: "", view: "rows", unit: "none", width: "half", log: false }, ...body.cells.slice(at)] });
  const swap = (at, other) => {
    const cells = [...body.cells];
    [cells[at], cells[other]] = [cells[other], cells[at]];
    change({ cells });
  };
  const zoom = (from, to) => change({ range: { from: isoTime(BigInt(Math.floor(from * 1e6)) * 1000n), to: isoTime(BigInt(Math.ceil(to * 1e6)) * 1000n) } });
  const exportFile = () => save(new Blob([JSON.stringify({ arc: "notebook", name: document.name, body }, null, 2)], { type: "application/json" }), `${document.name}.json`);
  return (
    <section class="work scroll" aria-label={document.name}>
      <div class="toolbar">
        <a class="button" href="#/notebooks">All</a>
        <input class="title-input" type="text" aria-label="Name" value={document.name} disabled={!document.editable} onInput={(event) => { setDocument({ ...document, name: event.currentTarget.value }); setDirty(true); }} />
        <RangePicker range={body.range} onPick={({ last, from, to }) => change({ range: last ? { last } : { from, to } })} />
        <AsOfPicker state={body.asof} onPick={(asof) => change({ asof })} />
        <Select label="Refresh" value={body.live} options={LIVE} onPick={(value) => change({ live: value })} />
        <Button icon="run" onClick={() => setTurn(turn + 1)}>Run all</Button>
        <div class="spacer" />
        {!app.who.open && !app.reader && document.editable && (
          <label class="check" title="Everybody with a token may see it"><input type="checkbox" checked={document.shared} onChange={(event) => { setDocument({ ...document, shared: event.currentTarget.checked }); setDirty(true); }} /> Shared</label>
        )}
        <Button onClick={() => go("notebooks", { id, view: grid ? "" : "grid" })}>{grid ? "Edit" : "Dashboard"}</Button>
        <Button onClick={exportFile}>Export</Button>
        {app.reader ? null : document.editable ? <Button kind={dirty ? "primary" : ""} icon="save" disabled={!dirty} onClick={put}>{dirty ? "Save" : "Saved"}</Button> : <Button icon="save" onClick={() => setDialog(true)}>Save a copy</Button>}
      </div>
      <Variables body={body} grid={grid} onChange={(variables) => change({ variables })} />
      {failed && (
        <Notice action={failed.status === 409 && <><Button onClick={() => setDialog(true)}>Save as a copy</Button> <Button onClick={() => { setFailed(null); loaded.reload(); }}>Take theirs</Button></>}>
          {failed.status === 409 ? "Somebody saved this notebook since you opened it. Nothing of theirs was overwritten, and yours is still here." : failed.message}
        </Notice>
      )}
      <div class={grid ? "board" : "cells"}>
        {body.cells.map((one, at) =>
          grid ? (
            <div class={`cell ${one.kind} ${one.width ?? "half"}`} key={one.id}>{one.kind === "text" ? <Markdown text={one.text} /> : <Answer cell={one} body={body} turn={turn} height={220} auto onZoom={zoom} />}</div>
          ) : (
            <Cell key={one.id} cell={one} body={body} turn={turn} first={at === 0} last={at === body.cells.length - 1} onChange={(patch) => cell(at, patch)} onRemove={() => change({ cells: body.cells.filter((_, index) => index !== at) })} onMove={(step) => swap(at, at + step)} onAdd={(kind) => add(at + 1, kind)} onZoom={zoom} />
          ),
        )}
        {!grid && body.cells.length === 0 && <div class="toolbar"><Button icon="plus" onClick={() => add(0, "sql")}>SQL</Button><Button icon="plus" onClick={() => add(0, "text")}>Text</Button></div>}
      </div>
      {dialog && <SaveDocument kind="notebook" name={`${document.name} (copy)`} document={null} body={body} onClose={() => setDialog(false)} onSaved={(saved) => { setDirty(false); go("notebooks", { id: saved.id }); }} />}
      {app.databases.length > 0 && !app.databases.some(({ name }) => name === body.database) && <Notice kind="info">The database {body.database} of this notebook is not here.</Notice>}
    </section>
  );
}

const valuesOf = (body) => Object.fromEntries(body.variables.map(({ name, value }) => [name, value]));

/** Names that stand for a text in all cells, picked from what a query answers. */
function Variables({ body, grid, onChange }) {
  const [open, setOpen] = useState(false);
  const [want, setWant] = useState({ name: "", sql: "" });
  const { variables } = body;
  const patch = (at, part) => onChange(variables.map((one, index) => (index === at ? { ...one, ...part } : one)));
  const add = (event) => {
    event.preventDefault();
    onChange([...variables.filter(({ name }) => name !== want.name), { ...want, value: "" }]);
    setOpen(false);
  };
  if (grid && variables.length === 0) return null;
  return (
    <div class="toolbar variables">
      {variables.map((variable, at) => (
        <Variable key={variable.name + variable.sql} variable={variable} database={body.database} onPick={(value) => patch(at, { value })} onRemove={grid ? null : () => onChange(variables.filter((_, index) => index !== at))} />
      ))}
      {!grid && <Button icon="plus" kind="ghost" onClick={() => setOpen(true)}>Variable</Button>}
      {open && (
        <Dialog title="New variable" onClose={() => setOpen(false)}>
          <form onSubmit={add}>
            <Field label="Name" hint="host: cells write $host for the text that is picked" wide>
              <input type="text" required pattern={VARIABLE.source} value={want.name} onInput={(event) => setWant({ ...want, name: event.currentTarget.value })} />
            </Field>
            <Field label="SQL whose first column has the values" wide>
              <textarea class="code" required rows={3} placeholder="SELECT DISTINCT host FROM cpu ORDER BY 1" value={want.sql} onInput={(event) => setWant({ ...want, sql: event.currentTarget.value })} />
            </Field>
            <footer><button type="submit" class="button primary">Add</button></footer>
          </form>
        </Dialog>
      )}
    </div>
  );
}

const MOST_VALUES = 1_000;

function Variable({ variable, database, onPick, onRemove }) {
  const { name, sql, value } = variable;
  const found = useLoad(async () => {
    if (!isRead(sql)) throw new Error("The SQL of a variable has to read.");
    const { rows } = await query(sql, { database });
    return Array.from({ length: Math.min(rows.length, MOST_VALUES) }, (_, row) => display(rows.get(row, 0), rows.fields[0]));
  }, [sql, database]);
  const values = found.value ?? [];
  useEffect(() => {
    if (value === "" && values.length > 0) onPick(values[0]);
  }, [found.value]);
  return (
    <span class="inline">
      <label class="inline">
        <span>${name}</span>
        <Select value={value} options={values.includes(value) ? values : [value, ...values]} onPick={onPick} />
      </label>
      {found.error && <small class="bad">{found.error}</small>}
      {onRemove && <Button icon="close" kind="ghost" label={`Remove ${name}`} onClick={onRemove} />}
    </span>
  );
}

function Cell({ cell, body, turn, first, last, onChange, onRemove, onMove, onAdd, onZoom }) {
  const app = useApp();
  const [own, setOwn] = useState(0);
  const [edits, setEdits] = useState(cell.text === "");
  const handle = useRef(null);
  const handlers = useRef({});
  const run = () => setOwn((before) => before + 1);
  handlers.current = { run, runAll: run, change: (text) => onChange({ text }) };
  return (
    <section class={`cell edit ${cell.kind}`} aria-label={cell.kind === "sql" ? "SQL" : "Text"}>
      <div class="cell-bar">
        {cell.kind === "sql" ? (
          <>
            <Button icon="run" kind="primary" onClick={run}>Run</Button>
            <Select label="Shown as" value={cell.view ?? "rows"} options={VIEWS} onPick={(view) => onChange({ view })} />
            {(cell.view ?? "rows") !== "rows" && <Select label="Unit" value={cell.unit ?? "none"} options={UNITS} onPick={(unit) => onChange({ unit })} />}
            {!["rows", "tiles", "heat", undefined].includes(cell.view) && (
              <label class="check"><input type="checkbox" checked={cell.log === true} onChange={(event) => onChange({ log: event.currentTarget.checked })} /> Logarithmic</label>
            )}
            <Select label="Width on the dashboard" value={cell.width ?? "half"} options={WIDTHS} onPick={(width) => onChange({ width })} />
          </>
        ) : (
          <Button onClick={() => setEdits(!edits)}>{edits ? "Done" : "Edit"}</Button>
        )}
        <div class="spacer" />
        <Button icon="up" kind="ghost" label="Move up" disabled={first} onClick={() => onMove(-1)} />
        <Button icon="down" kind="ghost" label="Move down" disabled={last} onClick={() => onMove(1)} />
        <Button icon="plus" kind="ghost" onClick={() => onAdd("sql")}>SQL</Button>
        <Button icon="plus" kind="ghost" onClick={() => onAdd("text")}>Text</Button>
        <Button icon="trash" kind="ghost" label="Remove this cell" onClick={onRemove} />
      </div>
      {cell.kind === "sql" ? (
        <>
          <Editor text={cell.text} handle={handle} handlers={handlers} schema={app.schema} database={body.database} label="SQL of the cell" small />
          <Answer cell={cell} body={body} turn={turn + own} height={240} onZoom={onZoom} />
        </>
      ) : edits ? (
        <textarea class="code" rows={6} aria-label="Text of the cell" value={cell.text} onInput={(event) => onChange({ text: event.currentTarget.value })} />
      ) : (
        <Markdown text={cell.text} />
      )}
    </section>
  );
}

/** The answer of a cell; what only reads runs by itself on a dashboard, everything else when somebody says so. */
function Answer({ cell, body, turn, height, auto, onZoom }) {
  const [state, setState] = useState({ rows: null, error: "" });
  const text = cell.text.trim().replace(/;$/, "");
  useEffect(() => {
    if (text === "" || (turn === 0 && !auto) || (auto && !isRead(text))) return undefined;
    const controller = new AbortController();
    const now = BigInt(Date.now()) * 1_000_000n;
    const ends = rangeEnds(body.range, now);
    if (!ends) return undefined;
    const clause = isRead(text) ? asOfClause(body.asof, now) : "";
    if (clause === null) {
      setState((before) => ({ ...before, error: `As of ${body.asof}: this is no time and no snapshot.` }));
      return undefined;
    }
    query(readAsOf(substitute(text, ends, valuesOf(body)), clause), { database: body.database, signal: controller.signal }).then(
      ({ rows }) => setState({ rows, ends, error: "" }),
      (error) => error.name !== "AbortError" && setState((before) => ({ ...before, error: error.message })),
    );
    return () => controller.abort();
  }, [turn, auto ? text : "", JSON.stringify(body.range), body.asof, JSON.stringify(valuesOf(body))]);
  const { rows } = state;
  const found = rows && cell.view !== "rows" ? roles(rows.fields) : null;
  const data = useMemo(() => (rows && found && !found.error ? toSeries(rows, found) : null), [rows, cell.view]);
  const range = state.ends && usesRange(text) ? [Number(state.ends.from / 1_000_000n) / 1e3, Number(state.ends.to / 1_000_000n) / 1e3] : undefined;
  return (
    <>
      {state.error && <Notice>{state.error}</Notice>}
      {rows && (cell.view === "rows" || !cell.view) && <div class="grid-box" style={{ height: `${Math.min(height + 40, 58 + 26 * Math.max(1, rows.length))}px` }}><Grid rows={rows} version={1} label="Rows of the cell" /></div>}
      {found?.error && <Notice kind="info">{found.error}</Notice>}
      {data && <Chart data={data} kind={cell.view} height={height} range={range} unit={cell.unit === "none" ? "" : cell.unit} log={cell.log === true} onZoom={onZoom} />}
    </>
  );
}

function Markdown({ text }) {
  return (
    <div class="markdown">
      {blocks(text).map((block, index) => {
        if (block.tag === "heading") {
          const Heading = `h${Math.min(4, block.level + 1)}`;
          return <Heading key={index}><Inline parts={block.parts} /></Heading>;
        }
        if (block.tag === "code") return <pre key={index} tabIndex={0}>{block.text}</pre>;
        if (block.tag === "list") return <ul key={index}>{block.items.map((parts, item) => <li key={item}><Inline parts={parts} /></li>)}</ul>;
        return <p key={index}><Inline parts={block.parts} /></p>;
      })}
    </div>
  );
}

function Inline({ parts }) {
  return parts.map(({ text, style, href }, index) => {
    if (href) return <a key={index} href={href} rel="noopener noreferrer" target="_blank">{text}</a>;
    const Style = style;
    return Style ? <Style key={index}>{text}</Style> : text;
  });
}
