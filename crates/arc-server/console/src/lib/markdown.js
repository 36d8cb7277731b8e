// A little markdown as a tree of plain values: headings, lists, code, emphasis, links to web pages. Never makes markup of text.

/** Returns blocks: `{ tag, level?, parts | items | text }`. */
export function blocks(text) {
  const found = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const heading = /^(#{1,4})\s+(.*)$/.exec(line);
    if (heading) found.push({ tag: "heading", level: heading[1].length, parts: inline(heading[2]) });
    else if (line.startsWith("```")) {
      const code = [];
      while (++at < lines.length && !lines[at].startsWith("```")) code.push(lines[at]);
      found.push({ tag: "code", text: code.join("\n") });
    } else if (/^\s*[-*]\s+/.test(line)) {
      const items = [];
      for (; at < lines.length && /^\s*[-*]\s+/.test(lines[at]); at++) items.push(inline(lines[at].replace(/^\s*[-*]\s+/, "")));
      at--;
      found.push({ tag: "list", items });
    } else if (line.trim() !== "") {
      const words = [];
      for (; at < lines.length && lines[at].trim() !== "" && !/^(#{1,4}\s|```|\s*[-*]\s)/.test(lines[at]); at++) words.push(lines[at].trim());
      at--;
      found.push({ tag: "paragraph", parts: inline(words.join(" ")) });
    }
  }
  return found;
}

/** Returns parts: `{ text, style?: "code" | "strong" | "em", href? }`. */
export function inline(text) {
  const parts = [];
  const pattern = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)/g;
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) parts.push({ text: text.slice(at, match.index) });
    const [, code, strong, em, label, href] = match;
    if (code) parts.push({ text: code, style: "code" });
    else if (strong) parts.push({ text: strong, style: "strong" });
    else if (em) parts.push({ text: em, style: "em" });
    else parts.push({ text: label, href });
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push({ text: text.slice(at) });
  return parts;
}
