// Draw: a chart of a table or of a statement, over a range that zooms, moves and refreshes. The address has all of it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { query, queryRows, save } from "../api.js";
import { asOfClause, readAsOf } from "../lib/asof.js";
import { milliseconds } from "../lib/display.js";
import { tablesIn } from "../lib/follow.js";
import { roles, seriesCsv, toSeries } from "../lib/series.js";
import { quoteName, substitute } from "../lib/sql.js";
import { firstRange, formatDuration, interval, isoTime, rangeEnds, wholeRange } from "../lib/time.js";
import { AsOfPicker } from "../parts/asof.jsx";
import { Chart, KINDS, UNIT_NAMES } from "../parts/chart.jsx";
import { Editor } from "../parts/editor.jsx";
import { useFollow } from "../parts/follow.js";
import { savePng } from "../parts/picture.js";
import { RangePicker } from "../parts/range.jsx";
import { href, replace } from "../route.js";
import { isNumberType } from "../schema.js";
import { Button, Empty, Field, Notice, Select, copyText, useApp, useEvery } from "../ui.jsx";

const AGGREGATES = ["avg", "min", "max", "sum", "count", "median", "last_value"];
const LIVE = [["0", "Not live"], ["rows", "As rows come"], ["2", "Every 2 s"], ["5", "Every 5 s"], ["10", "Every 10 s"], ["30", "Every 30 s"], ["60", "Every minute"]];
const POINTS = 300;
const MOST_TAGS = 2;

/** Returns what is drawn at first of a table: its first number, by its first tags. */
export function firstLook(columns) {
  const numbers = columns.filter(({ type }) => isNumberType(type));
  return { y: numbers[0]?.name ?? "", by: columns.filter(({ type }) => type === "tag").slice(0, 1).map(({ name }) => name) };
}

/** Writes the statement of a chart, with `$from`, `$to` and `$interval` in it. */
export function chartSql({ table, y, agg, by, time = "time" }) {
  const groups = by.map((name) => `${quoteName(name)}, `).join("");
  const value = agg === "last_value" ? `last_value(${quoteName(y)} ORDER BY ${quoteName(time)})` : `${agg}(${quoteName(y)})`;
  const numbers = by.map((_, index) => `, ${index + 2}`).join("");
  return `SELECT date_bin($interval, ${quoteName(time)}) AS "time", ${groups}${value} AS ${quoteName(y)}
FROM ${quoteName(table)}
WHERE ${quoteName(time)} >= $from AND ${quoteName(time)} < $to
GROUP BY 1${numbers}
ORDER BY 1`;
}

function fromParams(params) {
  return {
    db: params.get("db") ?? "",
    table: params.get("table") ?? "",
    y: params.get("y") ?? "",
    agg: AGGREGATES.includes(params.get("agg")) ? params.get("agg") : "avg",
    by: params.getAll("by").flatMap((text) => (text ? text.split("\u001f") : [])),
    sql: params.get("sql") ?? "",
    last: params.get("last") ?? "",
    from: params.get("from") ?? "",
    to: params.get("to") ?? "",
    kind: KINDS.some(([name]) => name === params.get("kind")) ? params.get("kind") : "line",
    log: params.get("log") === "1",
    unit: params.get("unit") ?? "",
    only: params.get("only") ?? "",
    asof: params.get("asof") ?? "",
    live: LIVE.some(([name]) => name === params.get("live")) ? params.get("live") : "0",
  };
}

/** The oldest and the newest time of a table; both `null` where it has none. */
async function bounds(table, database) {
  return (await queryRows(`SELECT min(time), max(time) FROM ${quoteName(table)}`, { database }))[0];
}

/** What the address of a picture has. */
function params({ by, log, ...rest }, database) {
  return { ...rest, db: database, by: by.join("\u001f"), log: log ? "1" : "", live: rest.live === "0" ? "" : rest.live, ...(rest.sql ? { table: "", y: "", agg: "", by: "" } : {}) };
}

