// Small parts that all pages use: icons, tabs, dialogs, notices, fields.

import { createContext } from "preact";
import { useContext, useEffect, useId, useRef, useState } from "preact/hooks";

export const App = createContext(null);
export const useApp = () => useContext(App);

const ICONS = {
  ask: "M4 5h16M4 10h10M4 15h7M15 14l5 3-5 3z",
  draw: "M4 4v16h16M7 15l4-5 3 3 5-7",
  notebook: "M6 3h12v18H6zM10 3v18M13 8h3M13 12h3",
  load: "M12 4v11M7 11l5 5 5-5M4 20h16",
  tables: "M4 5h16v14H4zM4 10h16M4 15h16M10 5v14",
  server: "M4 4h16v7H4zM4 13h16v7H4zM8 7.5h.01M8 16.5h.01",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5",
  moon: "M20 14A8 8 0 0110 4a8 8 0 1010 10z",
  run: "M7 5l12 7-12 7z",
  stop: "M7 7h10v10H7z",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  save: "M5 4h11l3 3v13H5zM8 4v5h7V4M8 20v-6h8v6",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  download: "M12 4v10M8 10l4 4 4-4M5 19h14",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  refresh: "M20 8a8 8 0 10.5 6M20 3v5h-5",
  chevron: "M9 6l6 6-6 6",
  up: "M6 14l6-6 6 6",
  down: "M6 10l6 6 6-6",
  left: "M15 6l-6 6 6 6",
  right: "M9 6l6 6-6 6",
  key: "M14 10a4 4 0 11-3-3.9L20 3v4h-3v3h-3z",
  out: "M14 5H5v14h9M10 12h10M17 8l4 4-4 4",
};

export function Icon({ name, size = 16 }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

export function Button({ icon, children, kind = "", label, ...rest }) {
  return (
    <button type="button" class={`button ${kind} ${children ? "" : "bare"}`} aria-label={label} title={label} {...rest}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Tabs in the manner of WAI-ARIA: arrow keys go through them. */
export function Tabs({ tabs, current, onPick, label }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = tabs.map(([name]) => name);
    const next = names[(names.indexOf(current) + step + names.length) % names.length];
    onPick(next);
    event.currentTarget.querySelector(`[data-tab="${next}"]`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(([name, title, note]) => (
        <button type="button" role="tab" key={name} data-tab={name} aria-selected={name === current} tabIndex={name === current ? 0 : -1} onClick={() => onPick(name)}>
          {title}
          {note !== undefined && note !== null && <span class="note">{note}</span>}
        </button>
      ))}
    </div>
  );
}

export function Field({ label, hint, children, wide }) {
  return (
    <label class={`field ${wide ? "wide" : ""}`}>
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
    </label>
  );
}

export function Select({ value, options, onPick, label, ...rest }) {
  return (
    <select value={value} aria-label={label} onChange={(event) => {
        const picked = event.currentTarget.value;
        // What is shown is what is in force, which the one who is told decides.
        event.currentTarget.value = value;
        onPick(picked);
      }} {...rest}>
      {options.map((option) => {
        const [name, text] = Array.isArray(option) ? option : [option, option];
        return (
          <option key={name} value={name} selected={name === value}>
            {text}
          </option>
        );
      })}
    </select>
  );
}

export function Notice({ kind = "bad", children, action }) {
  return (
    <div class={`notice ${kind}`} role={kind === "bad" ? "alert" : "status"}>
      <div>{children}</div>
      {action}
    </div>
  );
}

export function Empty({ title, children }) {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children}
    </div>
  );
}

export function Dialog({ title, onClose, children, wide }) {
  const element = useRef(null);
  const id = useId();
  useEffect(() => {
    element.current.showModal();
  }, []);
  return (
    <dialog ref={element} class={wide ? "wide" : ""} aria-labelledby={id} onClose={onClose} onClick={(event) => event.target === element.current && onClose()}>
      <div class="dialog">
        <header>
          <h2 id={id}>{title}</h2>
          <Button icon="close" kind="ghost" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Asks before something that cannot be taken back; with `name` it has to be typed. */
export function Confirm({ title, children, name, verb, onConfirm, onClose }) {
  const [typed, setTyped] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const go = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await onConfirm();
      onClose();
    } catch (failed) {
      setError(failed.message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={go}>
        <div class="text">{children}</div>
        {name && (
          <Field label={<>Type <b>{name}</b> to go on</>} wide>
            <input type="text" value={typed} autocomplete="off" spellcheck={false} onInput={(event) => setTyped(event.currentTarget.value)} />
          </Field>
        )}
        {error && <Notice>{error}</Notice>}
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <button type="submit" class="button danger" disabled={busy || (name !== undefined && typed !== name)}>
            {verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** A text to copy, with a button that does so. */
export function Snippet({ text, label }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    if (await copyText(text)) {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    }
  };
  return (
    <div class="snippet">
      <pre tabIndex={0} aria-label={label}>{text}</pre>
      <Button icon="copy" onClick={copy} label={`Copy: ${label}`}>
        {copied ? "Copied" : "Copy"}
      </Button>
    </div>
  );
}

/** Copies a text, also where the page is not from a secure origin and so has no clipboard. */
export async function copyText(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Falls through to the older way.
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** Loads something, again when `keys` change or `reload` is called; keeps the old value while it loads. */
export function useLoad(load, keys) {
  const [state, setState] = useState({ value: null, error: "" });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    Promise.resolve(load()).then(
      (value) => current && setState({ value, error: "" }),
      (error) => current && setState((before) => ({ value: before.value, error: error.message })),
    );
    return () => {
      current = false;
    };
  }, [...keys, turn]);
  return { ...state, reload: () => setTurn((before) => before + 1) };
}

/** Calls `tick` now and every `ms`, while the page is looked at. */
export function useEvery(tick, ms, keys = []) {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    if (!ms) return undefined;
    const call = () => document.visibilityState === "visible" && latest.current();
    call();
    const timer = setInterval(call, ms);
    return () => clearInterval(timer);
  }, [ms, ...keys]);
}

/** Kept after so long, and once the page is looked at. */
export async function whenSeen(ms) {
  await new Promise((resolve) => setTimeout(resolve, ms));
  if (document.visibilityState === "visible") return;
  await new Promise((resolve) => {
    const look = () => {
      if (document.visibilityState !== "visible") return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
  });
}
