// What both ways in have, lines and files: the database they go to, and the tables that lines are about.

import { count } from "../lib/locale.js";
import { Field, useApp } from "../ui.jsx";

export function DatabaseField({ value, onInput }) {
  const { databases } = useApp();
  return (
    <Field label="Database" hint="Made if it is not there">
      <input type="text" list="databases" value={value} required onInput={(event) => onInput(event.currentTarget.value)} />
      <datalist id="databases">
        {databases.map(({ name }) => <option key={name} value={name} />)}
      </datalist>
    </Field>
  );
}

/** The tables that lines are about, as `check` found them. */
export function Measurements({ found }) {
  if (found.size === 0) return null;
  return (
    <table>
      <thead><tr><th scope="col">Table</th><th scope="col" class="number">Points</th><th scope="col">Tags</th><th scope="col">Fields</th></tr></thead>
      <tbody>
        {[...found].slice(0, 50).map(([name, about]) => (
          <tr key={name}>
            <td>{name}</td>
            <td class="number">{count(about.points)}</td>
            <td>{[...about.tags].join(", ")}</td>
            <td>{[...about.fields].map(([field, type]) => `${field} (${type})`).join(", ")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
