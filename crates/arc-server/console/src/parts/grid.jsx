// The grid: shows the cells that are in view, of any number of rows and columns.
//
// Nothing is ever put in as markup. Rows are never all in the page: a scroll bar of bounded height stands for them.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { display, isNumber, toTsv, typeName } from "../lib/display.js";
import { copyText, useApp } from "../ui.jsx";
import { RowView } from "./row.jsx";

const ROW = 26;
/** Browsers cannot show elements that are much higher. */
const MOST_HEIGHT = 8_000_000;
const CELL_CHARS = 400;

function widths(rows, options) {
  const sample = Math.min(rows.length, 60);
  const columns = Math.min(rows.fields.length, 300);
  const found = rows.fields.map((field, column) => {
    let chars = Math.max(field.name.length, typeName(field.type).length) + 3;
    for (let row = 0; column < columns && row < sample; row++) chars = Math.max(chars, display(rows.get(row, column), field, options).length);
    return Math.min(420, Math.max(70, chars * 7.4 + 22));
  });
  const starts = [0];
  for (const width of found) starts.push(starts.at(-1) + width);
  return { widths: found, starts };
}

/** Returns the order of rows by a column; nulls come last. */
export function sortedRows(rows, { column, down }) {
  const order = Array.from({ length: rows.length }, (_, row) => row);
  const { type } = rows.fields[column];
  const text = type.kind !== "decimal" && !isNumber(type);
  const values = order.map((row) => {
    const value = rows.get(row, column);
    if (type.kind === "decimal" && value !== null) return Number(value);
    if (typeof value === "object" && value !== null) return display(value, rows.fields[column]);
    return value;
  });
  const last = (value) => value === null || (typeof value === "number" && Number.isNaN(value));
  const compare = (one, other) => {
    if (text && typeof one === "string") return one < other ? -1 : one > other ? 1 : 0;
    return one < other ? -1 : one > other ? 1 : 0;
  };
  return order.sort((a, b) => {
    const [one, other] = [values[a], values[b]];
    if (last(one) || last(other)) return last(one) - last(other) || a - b;
    return (down ? -compare(one, other) : compare(one, other)) || a - b;
  });
}

