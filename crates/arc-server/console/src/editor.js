// The SQL editor: CodeMirror in a shadow root, where its styles need no leave to be inline. Loaded when it is first shown.

import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { basicSetup, EditorView } from "codemirror";
import { acceptCompletion, autocompletion, closeCompletion, completionStatus } from "@codemirror/autocomplete";
import { indentWithTab } from "@codemirror/commands";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { quoteName } from "./lib/sql.js";

const FUNCTIONS =
  "abs approx_distinct approx_median approx_percentile_cont array_agg arrow_cast arrow_typeof avg bit_length btrim cbrt ceil char_length coalesce concat concat_ws corr count covar_samp date_bin date_format date_part date_trunc exp first_value floor from_unixtime greatest last_value lag lead least left length ln log log10 log2 lower lpad ltrim max md5 mean median min now nth_value ntile nullif nvl percent_rank pi position power random rank regexp_like regexp_match regexp_replace repeat replace reverse right round row_number rpad rtrim sha256 signum split_part sqrt starts_with stddev stddev_pop strpos substr sum to_timestamp to_timestamp_micros to_timestamp_millis to_timestamp_nanos to_timestamp_seconds to_unixtime trim trunc upper uuid var var_pop".split(" ");
const VARIABLES = [["$from", "begin of the range"], ["$to", "end of the range"], ["$interval", "a round part of the range"]];

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: tags.typeName, color: "var(--code-keyword)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--ink)", backgroundColor: "var(--panel)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  ".cm-activeLineGutter": { backgroundColor: "var(--hover)", color: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px", boxShadow: "var(--shadow)" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.75" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection)" },
  ".cm-panels": { backgroundColor: "var(--panel)", color: "var(--ink)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
});

/**
 * Makes an editor in `parent`. `on.change(text)`, `on.run()`, `on.runAll()` are called as things happen.
 * Returns its handle.
 */
export function createEditor(parent, { text, label, on }) {
  const shadow = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const language = new Compartment();
  const call = (name) => (view) => {
    closeCompletion(view);
    on[name]?.();
    return true;
  };
  const keys = [
    { key: "Mod-Enter", run: call("run") },
    { key: "Shift-Mod-Enter", run: call("runAll") },
    { key: "Mod-s", run: call("save"), preventDefault: true },
    { key: "Tab", run: (view) => completionStatus(view.state) === "active" && acceptCompletion(view) },
  ];
  const view = new EditorView({
    parent: shadow,
    root: shadow,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(keymap.of(keys)),
        basicSetup,
        autocompletion({ icons: false }),
        // Escape, then Tab, leaves the editor, for those who have no mouse.
        keymap.of([indentWithTab]),
        language.of(support({}, "")),
        syntaxHighlighting(colours),
        look,
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.updateListener.of((update) => update.docChanged && on.change?.(update.state.doc.toString())),
      ],
    }),
  });
  return {
    view,
    text: () => view.state.doc.toString(),
    selection: () => {
      const { from, to, head } = view.state.selection.main;
      return { from, to, head };
    },
    setText: (next) => {
      if (next !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
    },
    insert: (piece) => {
      view.dispatch(view.state.replaceSelection(piece));
      view.focus();
    },
    setSchema: (schema, database) => view.dispatch({ effects: language.reconfigure(support(schema, database)) }),
    setErrors: (errors) => {
      const length = view.state.doc.length;
      const diagnostics = errors.map(({ from, to, message }) => {
        const start = Math.min(from, length);
        return { from: start, to: Math.max(start, Math.min(to, length)), severity: "error", message };
      });
      view.dispatch(setDiagnostics(view.state, diagnostics));
      if (diagnostics.length > 0) view.dispatch({ effects: EditorView.scrollIntoView(diagnostics[0].from, { y: "nearest" }) });
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

/** The language with completion, as extensions of an editor: `schema` is `{ database: { table: [{ name, type }] } }`. */
export function support(schema, database) {
  const columns = (list) => list.map(({ name, type }) => ({ label: name, type: "property", detail: type }));
  const tables = (of) => Object.fromEntries(Object.entries(of ?? {}).map(([table, list]) => [escaped(table), columns(list)]));
  const namespace = Object.fromEntries(Object.entries(schema).map(([name, of]) => [escaped(name), tables(of)]));
  const language = sql({ dialect: PostgreSQL, schema: namespace, defaultSchema: escaped(database), upperCaseKeywords: true });
  const options = [
    ...FUNCTIONS.map((label) => ({ label, type: "function", apply: `${label}(`, boost: -1 })),
    ...VARIABLES.map(([label, detail]) => ({ label, detail, type: "variable" })),
  ];
  const known = tablesByWord(schema[database] ?? {});
  const words = PostgreSQL.language.data.of({
    autocomplete: (context) => {
      const word = context.matchBefore(/\$?\w+/);
      const dotted = word && word.from > 0 && context.state.sliceDoc(word.from - 1, word.from) === ".";
      if (!word || dotted) return null;
      return { from: word.from, options: [...columnsOf(context.state.doc, known), ...options], validFor: /^\$?\w*$/ };
    },
  });
  return [language, words];
}

/** Most text that is looked through for the names of tables at each key, and most columns that it offers. */
const MOST_TEXT = 20_000;
const MOST_COLUMNS = 2_000;

function tablesByWord(tables) {
  return new Map(Object.entries(tables).map(([name, columns]) => [name.toLowerCase(), columns]));
}

/** Offers the columns of the tables that the text names, before functions and keywords. */
function columnsOf(doc, known) {
  const found = new Map();
  for (const match of doc.sliceString(0, MOST_TEXT).matchAll(/"((?:[^"]|"")+)"|[\p{L}_][\p{L}\p{N}_]*/gu)) {
    for (const { name, type } of known.get((match[1]?.replaceAll('""', '"') ?? match[0]).toLowerCase()) ?? []) {
      if (found.size >= MOST_COLUMNS) return [...found.values()];
      found.set(name, { label: name, detail: type, type: "property", apply: quoteName(name), boost: 50 });
    }
  }
  return [...found.values()];
}

/** A dot in a name would be read as two names. */
function escaped(name) {
  return name.replaceAll("\\", "\\\\").replaceAll(".", "\\.");
}
