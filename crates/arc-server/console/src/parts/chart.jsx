// A chart of series over time: lines, areas, bars, steps; drag to zoom, a legend that isolates. The library is loaded on first use.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { short } from "../lib/display.js";
import { colourOf } from "../lib/series.js";
import { useApp } from "../ui.jsx";
import { HeatMap } from "./heat.jsx";
import { colour, tilesPicture, withLegend } from "./picture.js";

let loading = null;
const library = () => (loading ??= import("./chart.js"));

export const KINDS = [["line", "Lines"], ["area", "Areas"], ["bars", "Bars"], ["steps", "Steps"], ["points", "Points"], ["heat", "Heat map"], ["tiles", "Last values"]];
const UNITS = { "": short, "%": (value) => `${short(value)} %`, bytes: bytesText, s: (value) => `${short(value)} s`, ms: (value) => `${short(value)} ms`, "°C": (value) => `${short(value)} °C` };
export const UNIT_NAMES = [["", "No unit"], ["%", "Per cent"], ["bytes", "Bytes"], ["s", "Seconds"], ["ms", "Milliseconds"], ["°C", "Degrees"]];

function bytesText(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let left = value;
  while (Math.abs(left) >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit++;
  }
  return `${Number(left.toPrecision(3))} ${units[unit]}`;
}

