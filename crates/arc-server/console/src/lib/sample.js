// Sample data: the same shapes each time, up to the time that is given.

const HOURS = 6;
const STEP_SECONDS = 30;

/** A generator of numbers in 0..1 that gives the same ones each time (mulberry32). */
function randoms(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Returns line protocol with times in seconds. */
export function sampleLines(nowSeconds) {
  const random = randoms(7);
  const lines = [];
  for (let at = nowSeconds - HOURS * 3600; at <= nowSeconds; at += STEP_SECONDS) {
    const day = (2 * Math.PI * (at % 86_400)) / 86_400;
    [["north", 8], ["harbour", 12], ["hill", 5]].forEach(([station, base], index) => {
      const temperature = base + 6 * Math.sin(day - 1.9) + Math.sin(at / 1700 + index) + random() * 0.4;
      const wind = 4 + 3 * Math.abs(Math.sin(at / 2900 + index)) + random();
      lines.push(`weather,station=${station} temperature=${temperature.toFixed(2)},humidity=${(70 - 2 * temperature + random() * 3).toFixed(1)},wind=${wind.toFixed(2)} ${at}`);
    });
    for (let machine = 1; machine <= 2; machine++) {
      const rpm = Math.round(1400 + 120 * Math.sin(at / 1300 + machine) + 20 * random());
      lines.push(`machine,hall=A,id=${machine} rpm=${rpm}i,power=${(rpm * 0.012 + random()).toFixed(2)},ok=${random() > 0.01} ${at}`);
    }
  }
  return lines.join("\n");
}
