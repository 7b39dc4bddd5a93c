import { age, make, svg } from "./view.js";

// A strip has so many bars, each of so many seconds: the first that is enough for all since the page was opened.
const slots = 60, steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600], tall = 30;

// strip draws numbers over time as thin bars, the newest at the right. list has { at, n, kind }: kind is bad, warn
// or nothing, and add says what two numbers of one bar make.
export function strip(list, from, now, add, word) {
  const step = 1000 * (steps.find(s => 1000 * s * slots >= now - from) ?? steps.at(-1)), first = Math.floor(now / step) - slots + 1;
  const bars = Array.from({ length: slots }, () => ({ n: 0, kind: "" }));
  for (const { at, n, kind } of list) {
    const bar = bars[Math.floor(at / step) - first];
    if (!bar) continue;
    bar.n = add(bar.n, n);
    if (kind && bar.kind !== "bad") bar.kind = kind;
  }
  const most = Math.max(1, ...bars.map(b => b.n));
  const out = svg("svg", { class: "strip", viewBox: "0 0 " + 5 * slots + " " + tall, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...bars.map((b, i) => {
      const high = b.n ? Math.max(3, tall * b.n / most) : 1;
      return svg("rect", { x: 5 * i + 1, y: tall - high, width: 3, height: high, class: b.n ? b.kind || "some" : undefined });
    }));
  return make("figure", { class: "pulse" }, out, make("figcaption", {}, make("span", {}, age(slots * step / 1000) + " ago"), make("span", {}, word + ", at most " + most), make("span", {}, "now")));
}
