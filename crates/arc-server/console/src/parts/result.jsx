// An answer: its rows, a chart, what its columns look like, its plan, and ways to take it away.

import { useEffect, useMemo, useState } from "preact/hooks";

import { download } from "../api.js";
import { bytes, milliseconds } from "../lib/display.js";
import { count } from "../lib/locale.js";
import { readPlan } from "../lib/plan.js";
import { roles, toSeries } from "../lib/series.js";
import { firstWord } from "../lib/sql.js";
import { summarize } from "../lib/summary.js";
import { Button, Empty, Notice, Select, Tabs } from "../ui.jsx";
import { Chart, KINDS } from "./chart.jsx";
import { Grid } from "./grid.jsx";

const FORMATS = [["", "Download…"], ["csv", "CSV"], ["parquet", "Parquet"], ["arrow", "Arrow"], ["ndjson", "JSON lines"]];
const READS = ["select", "with", "show", "values", "describe"];

export function Result({ outcome, version, sql, database, shown, onShow, onDraw }) {
  const { rows } = outcome;
  const [error, setError] = useState("");
  const plan = useMemo(() => readPlan(rows), [rows, rows.length]);
  const done = version > 0 && outcome.ms !== undefined;
  const tabs = [["rows", "Rows", count(rows.length)], ["chart", "Chart"], ["summary", "Columns", count(rows.fields.length)]];
  if (plan) tabs.push(["plan", "Plan"]);
  const current = tabs.some(([name]) => name === shown) ? shown : "rows";
  const [saving, setSaving] = useState(null);
  const save = async (format) => {
    if (!format) return;
    setError("");
    const controller = new AbortController();
    setSaving({ controller, bytes: 0 });
    try {
      await download(sql, database, format, `answer.${format}`, { signal: controller.signal, onProgress: (bytes) => setSaving({ controller, bytes }) });
    } catch (failed) {
      if (failed.name !== "AbortError") setError(failed.message);
    }
    setSaving(null);
  };
  return (
    <div class="result">
      <div class="result-bar">
        <Tabs tabs={tabs} current={current} onPick={onShow} label="Answer" />
        <div class="spacer" />
        {onDraw && !roles(rows.fields).error && <Button icon="draw" onClick={onDraw}>Draw</Button>}
        {saving && <span class="status" role="status">{bytes(saving.bytes)} downloaded <Button icon="close" kind="ghost" label="Cancel the download" onClick={() => saving.controller.abort()} /></span>}
        {!saving && READS.includes(firstWord(sql)) && <Select label="Download all rows as" value="" options={FORMATS} onPick={save} />}
      </div>
      {error && <Notice>{error}</Notice>}
      {rows.fields.length === 0 ? (
        <Empty title="Done">
          <p>The statement has no rows to show.</p>
        </Empty>
      ) : current === "rows" ? (
        <Grid rows={rows} version={version} label="Rows of the answer" />
      ) : current === "chart" ? (
        <ChartTab rows={rows} length={rows.length} />
      ) : current === "summary" ? (
        <Summary rows={rows} done={done} />
      ) : (
        <Plan plan={plan} />
      )}
    </div>
  );
}

function ChartTab({ rows, length }) {
  const [kind, setKind] = useState("line");
  const found = useMemo(() => roles(rows.fields), [rows]);
  const data = useMemo(() => (found.error ? null : toSeries(rows, found)), [rows, length]);
  if (!data) return <Empty title="No chart"><p>{found.error}</p></Empty>;
  return (
    <div class="pane">
      <div class="toolbar">
        <Select label="Kind of chart" value={kind} options={KINDS} onPick={setKind} />
        {data.leftOut > 0 && <span class="status">Only the first {data.series.length} series are drawn.</span>}
      </div>
      <Chart data={data} kind={kind} height={300} />
    </div>
  );
}

const MOST_SUMMARIES = 60;

