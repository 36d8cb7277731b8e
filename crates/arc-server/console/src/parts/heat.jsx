// A heat map: one row for each series, times from left to right, darker where the value is higher.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { formatTime } from "../lib/time.js";
import { useApp } from "../ui.jsx";
import { heatPicture } from "./picture.js";

const ROW = 22;
const LABEL = 140;

/** Returns the least and the greatest value there is. */
export function extent(series) {
  let low = Infinity;
  let high = -Infinity;
  for (const { values } of series) {
    for (const value of values) {
      if (value === null || value === undefined) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

export function HeatMap({ data, text, label, title = "", onReady }) {
  const { dark, times } = useApp();
  const host = useRef(null);
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState(null);
  const ends = extent(data.series);
  const picture = useRef(null);
  picture.current = () => heatPicture(title, canvas.current, data.series.map(({ name }) => name), ROW);
  useEffect(() => onReady?.(() => picture.current()), []);
  const height = ROW * data.series.length;
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(host.current?.clientWidth ?? 0));
    observer.observe(host.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (!ends || width <= LABEL) return;
    const scale = devicePixelRatio || 1;
    canvas.current.width = (width - LABEL) * scale;
    canvas.current.height = height * scale;
    const context = canvas.current.getContext("2d");
    context.scale(scale, scale);
    const step = (width - LABEL) / data.times.length;
    const [low, high] = ends;
    data.series.forEach(({ values }, row) => {
      values.forEach((value, column) => {
        if (value === null || value === undefined) return;
        const part = high === low ? 1 : (value - low) / (high - low);
        context.fillStyle = dark ? `hsl(187 60% ${14 + 56 * part}%)` : `hsl(187 ${30 + 40 * part}% ${92 - 68 * part}%)`;
        context.fillRect(column * step, row * ROW, Math.ceil(step), ROW - 2);
      });
    });
  }, [data, width, dark]);
  const look = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * data.times.length);
    const row = Math.floor((event.clientY - box.top) / ROW);
    setAt(data.series[row] && data.ns[column] !== undefined ? { row, column } : null);
  };
  const time = (index) => formatTime(data.ns[index], times);
  return (
    <figure class="chart heat" aria-label={label}>
      <div ref={host} class="heat-body" style={{ height: `${height}px` }}>
        <ul>{data.series.map(({ name }) => <li key={name} title={name}>{name || "value"}</li>)}</ul>
        <canvas ref={canvas} role="img" aria-label={label} style={{ width: `${Math.max(0, width - LABEL)}px`, height: `${height}px` }} onMouseMove={look} onMouseLeave={() => setAt(null)} />
      </div>
      <p class="status">
        {at
          ? `${data.series[at.row].name || "value"} at ${time(at.column)}: ${text(data.series[at.row].values[at.column])}`
          : ends && `${time(0)} to ${time(data.ns.length - 1)}, from ${text(ends[0])} (${dark ? "dark" : "light"}) to ${text(ends[1])} (${dark ? "light" : "dark"})`}
      </p>
    </figure>
  );
}
