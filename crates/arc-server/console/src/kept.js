// What this browser keeps for its user: tabs, history, looks. Never a token.

const PREFIX = `arc.console:${new URL(".", document.baseURI).pathname}:`;

export function recall(name, otherwise) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function keep(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // A full or forbidden storage only means that it is not kept.
  }
}
