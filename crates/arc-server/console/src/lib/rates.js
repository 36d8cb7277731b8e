// Counters of the server as series over time: their growth a second, or their value.

/** `samples` are `{ at (seconds), values }`; `series` are `[name, key, isCounter]`. */
export function rate(samples, series) {
  const times = samples.slice(1).map(({ at }) => at);
  return {
    times,
    series: series.map(([name, key, isCounter]) => ({
      name,
      values: samples.slice(1).map(({ at, values }, index) => {
        const value = values[key];
        if (value === undefined) return null;
        if (!isCounter) return value;
        const before = samples[index];
        const grown = value - before.values[key];
        // A counter that is smaller is one of a server that was started again.
        return grown >= 0 && at > before.at ? grown / (at - before.at) : null;
      }),
    })),
  };
}

/** Puts the parts that the server remembers, lists of `{ timestamp, values }`, into samples; those of one minute together. */
export function samplesOf(parts) {
  const found = new Map();
  for (const { timestamp, values } of parts.flat()) {
    const at = Math.round(Date.parse(timestamp) / 1000);
    const minute = Math.floor(at / 30);
    const sample = found.get(minute) ?? { at, values: {} };
    Object.assign(sample.values, values);
    found.set(minute, sample);
  }
  return [...found.values()].sort((one, other) => one.at - other.at);
}
