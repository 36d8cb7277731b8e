// Picks a range: a length up to now, or two times.

import { useState } from "preact/hooks";

import { parseTime, rangeEnds } from "../lib/time.js";
import { Button, Dialog, Field, Notice, Select } from "../ui.jsx";

const LASTS = [["5m", "Last 5 minutes"], ["15m", "Last 15 minutes"], ["1h", "Last hour"], ["6h", "Last 6 hours"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"], ["30d", "Last 30 days"], ["365d", "Last year"]];

export function RangePicker({ range, onPick }) {
  const [open, setOpen] = useState(false);
  const options = [...LASTS];
  if (range.last && !LASTS.some(([last]) => last === range.last)) options.push([range.last, `Last ${range.last}`]);
  if (range.from) options.unshift(["fixed", `${range.from.slice(0, 19).replace("T", " ")} – ${range.to.slice(0, 19).replace("T", " ")}`]);
  options.push(["pick", "Between two times…"]);
  return (
    <>
      <Select label="Range" value={range.last ?? "fixed"} options={options} onPick={(last) => (last === "pick" ? setOpen(true) : last === "fixed" ? undefined : onPick({ last }))} />
      {range.from && <Button onClick={() => onPick(wider(range))} title="Three times as long">Wider</Button>}
      {open && <Between range={range} onClose={() => setOpen(false)} onPick={onPick} />}
    </>
  );
}

function wider(range) {
  const { from, to } = rangeEnds(range, 0n);
  const iso = (ns) => new Date(Number(ns / 1_000_000n)).toISOString();
  return { from: iso(from - (to - from)), to: iso(to + (to - from)) };
}

function Between({ range, onClose, onPick }) {
  const ends = rangeEnds(range, BigInt(Date.now()) * 1_000_000n);
  const iso = (ns) => new Date(Number(ns / 1_000_000n)).toISOString();
  const [from, setFrom] = useState(range.from ?? iso(ends.from));
  const [to, setTo] = useState(range.to ?? iso(ends.to));
  const wrong = parseTime(from) === null || parseTime(to) === null ? "Write a time as 2026-01-31 12:00:00, in UTC." : rangeEnds({ from, to }, 0n) === null ? "The begin has to be before the end." : "";
  const pick = (event) => {
    event.preventDefault();
    if (wrong) return;
    onPick({ from, to });
    onClose();
  };
  return (
    <Dialog title="Between two times" onClose={onClose}>
      <form onSubmit={pick}>
        <Field label="From (UTC)" wide>
          <input type="text" value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
        </Field>
        <Field label="To (UTC)" wide>
          <input type="text" value={to} onInput={(event) => setTo(event.currentTarget.value)} />
        </Field>
        {wrong && <Notice>{wrong}</Notice>}
        <footer>
          <button type="submit" class="button primary" disabled={wrong !== ""}>Show</button>
        </footer>
      </form>
    </Dialog>
  );
}
