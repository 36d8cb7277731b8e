// One row of an answer from top to bottom: all of its columns with all of their text, which cells cut off.

import { useState } from "preact/hooks";

import { display, toTsv, typeName } from "../lib/display.js";
import { count } from "../lib/locale.js";
import { Button, Dialog, copyText, useApp } from "../ui.jsx";

const MOST_COLUMNS = 300;
const MOST_CHARS = 100_000;

/** `row` is its number as it is sorted, `from` where it is in `rows`. */
export function RowView({ rows, row, from, onMove, onClose }) {
  const { times } = useApp();
  const [filter, setFilter] = useState("");
  const [more, setMore] = useState(MOST_COLUMNS);
  const found = rows.fields.map((field, column) => ({ field, column })).filter(({ field }) => field.name.toLowerCase().includes(filter.toLowerCase()));
  const text = ({ field, column }) => display(rows.get(from, column), field, times);
  const copy = () => copyText(toTsv(found.map((one) => [one.field.name, rows.get(from, one.column) === null ? null : text(one)])));
  return (
    <Dialog title={`Row ${count(row + 1)} of ${count(rows.length)}`} onClose={onClose} wide>
      <div class="toolbar">
        <input type="search" placeholder="Find a column" aria-label="Find a column" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <Button icon="up" label="Row before" disabled={row === 0} onClick={() => onMove(row - 1)} />
        <Button icon="down" label="Next row" disabled={row + 1 >= rows.length} onClick={() => onMove(row + 1)} />
        <div class="spacer" />
        <Button icon="copy" onClick={copy} title="Names and values, with tabs between them">Copy</Button>
      </div>
      <table class="row-view">
        <tbody>
          {found.slice(0, more).map((one) => {
            const whole = text(one);
            return (
              <tr key={one.column}>
                <th scope="row">{one.field.name} <small>{typeName(one.field.type)}</small></th>
                <td class={rows.get(from, one.column) === null ? "null" : ""}>{whole.length > MOST_CHARS ? `${whole.slice(0, MOST_CHARS)}…` : whole}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {found.length === 0 && <p class="hint">No column has this name.</p>}
      {found.length > more && <Button onClick={() => setMore(more + MOST_COLUMNS)}>Show {count(Math.min(MOST_COLUMNS, found.length - more))} more</Button>}
    </Dialog>
  );
}
