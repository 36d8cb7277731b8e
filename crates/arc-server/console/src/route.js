// The address after `#`: which page, and what it shows. Sent to nobody.

import { useEffect, useState } from "preact/hooks";

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

export function go(page, params) {
  location.hash = href(page, params);
}

/** Changes the address without a new step to go back to; not any more once somebody has gone to another page. */
export function replace(page, params) {
  if (location.hash !== "" && parseRoute(location.hash).page !== page) return;
  history.replaceState(null, "", href(page, params));
}

export function useRoute() {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