/** Steps of an axis of bytes, so that it has whole KiB and MiB. */
const POWERS = Array.from({ length: 51 }, (_, power) => 2 ** power);
const DAY = "\n{YYYY}-{MM}-{DD}";
/** How times are written below a chart, by the distance of two of them in seconds: 24 hours, and days as everybody reads them. */
const TIMES = [
  [31_536_000, "{YYYY}", null, null, null, null, null, null, 1],
  [2_419_200, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
  [86_400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", DAY, null, DAY, null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", DAY, null, DAY, null, null, null, 1],
  [0.001, "{ss}.{fff}", `${DAY} {HH}:{mm}`, null, `${DAY} {HH}:{mm}`, null, `${DAY} {HH}:{mm}`, null, 1],
];

function paths(uPlot, kind) {
  if (kind === "bars") return uPlot.paths.bars({ size: [0.7, 40] });
  if (kind === "steps") return uPlot.paths.stepped({ align: 1 });
  if (kind === "points") return () => null;
  return uPlot.paths.linear();
}

/** The times below a chart, in the order of days that is picked. */
function timesOf(dates) {
  if (dates !== "de") return TIMES;
  const german = (text) => (typeof text === "string" ? text.replace("{YYYY}-{MM}-{DD}", "{DD}.{MM}.{YYYY}").replace("{YYYY}-{MM}", "{MM}.{YYYY}").replace("{MM}-{DD}", "{DD}.{MM}.") : text);
  return TIMES.map((row) => row.map(german));
}

/**
 * `only` is the name of the series that is shown alone, which `onOnly` is told of; without it the chart keeps that itself.
 * `onReady` is given a function that draws what is seen on a canvas.
 */
export function Chart({ data, kind = "line", log = false, unit = "", height = 320, onZoom, range, onReady, compact, only: wanted, onOnly, title = "" }) {
  const { dark, times } = useApp();
  const host = useRef(null);
  const plot = useRef(null);
  const [cursor, setCursor] = useState(null);
  const [picked, setPicked] = useState("");
  const [ready, setReady] = useState(null);
  const shown = UNITS[unit] ?? short;
  const text = (value) => (value === null || value === undefined ? "–" : shown(value));
  useEffect(() => {
    library().then(({ uPlot }) => setReady(() => uPlot));
  }, []);
  const names = data.series.map(({ name }) => name).join("\n");
  useEffect(() => setPicked(""), [names]);
  const alone = onOnly ? wanted : picked;
  const at = data.series.findIndex(({ name }) => name !== "" && name === alone);
  const only = at < 0 ? null : at;
  const setOnly = onOnly ?? setPicked;
  const last = (values) => values.findLast((value) => value !== null && value !== undefined);
  const entries = () => data.series.map(({ name, values }, index) => ({ name, value: text(last(values)), colour: colourOf(index) })).filter((_, index) => only === null || index === only);
  const picture = useRef(null);
  picture.current = () => (kind === "tiles" ? tilesPicture(title, entries()) : plot.current && withLegend(plot.current.ctx.canvas, title, entries()));
  useEffect(() => {
    if (kind !== "heat") onReady?.(() => picture.current());
  }, [kind]);

  useLayoutEffect(() => {
    const uPlot = ready;
    if (!uPlot || kind === "tiles" || kind === "heat" || !host.current) return undefined;
    const grid = { stroke: colour("--grid"), width: 1 };
    const axis = { stroke: colour("--muted"), grid, ticks: { ...grid, size: 4 }, font: "11px system-ui" };
    const made = new uPlot(
      {
        width: host.current.clientWidth,
        height,
        tzDate: times.local ? undefined : (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "UTC"),
        legend: { show: false },
        cursor: { drag: { x: true, y: false, setScale: false }, focus: { prox: 24 } },
        focus: { alpha: 0.35 },
        scales: { x: { time: true, range: range ? () => range : undefined }, y: { distr: log ? 3 : 1, clamp: log ? 1e-3 : undefined } },
        axes: [{ ...axis, size: 36, values: timesOf(times.dates) }, { ...axis, size: 64, ...(unit === "bytes" ? { incrs: POWERS } : {}), values: (_, values) => values.map((value) => (value === null ? "" : text(value))) }],
        series: [
          {},
          ...data.series.map(({ name }, index) => ({
            label: name,
            show: only === null || only === index,
            stroke: colourOf(index),
            fill: kind === "area" || kind === "bars" ? `${colourOf(index)}${kind === "bars" ? "b0" : "30"}` : undefined,
            width: kind === "bars" ? 0 : 1.5,
            paths: paths(uPlot, kind),
            points: { show: kind === "points" ? true : undefined, size: 5 },
            spanGaps: false,
          })),
        ],
        hooks: {
          setSelect: [
            (chart) => {
              if (chart.select.width < 4) return;
              const from = chart.posToVal(chart.select.left, "x");
              const to = chart.posToVal(chart.select.left + chart.select.width, "x");
              chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
              onZoom?.(from, to);
            },
          ],
          setCursor: [(chart) => setCursor(chart.cursor.idx ?? null)],
        },
      },
      [data.times, ...data.series.map(({ values }) => (log ? values.map((value) => (value > 0 ? value : null)) : values))],
      host.current,
    );
    plot.current = made;
    const observer = new ResizeObserver(() => host.current && made.setSize({ width: host.current.clientWidth, height }));
    observer.observe(host.current);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [ready, data, kind, log, unit, height, dark, times, only, range?.[0], range?.[1]]);

  const summary = `Chart of ${data.series.length} series over ${data.times.length} times`;
  if (kind === "heat") return <HeatMap data={data} text={text} label={summary} title={title} onReady={onReady} />;
  if (kind === "tiles") {
    return (
      <div class="tiles">
        {data.series.map(({ name, values }, index) => (
          <div class="tile" key={name} style={{ borderTopColor: colourOf(index) }}>
            <span>{name}</span>
            <b>{text(last(values))}</b>
            <Spark values={values} colour={colourOf(index)} />
          </div>
        ))}
      </div>
    );
  }
  const isLong = data.series.length > 1 || !compact;
  return (
    <figure class="chart" aria-label={summary}>
      <div ref={host} class="chart-host" role="img" aria-label={summary} style={{ height: `${height}px` }} />
      {isLong && (
        <ul class="legend" aria-label="Series">
          {data.series.map(({ name, values }, index) => (
            <li key={name}>
              <button type="button" aria-pressed={only === index} class={only !== null && only !== index ? "dim" : ""} onClick={() => setOnly(only === index ? "" : name)} title="Show this series alone">
                <i style={{ background: colourOf(index) }} />
                {name || "value"}
                <b>{text(cursor !== null ? values[cursor] : last(values))}</b>
              </button>
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}

/** The course of a series in a few pixels, gaps left out. */
function Spark({ values, colour: stroke }) {
  const points = values.flatMap((value, index) => (value === null || value === undefined ? [] : [[index, value]]));
  if (points.length < 2) return null;
  let low = Infinity;
  let high = -Infinity;
  for (const [, value] of points) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const step = Math.max(1, Math.ceil(points.length / 200));
  const line = points.filter((_, index) => index % step === 0).map(([index, value]) => `${((100 * index) / (values.length - 1)).toFixed(2)},${(high === low ? 12 : 23 - (22 * (value - low)) / (high - low)).toFixed(2)}`);
  return (
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      <polyline points={line.join(" ")} stroke={stroke} />
    </svg>
  );
}
