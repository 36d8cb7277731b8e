// What this browser keeps for its user: tabs, looks, and statements on their way to the server. Never a token.

const nameOf = (name) => `arc.console:${new URL(".", document.baseURI).pathname}:${name}`;

/**
 * Who is logged in; what is kept under `own` names is theirs, for others may use this browser. Tabs are not: who comes
 * back with a new token, because the old one has ended, finds what they were writing.
 */
let user = "";

export function belongsTo(who) {
  user = who;
}

export const own = (name) => (user ? `${name}@${user}` : name);

export function recall(name, otherwise) {
  try {
    const text = localStorage.getItem(nameOf(name));
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function keep(name, value) {
  try {
    localStorage.setItem(nameOf(name), JSON.stringify(value));
  } catch {
    // A full or forbidden storage only means that it is not kept.
  }
}
