// The part of an address after `#`, read and written. Never looks at the page's own.

export function parseRoute(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [page = "", ...rest] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { page: page || "ask", rest, params: new URLSearchParams(search) };
}

export function href(page, params = {}) {
  const search = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  return `#/${page}${search.size > 0 ? `?${search}` : ""}`;
}