export function Draw({ route }) {
  const app = useApp();
  const [want, setWant] = useState(() => fromParams(route.params));
  const [state, setState] = useState({ data: null, error: "", ms: 0, busy: false });
  const plot = useRef(null);
  const running = useRef(null);
  const columns = useMemo(() => app.schema[app.database]?.[want.table] ?? [], [app.schema, app.database, want.table]);
  const tables = Object.keys(app.schema[app.database] ?? {});
  const range = want.from && want.to ? { from: want.from, to: want.to } : { last: want.last || "1h" };

  const set = (patch) => setWant((before) => ({ ...before, ...patch }));
  // A link names its database.
  useEffect(() => {
    if (want.db && want.db !== app.database && app.databases.some(({ name }) => name === want.db)) app.setDatabase(want.db);
  }, [app.databases]);
  useEffect(() => {
    const next = fromParams(route.params);
    if (route.params.size > 0) setWant(next);
  }, [route]);
  // Something is drawn at once: the first table that has a number.
  useEffect(() => {
    if (want.sql || tables.length === 0) return;
    const known = app.schema[app.database][want.table];
    const table = known ? want.table : tables.find((name) => firstLook(app.schema[app.database][name]).y) ?? tables[0];
    const look = firstLook(app.schema[app.database][table]);
    const has = known?.some(({ name }) => name === want.y);
    if (!known || !has) set({ table, y: look.y, by: look.by });
  }, [app.schema, app.database, want.table]);
  useEffect(() => {
    replace("draw", params(want, app.database));
  }, [want, app.database]);

  const open = !want.last && !want.from;
  const known = columns.some(({ name }) => name === want.y);
  // Who names no range sees one in which there is something.
  useEffect(() => {
    if (!open || (!want.sql && !known)) return undefined;
    let current = true;
    const pick = (patch) => current && set(patch);
    if (want.sql) pick({ last: "1h" });
    else {
      bounds(want.table, app.database).then(
        ([from, to]) => pick(from === null ? { last: "1h" } : firstRange(from, to, BigInt(Date.now()) * 1_000_000n)),
        () => pick({ last: "1h" }),
      );
    }
    return () => { current = false; };
  }, [open, want.sql, want.table, known, app.database]);
  const ready = open ? false : want.sql ? want.sql.trim() !== "" : columns.some(({ name }) => name === want.y);
  const draw = async () => {
    const ends = rangeEnds(range, BigInt(Date.now()) * 1_000_000n);
    if (!ready || !ends) return;
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setState((before) => ({ ...before, busy: true }));
    const text = want.sql || chartSql(want);
    try {
      // What a link brings is only ever read: it is a table of another query.
      const clause = asOfClause(want.asof, BigInt(Date.now()) * 1_000_000n);
      if (clause === null) throw new Error(`As of ${want.asof}: this is no time; a time is 2026-01-31T12:00:00Z, and @name a snapshot.`);
      const sql = `SELECT * FROM (\n${readAsOf(substitute(text.replace(/;\s*$/, ""), { ...ends, points: POINTS }), clause)}\n) AS drawn`;
      const { rows, ms, truncated } = await query(sql, { database: app.database, signal: controller.signal });
      const found = roles(rows.fields);
      if (found.error) throw new Error(found.error);
      setState({ data: toSeries(rows, found), error: "", ms, busy: false, ends, truncated });
    } catch (error) {
      if (error.name !== "AbortError") setState((before) => ({ ...before, error: error.message, busy: false }));
    }
  };
  const key = JSON.stringify([want.table, want.y, want.agg, want.by, want.sql, want.asof, range, app.database, ready]);
  useEffect(() => {
    draw();
  }, [key]);
  const follows = want.live === "rows";
  useEvery(draw, follows ? 0 : Number(want.live) * 1000, [key]);
  const followed = !follows || !ready || !range.last ? [] : want.sql ? tablesIn(want.sql, tables) : [want.table];
  const trouble = useFollow(draw, app.database, followed, [key]);

  const zoom = (from, to) => set({ from: isoTime(BigInt(Math.floor(from * 1e6)) * 1000n), to: isoTime(BigInt(Math.ceil(to * 1e6)) * 1000n), last: "", live: "0" });
  const whole = async () => {
    const [from, to] = await bounds(want.table, app.database);
    if (from === null) throw new Error(`The table ${want.table} has no points.`);
    set({ ...wholeRange(from, to), last: "", live: "0" });
  };
  const { data, ends } = state;
  const shownRange = ends && [Number(ends.from / 1_000_000n) / 1e3, Number(ends.to / 1_000_000n) / 1e3];
  const numbers = columns.filter(({ type }) => isNumberType(type));
  const tags = columns.filter(({ type }) => ["tag", "text", "bool"].includes(type));
  const name = want.table || "chart";
  const title = want.sql ? "" : `${want.agg === "last_value" ? "last" : want.agg} of ${want.y} in ${app.database} / ${want.table}`;
  // The times that are shown, so that who opens it later sees the same.
  const link = () => {
    const fixed = ends ? { from: isoTime(ends.from), to: isoTime(ends.to), last: "", live: "" } : {};
    return new URL(href("draw", { ...params(want, app.database), ...fixed }), location.href).href;
  };
  return (
    <section class="work" aria-label="Chart">
      <div class="builder">
        {want.sql ? (
          <SqlBox text={want.sql} onDraw={(sql) => set({ sql })} />
        ) : (
          <>
            <Field label="Table">
              <Select value={want.table} options={tables.length > 0 ? tables : [""]} onPick={(table) => set({ table, ...firstLook(app.schema[app.database][table] ?? []) })} />
            </Field>
            <Field label="Value">
              <Select value={want.y} options={numbers.map((column) => column.name)} onPick={(y) => set({ y })} />
            </Field>
            <Field label="As">
              <Select value={want.agg} options={AGGREGATES.map((agg) => [agg, agg === "last_value" ? "last" : agg])} onPick={(agg) => set({ agg })} />
            </Field>
            {Array.from({ length: Math.min(MOST_TAGS, want.by.length + 1, tags.length) }, (_, index) => (
              <Field label={index === 0 ? "By" : "and"} key={index}>
                <Select value={want.by[index] ?? ""} options={[["", "–"], ...tags.filter((tag) => tag.name === want.by[index] || !want.by.includes(tag.name)).map((tag) => [tag.name, tag.name])]} onPick={(tag) => set({ by: [...want.by.slice(0, index), tag, ...want.by.slice(index + 1)].filter(Boolean) })} />
              </Field>
            ))}
          </>
        )}
        <Field label="Chart">
          <Select value={want.kind} options={KINDS} onPick={(kind) => set({ kind })} />
        </Field>
        <Field label="Unit">
          <Select value={want.unit || "none"} options={UNIT_NAMES.map(([unit, text]) => [unit || "none", text])} onPick={(unit) => set({ unit: unit === "none" ? "" : unit })} />
        </Field>
        <label class="check">
          <input type="checkbox" checked={want.log} onChange={(event) => set({ log: event.currentTarget.checked })} /> Logarithmic
        </label>
      </div>
      <div class="toolbar">
        <RangePicker moves range={range} onPick={({ last = "", from = "", to = "" }) => set({ last, from, to, ...(last ? {} : { live: "0" }) })} />
        <AsOfPicker state={want.asof} onPick={(asof) => set({ asof })} />
        {range.last && <Select label="Refresh" value={want.live} options={LIVE} onPick={(live) => set({ live })} />}
        <Button icon="refresh" label="Refresh now" onClick={draw} />
        <div class="spacer" />
        {state.busy ? <span class="status">Drawing…</span> : data && <span class="status" role="status">{data.series.length} series · {data.times.length} times · {milliseconds(state.ms)}</span>}
        <Button icon="download" disabled={!data} onClick={() => { const canvas = plot.current?.(); if (canvas) savePng(canvas, save, `${name}.png`); }}>PNG</Button>
        <Button icon="download" disabled={!data} onClick={() => save(new Blob([seriesCsv(data)], { type: "text/csv" }), `${name}.csv`)}>CSV</Button>
        <Button icon="copy" onClick={() => copyText(link())} title="Copies an address that shows this picture, with these times">Link</Button>
        {want.sql ? <Button onClick={() => set({ sql: "" })}>Pick a table</Button> : <Button onClick={() => set({ sql: chartSql(want) })} disabled={!ready}>SQL</Button>}
        <a class="button" href={ends ? href("ask", { q: readAsOf(substitute(want.sql || (ready ? chartSql(want) : ""), { ...ends, points: POINTS }), asOfClause(want.asof, ends.to) ?? ""), db: app.database }) : "#/ask"}>Ask</a>
      </div>
      {state.error && <Notice>{state.error}</Notice>}
      {trouble && <Notice>Rows that come are not followed: {trouble}</Notice>}
      {follows && ready && followed.length === 0 && <Notice>The statement names no table whose rows could be followed; pick a time after which it is drawn again.</Notice>}
      {data?.leftOut > 0 && <Notice kind="info">There are more than {data.series.length} series; the others are not drawn.</Notice>}
      {data && data.times.length > 0 ? (
        <div class="pane">
          <Chart data={data} kind={want.kind} log={want.log} unit={want.unit} height={Math.max(280, Math.min(640, innerHeight - 340))} range={shownRange} onZoom={zoom} onReady={(picture) => { plot.current = picture; }} only={want.only} onOnly={(only) => set({ only })} title={title} />
          <p class="hint">{["heat", "tiles"].includes(want.kind) ? "" : "Drag over the chart to zoom, click a series to see it alone. "}Rows within {formatDuration(interval(ends.from, ends.to, POINTS))} are one point.</p>
        </div>
      ) : (
        !state.busy && !state.error && (tables.length === 0 || ready) && (
          <Empty title={tables.length === 0 ? "No tables here yet" : "No points in this range"}>
            {tables.length === 0 ? <p><a href="#/load">Bring some data in</a>, or pick another database.</p> : <p>Pick a longer range, or another table.</p>}
            {!want.sql && ready && <Button kind="primary" onClick={() => whole().catch((error) => setState((before) => ({ ...before, error: error.message })))}>Show where there are</Button>}
          </Empty>
        )
      )}
    </section>
  );
}

function SqlBox({ text, onDraw }) {
  const { schema, database } = useApp();
  const handle = useRef(null);
  const handlers = useRef({});
  const draw = () => onDraw(handle.current?.text() ?? text);
  handlers.current = { run: draw, runAll: draw, save: draw };
  useEffect(() => handle.current?.setText(text), [text]);
  return (
    <div class="sql-box">
      <Editor text={text} handle={handle} handlers={handlers} schema={schema} database={database} label="SQL of the chart" small />
      <Button kind="primary" icon="draw" onClick={draw}>Draw</Button>
    </div>
  );
}
