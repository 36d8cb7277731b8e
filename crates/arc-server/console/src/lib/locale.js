// How this browser's people write dates and counts. Data in cells keeps the point of SQL; nothing is ever rounded here.

const language = globalThis.navigator?.language ?? "en";

/** The orders of a date there are: as in SQL, and as in German. */
export const DATES = [["iso", "2026-01-31"], ["de", "31.01.2026"]];

/** Which of them the browser's language asks for. */
export const browserDates = (of = language) => (/^de\b/i.test(of) ? "de" : "iso");

const numbers = new Intl.NumberFormat(language);

/** Shows a count with the separators of the browser's language. */
export const count = (number) => numbers.format(number);

/** Shows when something was done, as the browser's language says it; seconds are enough. */
export function moment(text, { local = false } = {}) {
  const date = new Date(text);
  if (!text || Number.isNaN(date.getTime())) return "–";
  return date.toLocaleString(language, { dateStyle: "medium", timeStyle: "medium", ...(local ? {} : { timeZone: "UTC" }) });
}
