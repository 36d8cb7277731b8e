// Calls again once rows of tables were acknowledged.

import { useEffect, useRef, useState } from "preact/hooks";

import { tail } from "../api.js";
import { follow } from "../lib/follow.js";
import { whenSeen } from "../ui.jsx";

/** Calls `read` now and whenever rows of one of `tables` have come; none of them, and it does nothing. Returns what is wrong with it. */
export function useFollow(read, database, tables, keys = []) {
  const latest = useRef(read);
  latest.current = read;
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    setTrouble("");
    if (tables.length === 0) return undefined;
    const controller = new AbortController();
    const open = async (signal) => {
      const tails = await Promise.all(tables.map((table) => tail(table, database, signal)));
      return () => Promise.race(tails.map((come) => come()));
    };
    follow({ open, read: () => latest.current(), pause: whenSeen, onTrouble: setTrouble, signal: controller.signal }).then(
      (ended) => ended && setTrouble(ended),
    );
    return () => controller.abort();
  }, [database, tables.join("\u001f"), ...keys]);
  return trouble;
}
