// Tokens: made, revoked, rotated, deleted. The text of one is shown once, where it was made.

import { useState } from "preact/hooks";

import { change, get, path } from "../api.js";
import { moment } from "../lib/locale.js";
import { grantsOf, rightsText } from "../lib/rights.js";
import { Button, Confirm, Dialog, Field, Notice, Select, Snippet, useApp, useLoad } from "../ui.jsx";

export function Tokens() {
  const { who, times, reader } = useApp();
  const tokens = useLoad(() => get("api/v1/auth/tokens"), []);
  const [dialog, setDialog] = useState(null);
  const [secret, setSecret] = useState("");
  const [error, setError] = useState("");
  const act = async (method, address, value) => {
    const answer = await change(method, address, value);
    if (answer?.new_token) setSecret(answer.new_token);
    tokens.reload();
  };
  const when = (text) => moment(text, times);
  return (
    <>
      {reader ? (
        <p class="hint">Tokens are made and changed at the server that writes.</p>
      ) : (
        <div class="toolbar">
          <Button kind="primary" icon="plus" onClick={() => setDialog({ what: "new" })}>New token</Button>
        </div>
      )}
      {(error || tokens.error) && <Notice>{error || tokens.error}</Notice>}
      <table>
        <thead><tr><th scope="col">Name</th><th scope="col">May</th><th scope="col">Made</th><th scope="col">Last used</th><th scope="col">Ends</th><th scope="col">State</th><th scope="col"><span class="unseen">Change</span></th></tr></thead>
        <tbody>
          {tokens.value?.tokens.map((token) => (
            <tr key={token.id}>
              <td><b>{token.name}</b>{token.description && <small> {token.description}</small>}</td>
              <td>{rightsText(grantsOf(token))}</td>
              <td>{when(token.created_at)}</td>
              <td>{when(token.last_used_at)}</td>
              <td>{token.expires_at ? when(token.expires_at) : "never"}</td>
              <td>{token.enabled === false ? "revoked" : "in force"}</td>
              <td class="actions">
                {reader ? null : token.enabled === false ? (
                  <Button onClick={() => act("PATCH", path`api/v1/auth/tokens/${token.id}`, { enabled: true }).then(() => setError(""), (failed) => setError(failed.message))}>Enable</Button>
                ) : (
                  <Button onClick={() => setDialog({ what: "revoke", token })}>Revoke</Button>
                )}
                {!reader && <Button onClick={() => setDialog({ what: "rotate", token })}>Rotate</Button>}
                {!reader && <Button kind="danger" icon="trash" label={`Delete ${token.name}`} onClick={() => setDialog({ what: "delete", token })} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {dialog?.what === "new" && <NewToken onClose={() => setDialog(null)} onMade={(text) => { setSecret(text); tokens.reload(); }} />}
      {dialog?.what === "revoke" && <Confirm title="Revoke" verb="Revoke" onClose={() => setDialog(null)} onConfirm={() => act("POST", path`api/v1/auth/tokens/${dialog.token.id}/revoke`)}>The token <b>{dialog.token.name}</b> lets nobody in any more{dialog.token.name === who.name && ", you neither"}.</Confirm>}
      {dialog?.what === "rotate" && <Confirm title="Rotate" verb="Rotate" onClose={() => setDialog(null)} onConfirm={() => act("POST", path`api/v1/auth/tokens/${dialog.token.id}/rotate`)}>The token <b>{dialog.token.name}</b> gets another text; who has the old one is out at once.</Confirm>}
      {dialog?.what === "delete" && <Confirm title="Delete the token" name={dialog.token.name} verb="Delete" onClose={() => setDialog(null)} onConfirm={() => act("DELETE", path`api/v1/auth/tokens/${dialog.token.id}`)}>Who uses <b>{dialog.token.name}</b> is out at once, for good.</Confirm>}
      {secret && (
        <Dialog title="The token" onClose={() => setSecret("")}>
          <p>It is shown this once, and nobody can look it up later.</p>
          <Snippet text={secret} label="Token" />
        </Dialog>
      )}
    </>
  );
}

function NewToken({ onClose, onMade }) {
  const [want, setWant] = useState({ name: "", right: "read,write", databases: "", tables: "", expires_in: "" });
  const [error, setError] = useState("");
  const set = (key) => (event) => setWant({ ...want, [key]: event.currentTarget.value });
  const names = (text) => text.split(",").map((name) => name.trim()).filter(Boolean);
  const make = async (event) => {
    event.preventDefault();
    const body = { name: want.name, permissions: want.right.split(",") };
    if (names(want.databases).length > 0) body.databases = names(want.databases);
    if (names(want.tables).length > 0) body.tables = names(want.tables);
    if (want.expires_in) body.expires_in = want.expires_in;
    try {
      const { token } = await change("POST", "api/v1/auth/tokens", body);
      onMade(token);
      onClose();
    } catch (failed) {
      setError(failed.message);
    }
  };
  return (
    <Dialog title="New token" onClose={onClose}>
      <form onSubmit={make}>
        <Field label="Name" wide><input type="text" required value={want.name} onInput={set("name")} /></Field>
        <Field label="May" wide>
          <Select value={want.right} options={[["read", "read"], ["write", "write"], ["read,write", "read and write"], ["read,write,delete", "read, write and delete"], ["admin", "everything (admin)"]]} onPick={(right) => setWant({ ...want, right })} />
        </Field>
        <Field label="Databases" hint="names or patterns such as plant*, with commas; empty: all" wide><input type="text" value={want.databases} onInput={set("databases")} /></Field>
        <Field label="Tables" hint="likewise" wide><input type="text" value={want.tables} onInput={set("tables")} /></Field>
        <Field label="Ends after" hint="24h, 30d; empty: never" wide><input type="text" value={want.expires_in} onInput={set("expires_in")} /></Field>
        {error && <Notice>{error}</Notice>}
        <footer><button type="submit" class="button primary">Make</button></footer>
      </form>
    </Dialog>
  );
}
