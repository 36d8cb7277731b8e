// The address after `#`: which page, and what it shows. Sent to nobody.

import { useEffect, useState } from "preact/hooks";

import { href, parseRoute } from "./lib/address.js";

export { href };

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
