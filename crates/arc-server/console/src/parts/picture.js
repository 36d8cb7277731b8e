// Charts as PNG: what is seen, with the names and values beside it, on the colour of the page.

const PAD = 16;
const ROW = 20;
const FONT = "12px system-ui, sans-serif";

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Makes a canvas of a size in points of the page, with its background. */
export function sheet(width, height) {
  const canvas = document.createElement("canvas");
  const scale = Math.max(1, devicePixelRatio || 1);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.fillStyle = colour("--panel");
  context.fillRect(0, 0, width, height);
  context.font = FONT;
  context.textBaseline = "middle";
  return { canvas, context };
}

/** Puts a drawn chart and its legend on one sheet; `entries` are `{ name, value, colour }`. */
export function withLegend(drawn, title, entries) {
  const scale = Math.max(1, devicePixelRatio || 1);
  const [width, height] = [drawn.width / scale + 2 * PAD, drawn.height / scale];
  const rows = wrapped(entries, width - 2 * PAD);
  const top = title ? PAD + ROW : PAD;
  const { canvas, context } = sheet(width, top + height + PAD / 2 + rows.length * ROW + PAD);
  if (title) {
    context.fillStyle = colour("--ink");
    context.font = "600 13px system-ui, sans-serif";
    context.fillText(title, PAD, PAD + 4, width - 2 * PAD);
    context.font = FONT;
  }
  context.drawImage(drawn, PAD, top, drawn.width / scale, height);
  rows.forEach((row, index) => {
    let left = PAD;
    const middle = top + height + PAD / 2 + index * ROW + ROW / 2;
    for (const { text, colour: fill, wide } of row) {
      context.fillStyle = fill;
      context.fillRect(left, middle - 5, 10, 10);
      context.fillStyle = colour("--ink");
      context.fillText(text, left + 16, middle);
      left += wide;
    }
  });
  return canvas;
}

/** Breaks the entries of a legend into lines that fit. */
function wrapped(entries, width) {
  const { context } = sheet(1, 1);
  const rows = [];
  let left = Infinity;
  for (const { name, value, colour: fill } of entries) {
    const text = `${name || "value"}  ${value}`.slice(0, 200);
    const wide = context.measureText(text).width + 34;
    if (left + wide > width) {
      rows.push([]);
      left = 0;
    }
    rows.at(-1).push({ text, colour: fill, wide });
    left += wide;
  }
  return rows;
}

/** Draws tiles: a name and its last value each. */
export function tilesPicture(title, entries) {
  const columns = Math.min(4, Math.max(1, entries.length));
  const [wide, high, gap] = [200, 64, 10];
  const top = title ? PAD + ROW : PAD;
  const { canvas, context } = sheet(2 * PAD + columns * (wide + gap) - gap, top + Math.ceil(entries.length / columns) * (high + gap) + PAD);
  context.fillStyle = colour("--ink");
  if (title) context.fillText(title, PAD, PAD + 4);
  entries.forEach(({ name, value, colour: fill }, index) => {
    const [left, down] = [PAD + (index % columns) * (wide + gap), top + Math.floor(index / columns) * (high + gap)];
    context.strokeStyle = colour("--line");
    context.strokeRect(left + 0.5, down + 0.5, wide - 1, high - 1);
    context.fillStyle = fill;
    context.fillRect(left, down, wide, 3);
    context.fillStyle = colour("--muted");
    context.font = FONT;
    context.fillText(name || "value", left + 12, down + 18, wide - 24);
    context.fillStyle = colour("--ink");
    context.font = "600 22px system-ui, sans-serif";
    context.fillText(value, left + 12, down + 44, wide - 24);
  });
  return canvas;
}

/** Draws a heat map's canvas with the names of its rows before it. */
export function heatPicture(title, drawn, names, row) {
  const scale = Math.max(1, devicePixelRatio || 1);
  const label = 140;
  const top = title ? PAD + ROW : PAD;
  const { canvas, context } = sheet(2 * PAD + label + drawn.width / scale, top + drawn.height / scale + PAD);
  context.fillStyle = colour("--ink");
  if (title) context.fillText(title, PAD, PAD + 4);
  context.textAlign = "right";
  names.forEach((name, index) => context.fillText(name || "value", PAD + label - 8, top + index * row + row / 2, label - 8));
  context.drawImage(drawn, PAD + label, top, drawn.width / scale, drawn.height / scale);
  return canvas;
}

/** Has the browser save a canvas. */
export function savePng(canvas, save, name) {
  canvas.toBlob((blob) => save(blob, name));
}