function Summary({ rows, done }) {
  const [more, setMore] = useState(MOST_SUMMARIES);
  const [columns, setColumns] = useState([]);
  const wanted = Math.min(more, rows.fields.length);
  // One after another, with a breath between them: a column may have a million rows.
  useEffect(() => {
    if (!done) return undefined;
    const found = [];
    let timer = null;
    const next = () => {
      const began = performance.now();
      while (found.length < wanted && performance.now() - began < 40) found.push(summarize(rows, found.length));
      setColumns([...found]);
      if (found.length < wanted) timer = setTimeout(next);
    };
    next();
    return () => clearTimeout(timer);
  }, [rows, done, wanted]);
  return (
    <div class="pane">
      {!done && <p class="status" role="status">When all rows are here.</p>}
      {done && columns.length < wanted && <p class="status" role="status">{columns.length} of {wanted} columns…</p>}
      <div class="cards">
        {columns.map((column, index) => (
          <section class="card" key={index} aria-label={column.name}>
            <h2>{column.name}</h2>
            {column.histogram && <Bars bins={column.histogram} label={`Distribution of ${column.name}`} />}
            {column.most.map(({ text, times }) => (
              <div class="share" key={text}>
                <span>{text.slice(0, 200)}</span>
                <b>{count(times)}</b>
                <i style={{ width: `${(100 * times) / rows.length}%` }} />
              </div>
            ))}
            <dl>
              {column.low !== null && <><dt>Least</dt><dd>{column.low.slice(0, 200)}</dd></>}
              {column.high !== null && <><dt>Greatest</dt><dd>{column.high.slice(0, 200)}</dd></>}
              {column.mean !== null && <><dt>Mean</dt><dd>{String(Number(column.mean.toPrecision(6)))}</dd></>}
              <dt>Distinct</dt>
              <dd>{column.distinct === null ? "more than 10,000" : count(column.distinct)}</dd>
              <dt>Null</dt>
              <dd>{count(column.nulls)}</dd>
              {column.nan > 0 && <><dt>NaN</dt><dd>{count(column.nan)}</dd></>}
            </dl>
          </section>
        ))}
      </div>
      {rows.fields.length > more && <Button onClick={() => setMore(more + MOST_SUMMARIES)}>Show {Math.min(MOST_SUMMARIES, rows.fields.length - more)} more</Button>}
    </div>
  );
}

function Bars({ bins, label }) {
  const most = Math.max(...bins);
  const width = 100 / bins.length;
  return (
    <svg class="bars" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label={label}>
      {bins.map((amount, index) => {
        const height = amount === 0 ? 0 : Math.max(1, (28 * amount) / most);
        return <rect key={index} x={index * width} y={30 - height} width={width * 0.9} height={height} />;
      })}
    </svg>
  );
}

export function Plan({ plan }) {
  const about = (metrics) =>
    Object.entries(metrics)
      .filter(([name, value]) => !["output_rows", "elapsed_compute", "output_bytes", "output_batches"].includes(name) && !/eval_time|time_elapsed|_time$/.test(name) && !/^0( |\.0|$)/.test(value) && value !== "1ns")
      .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
  return (
    <div class="pane">
      {plan.files.map((text) => (
        <p class="files-read" key={text}>{text}</p>
      ))}
      <table class="plan">
        <thead>
          <tr>
            <th scope="col">Operator</th>
            <th scope="col" class="number">Rows</th>
            <th scope="col" class="number">Bytes</th>
            <th scope="col" class="number">Time</th>
            <th scope="col">More</th>
          </tr>
        </thead>
        <tbody>
          {plan.operators.map((operator, index) => (
            <tr key={index}>
              <td style={{ paddingLeft: `${10 + 16 * operator.depth}px` }}>
                <b>{operator.name}</b>
                <small>{operator.details}</small>
              </td>
              <td class="number">{operator.rows ?? ""}</td>
              <td class="number">{operator.bytes ?? ""}</td>
              <td class="number time">
                <i style={{ width: `${100 * operator.share}%` }} />
                <span>{operator.ms === null ? "" : milliseconds(operator.ms)}</span>
              </td>
              <td class="more">{about(operator.metrics).join(" · ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {plan.others.map(({ kind, text }) => (
        <section key={kind}>
          <h2>{kind.replaceAll("_", " ")}</h2>
          <pre>{text}</pre>
        </section>
      ))}
    </div>
  );
}

