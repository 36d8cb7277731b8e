// The editor as a part of a page; until it is loaded, a plain text box that already works.

import { useEffect, useRef, useState } from "preact/hooks";

let loading = null;
const library = () => (loading ??= import("./editor.js"));

/** `handle.current` becomes the editor's handle; `handlers.current` has what is called. */
export function Editor({ text, handle, handlers, schema, database, label, small }) {
  const host = useRef(null);
  const [ready, setReady] = useState(false);
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    let made = null;
    let gone = false;
    library().then(({ createEditor }) => {
      if (gone) return;
      const on = Object.fromEntries(["run", "runAll", "save", "change"].map((name) => [name, (...values) => handlers.current[name]?.(...values)]));
      made = createEditor(host.current, { text: latest.current, label, on });
      handle.current = made;
      setReady(true);
    });
    return () => {
      gone = true;
      made?.destroy();
      if (handle.current === made) handle.current = null;
    };
  }, []);
  useEffect(() => {
    if (ready) handle.current?.setSchema(schema, database);
  }, [ready, schema, database]);
  return (
    <div class={`editor ${small ? "small" : ""}`}>
      <div class="editor-host" ref={host} />
      {!ready && <textarea aria-label={label} spellcheck={false} value={text} onInput={(event) => handlers.current.change?.(event.currentTarget.value)} />}
    </div>
  );
}
