// What a token may do, in words.

const all = (names) => !names || names.length === 0 || (names.length === 1 && names[0] === "*");

/** Returns the grants of a token as the server tells of it; older servers had one for all. */
export function grantsOf(token, permissions) {
  return token.grants ?? [{ rights: permissions ?? token.permissions, databases: token.databases, tables: token.tables }];
}

/** Says grants in one line: `read, write in plant* for pump; read`. */
export function rightsText(grants) {
  return grants
    .map(({ rights, permissions, databases, tables }) => {
      const where = [all(databases) ? "" : ` in ${databases.join(", ")}`, all(tables) ? "" : ` for ${tables.join(", ")}`].join("");
      return (rights ?? permissions ?? []).join(", ") + where;
    })
    .join("; ");
}
