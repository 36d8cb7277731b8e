// Picks a range: a length up to now, or two times.

import { useState } from "preact/hooks";

import { LASTS, isoTime, parseTime, rangeEnds } from "../lib/time.js";
import { Button, Dialog, Field, Notice, Select } from "../ui.jsx";

/** With `moves` there is a way closer without a mouse as well. */
export function RangePicker({ range, onPick, moves = false }) {
  const [open, setOpen] = useState(false);
  const options = [...LASTS];
  if (range.last && !LASTS.some(([last]) => last === range.last)) options.push([range.last, `Last ${range.last}`]);
  if (range.from) options.unshift(["fixed", `${range.from.slice(0, 19).replace("T", " ")} – ${range.to.slice(0, 19).replace("T", " ")}`]);
  options.push(["pick", "Between two times…"]);
  return (
    <>
      <Select label="Range" value={range.last ?? "fixed"} options={options} onPick={(last) => (last === "pick" ? setOpen(true) : last === "fixed" ? undefined : onPick({ last }))} />
      <span class="group">
        <Button kind="ghost" icon="left" label="Earlier" onClick={() => onPick(moved(range, -1n))} />
        <Button kind="ghost" icon="right" label="Later" disabled={Boolean(range.last)} onClick={() => onPick(moved(range, 1n))} />
      </span>
      {range.from && <Button onClick={() => onPick(scaled(range, 1n))} title="Three times as long">Wider</Button>}
      {moves && <Button onClick={() => onPick(scaled(range, -3n))} title="The middle third">Closer</Button>}
      {open && <Between range={range} onClose={() => setOpen(false)} onPick={onPick} />}
    </>
  );
}

const ends = (range) => rangeEnds(range, BigInt(Date.now()) * 1_000_000n);

/** Times are 64 bits of nanoseconds: 1677 to 2262. */
const within = (ns) => (ns < MIN ? MIN : ns > MAX ? MAX : ns);
const MIN = -(2n ** 63n);
const MAX = 2n ** 63n - 1n;

/** Puts so many parts of its length at both ends of a range, a third each; fewer than none make it shorter. */
function scaled(range, thirds) {
  const { from, to } = ends(range);
  const step = thirds > 0n ? to - from : (to - from) / thirds;
  return step === 0n ? range : { from: isoTime(within(from - step)), to: isoTime(within(to + step)) };
}

/** Moves a range by half of its length. */
function moved(range, direction) {
  const { from, to } = ends(range);
  const step = ((to - from) / 2n || 1n) * direction;
  return { from: isoTime(within(from + step)), to: isoTime(within(to + step)) };
}

function Between({ range, onClose, onPick }) {
  const second = (ns) => isoTime((ns / 1_000_000_000n) * 1_000_000_000n);
  const [from, setFrom] = useState(range.from ?? second(ends(range).from));
  const [to, setTo] = useState(range.to ?? second(ends(range).to));
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
