// Picks a state of the past: now, a while ago, a time, a snapshot.

import { useState } from "preact/hooks";

import { queryRows } from "../api.js";
import { asOfClause, stateName } from "../lib/asof.js";
import { isoTime } from "../lib/time.js";
import { Dialog, Field, Notice, Select, useApp, useLoad } from "../ui.jsx";

const BACK = [["", "As of now"], ["-5m", "As of 5 minutes ago"], ["-15m", "As of 15 minutes ago"], ["-45m", "As of 45 minutes ago"]];

/** Returns the names of the snapshots, newest first; none for who may not see them. */
export async function snapshotNames() {
  const rows = await queryRows("SHOW SNAPSHOTS").catch(() => []);
  return rows.map(([name]) => String(name)).reverse();
}

export function AsOfPicker({ state, onPick }) {
  const [open, setOpen] = useState(false);
  const snapshots = useLoad(snapshotNames, []);
  const options = [...BACK, ...(snapshots.value ?? []).slice(0, 100).map((name) => [`@${name}`, `Snapshot ${name}`])];
  if (state && !options.some(([name]) => name === state)) options.push([state, state.startsWith("@") ? `Snapshot ${state.slice(1)}` : `As of ${stateName(state)}`]);
  options.push(["pick", "As of a time…"]);
  return (
    <>
      <Select label="State" title="What the store had at that time" value={state} options={options} onPick={(value) => (value === "pick" ? setOpen(true) : onPick(value))} />
      {open && <ATime onClose={() => setOpen(false)} onPick={onPick} />}
    </>
  );
}

function ATime({ onClose, onPick }) {
  const { times } = useApp();
  const now = BigInt(Date.now()) * 1_000_000n;
  const [text, setText] = useState(isoTime((now / 1_000_000_000n) * 1_000_000_000n));
  const wrong = text.startsWith("@") || text.startsWith("-") || !asOfClause(text, now);
  const pick = (event) => {
    event.preventDefault();
    if (wrong) return;
    onPick(text.trim());
    onClose();
  };
  return (
    <Dialog title="As of a time" onClose={onClose}>
      <form onSubmit={pick}>
        <p class="hint">Tables are read as they were then, whatever was written, deleted or merged since. The server knows that for as long as its setting <code>history</code> says, one hour unless it was changed; a snapshot lasts until it is dropped.</p>
        <Field label="Time (UTC)" wide>
          <input type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </Field>
        {wrong && <Notice>{times.dates === "de" ? "Write a time as 31.01.2026 12:00:00, in UTC." : "Write a time as 2026-01-31 12:00:00, in UTC."}</Notice>}
        <footer>
          <button type="submit" class="button primary" disabled={wrong}>Show</button>
        </footer>
      </form>
    </Dialog>
  );
}
