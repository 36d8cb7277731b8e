// Documents that are kept in the server: lists, and saving with a word where somebody else saved meanwhile.

import { useState } from "preact/hooks";

import { change, get, path } from "../api.js";
import { Button, Dialog, Field, Notice, useApp, useLoad } from "../ui.jsx";

const ALL = "api/v1/console/documents";

/** Lists the documents of a kind; a hook. */
export function openDocuments(kind) {
  const { value, error, reload } = useLoad(() => get(`${ALL}?kind=${kind}`), [kind]);
  const [failed, setFailed] = useState("");
  const remove = async (document) => {
    try {
      await change("DELETE", path`api/v1/console/documents/${document.id}` + `?version=${document.version}`);
      setFailed("");
    } catch (error) {
      setFailed(error.message);
    }
    reload();
  };
  return { list: value?.documents, error: failed || error, remove, reload };
}

/** Saves a new document, or a changed one if nobody has saved it since it was opened. */
export async function saveDocument({ document, kind, name, body, shared }) {
  if (!document) return change("POST", ALL, { kind, name, body, shared });
  return change("PUT", path`api/v1/console/documents/${document.id}`, { version: document.version, name, body, shared });
}

export function SaveDocument({ kind, name, document, body, onClose, onSaved }) {
  const { who } = useApp();
  const [text, setText] = useState(name);
  const [shared, setShared] = useState(document?.shared ?? false);
  const [failed, setFailed] = useState(null);
  const save = async (as) => {
    try {
      const saved = await saveDocument({ document: as, kind, name: text, body, shared });
      onSaved({ id: saved.id, version: saved.version, name: saved.name, shared: saved.shared });
      onClose();
    } catch (error) {
      setFailed(error);
    }
  };
  return (
    <Dialog title={document ? "Save" : "Save as"} onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); save(document); }}>
        <Field label="Name" wide>
          <input type="text" required maxLength={200} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </Field>
        {!who.open && (
          <label class="check">
            <input type="checkbox" checked={shared} onChange={(event) => setShared(event.currentTarget.checked)} /> Everybody with a token may see it
          </label>
        )}
        {failed && <Notice>{failed.status === 409 ? "Somebody saved this since you opened it. Save yours as a copy, or open the saved one again." : failed.message}</Notice>}
        <footer>
          {document && <Button onClick={() => save(null)}>Save as a copy</Button>}
          <button type="submit" class="button primary">Save</button>
        </footer>
      </form>
    </Dialog>
  );
}
