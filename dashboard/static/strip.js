import { age, make, svg } from "./view.js";

// A strip has so many bars, each of so many seconds: the first that is enough for all since the page was opened.
const slots = 60, steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600], tall = 30;

// strip draws numbers over time as thin bars, the newest at the right. list has { at, n, kind }: kind is bad, warn
// or nothing, and is a mark below the bar; add says what two numbers of one bar make.
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
    ...bars.flatMap((b, i) => {
      const high = b.n ? Math.max(6, (tall - 4) * b.n / most) : 1, at = { x: 5 * i + 1, width: 3 };
      return [svg("rect", { ...at, y: tall - 4 - high, height: high, class: b.n ? "some" : undefined }),
        b.n && b.kind ? svg("rect", { ...at, y: tall - 2.5, height: 2.5, class: b.kind }) : null];
    }));
  return make("figure", { class: "pulse" }, out, make("figcaption", {}, make("span", {}, age(slots * step / 1000) + " ago"), make("span", {}, word + ", at most " + most), make("span", {}, "now")));
}