export function Grid({ rows, label, version }) {
  const { times: options } = useApp();
  const scroller = useRef(null);
  const [view, setView] = useState({ top: 0, left: 0, width: 800, height: 300 });
  const [active, setActive] = useState({ row: 0, column: 0 });
  const [anchor, setAnchor] = useState(null);
  const [sort, setSort] = useState(null);
  const [opened, setOpened] = useState(false);
  const size = useMemo(() => widths(rows, options), [rows, version > 0, options]);
  const order = useMemo(() => (sort ? sortedRows(rows, sort) : null), [rows, sort, sort ? rows.length : 0]);
  useEffect(() => {
    setSort(null);
    setAnchor(null);
    setActive({ row: 0, column: 0 });
    if (scroller.current) scroller.current.scrollTop = 0;
  }, [rows]);
  useLayoutEffect(() => {
    const element = scroller.current;
    const measure = () => setView({ top: element.scrollTop, left: element.scrollLeft, width: element.clientWidth, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const total = rows.length;
  const fields = rows.fields;
  const full = total * ROW;
  const height = Math.min(full, MOST_HEIGHT);
  const body = Math.max(ROW, view.height - 2 * ROW);
  const shown = Math.ceil(body / ROW) + 1;
  // Where the bar is shorter than the rows, a part of its way is the same part of theirs.
  const offset = full <= MOST_HEIGHT ? view.top : (view.top / Math.max(1, height - body)) * (full - body);
  const first = Math.max(0, Math.min(total - 1, Math.floor(offset / ROW)));
  const firstColumn = Math.max(0, size.starts.findIndex((start) => start > view.left) - 1);
  let lastColumn = firstColumn;
  while (lastColumn < fields.length - 1 && size.starts[lastColumn + 1] < view.left + view.width) lastColumn++;
  const columns = [];
  for (let column = firstColumn; column <= lastColumn && column < fields.length; column++) columns.push(column);
  const numberWidth = String(total).length * 7.4 + 20;

  const scrolled = () => {
    const element = scroller.current;
    setView((before) => ({ ...before, top: element.scrollTop, left: element.scrollLeft }));
  };
  const reveal = ({ row, column }) => {
    const element = scroller.current;
    const scale = full <= MOST_HEIGHT ? 1 : (height - body) / (full - body);
    if (row * ROW < offset) element.scrollTop = row * ROW * scale;
    else if ((row + 1) * ROW > offset + body - ROW) element.scrollTop = ((row + 2) * ROW - body) * scale;
    const start = size.starts[column];
    if (start < element.scrollLeft) element.scrollLeft = start;
    else if (start + size.widths[column] + numberWidth > element.scrollLeft + view.width) element.scrollLeft = start + size.widths[column] + numberWidth - view.width;
  };
  const move = (row, column, extend) => {
    const next = { row: Math.max(0, Math.min(total - 1, row)), column: Math.max(0, Math.min(fields.length - 1, column)) };
    setAnchor(extend ? (anchor ?? active) : null);
    setActive(next);
    reveal(next);
  };
  const selected = () => {
    const other = anchor ?? active;
    return { top: Math.min(active.row, other.row), bottom: Math.max(active.row, other.row), left: Math.min(active.column, other.column), right: Math.max(active.column, other.column) };
  };
  const copy = (all) => {
    const { top, bottom, left, right } = all ? { top: 0, bottom: Math.min(total, 100_000) - 1, left: 0, right: fields.length - 1 } : selected();
    const lines = [];
    if (all || top !== bottom || left !== right) lines.push(fields.slice(left, right + 1).map(({ name }) => name));
    for (let row = top; row <= bottom && lines.length <= 100_000; row++) {
      const line = [];
      for (let column = left; column <= right; column++) {
        const value = rows.get(order ? order[row] : row, column);
        line.push(value === null ? null : display(value, fields[column], options));
      }
      lines.push(line);
    }
    copyText(toTsv(lines));
  };
  const toggle = (column) => setSort((before) => (before?.column !== column ? { column, down: false } : before.down ? null : { column, down: true }));
  const key = (event) => {
    const page = Math.max(1, shown - 3);
    const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageDown: [page, 0], PageUp: [-page, 0] };
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key.toLowerCase() === "c") copy(false);
    else if (command && event.key.toLowerCase() === "a") {
      setAnchor({ row: 0, column: 0 });
      setActive({ row: total - 1, column: fields.length - 1 });
    } else if (event.key === "s" && total > 0) toggle(active.column);
    else if (event.key === "Enter" && !command && total > 0) setOpened(true);
    else if (event.key === "Home") move(command ? 0 : active.row, 0, event.shiftKey);
    else if (event.key === "End") move(command ? total - 1 : active.row, fields.length - 1, event.shiftKey);
    else if (steps[event.key]) move(active.row + steps[event.key][0], active.column + steps[event.key][1], event.shiftKey);
    else return;
    event.preventDefault();
  };
  const { top, bottom, left, right } = selected();
  const visible = [];
  for (let row = first; row < total && row < first + shown; row++) visible.push(row);
  const id = (row, column) => `cell-${row}-${column}`;

  const shut = () => {
    setOpened(false);
    // The page may be another one by now.
    scroller.current?.focus();
  };

  return (
    <>
      {opened && active.row < total && <RowView rows={rows} row={active.row} from={order ? order[active.row] : active.row} onMove={(row) => move(row, active.column, false)} onClose={shut} />}
      <div class="grid" ref={scroller} onScroll={scrolled} onKeyDown={key} tabIndex={0} role="grid" aria-label={label} aria-rowcount={total + 1} aria-colcount={fields.length} aria-activedescendant={total > 0 ? id(active.row, active.column) : undefined}>
        <div class="grid-head" role="row" aria-rowindex={1} style={{ width: `${size.starts.at(-1) + numberWidth}px` }}>
          <span class="grid-number" style={{ width: `${numberWidth}px` }} aria-hidden="true" />
          {columns.map((column) => (
            <div class={`grid-name ${isNumber(fields[column].type) ? "number" : ""}`} role="columnheader" key={column} aria-colindex={column + 1} aria-sort={sort?.column === column ? (sort.down ? "descending" : "ascending") : "none"} style={{ left: `${size.starts[column] + numberWidth}px`, width: `${size.widths[column]}px` }} onClick={() => toggle(column)} title={`${fields[column].name}: sort`}>
              <b>{fields[column].name}</b>
              <small>
                {typeName(fields[column].type)}
                {sort?.column === column ? (sort.down ? " ↓" : " ↑") : ""}
              </small>
            </div>
          ))}
        </div>
        <div class="grid-body" role="presentation" style={{ height: `${height + ROW}px`, width: `${size.starts.at(-1) + numberWidth}px` }}>
          <div role="rowgroup" class="grid-window" style={{ transform: `translateY(${full <= MOST_HEIGHT ? first * ROW : view.top - (offset % ROW)}px)` }}>
            {visible.map((row, index) => {
              const from = order ? order[row] : row;
              return (
                <div class={`grid-row ${row % 2 ? "odd" : ""}`} role="row" key={row} aria-rowindex={row + 2} style={{ top: `${index * ROW}px` }}>
                  <span class="grid-number" style={{ width: `${numberWidth}px` }} aria-hidden="true">
                    {row + 1}
                  </span>
                  {columns.map((column) => {
                    const value = rows.get(from, column);
                    const text = display(value, fields[column], options);
                    const isActive = row === active.row && column === active.column;
                    const isSelected = row >= top && row <= bottom && column >= left && column <= right;
                    const kind = `${isNumber(fields[column].type) ? "number" : ""} ${value === null ? "null" : ""} ${isActive ? "active" : ""} ${isSelected ? "selected" : ""}`;
                    return (
                      <div class={`grid-cell ${kind}`} role="gridcell" id={id(row, column)} key={column} aria-colindex={column + 1} aria-selected={isSelected} style={{ left: `${size.starts[column] + numberWidth}px`, width: `${size.widths[column]}px` }} title={text.length > 40 ? text.slice(0, 2000) : undefined} onDblClick={() => setOpened(true)} onMouseDown={(event) => { setAnchor(event.shiftKey ? (anchor ?? active) : null); setActive({ row, column }); }} onMouseEnter={(event) => { if (event.buttons === 1) { setAnchor(anchor ?? active); setActive({ row, column }); } }}>
                        {text.length > CELL_CHARS ? `${text.slice(0, CELL_CHARS)}…` : text}
                      </div>
                    );
                  })}
                </div>
              );
            })}
          </div>
        </div>
      </div>
    </>
  );
}
