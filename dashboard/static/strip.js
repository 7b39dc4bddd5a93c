import { age, make, svg } from "./view.js";

// A strip has so many bars, each of so many seconds: the first that is enough for all since the page was opened.
const fewest = 10, most = 60, steps = [1, 2, 3, 5, 8, 12, 20, 30, 60, 120, 300, 600, 1800, 3600], tall = 30;

// strip draws numbers over time as an area, the newest at the right. list has { at, n, bad, warn }: how many of n
// are red or amber, at the foot of their bar; add says what two numbers of one bar make.
export function strip(list, from, now, add) {
  const step = 1000 * (steps.find(s => 1000 * s * most >= now - from) ?? steps.at(-1)), slots = Math.max(fewest, Math.min(most, Math.ceil((now - from) / step))), first = Math.floor(now / step) - slots + 1;
  const bars = Array.from({ length: slots }, () => ({ n: 0, bad: 0, warn: 0 }));
  for (const of of list) {
    const bar = bars[Math.floor(of.at / step) - first];
    if (bar) for (const part in bar) bar[part] = add(bar[part], of[part] ?? 0);
  }
  const top = Math.max(1, ...bars.map(b => b.n)), high = (n, least) => n ? Math.max(least, tall * n / top / 1.2) : 0;
  const out = svg("svg", { class: "strip", viewBox: "0 0 " + 5 * slots + " " + tall, preserveAspectRatio: "none", "shape-rendering": "crispEdges", "aria-hidden": "true" },
    ...bars.flatMap((b, i) => [["some", high(b.n, 4)], ["warn", high(b.bad + b.warn, 4)], ["bad", high(b.bad, 4)], ["", b.n ? 0 : 1]].filter(([, h]) => h)
      .map(([kind, h]) => svg("rect", { x: 5 * i, width: 5, y: tall - h, height: h, class: kind }))),
    svg("path", { class: "edge", d: bars.map((b, i) => (i ? "V" : "M0 ") + (tall - high(b.n, 4)) + "H" + 5 * (i + 1)).join("") }));
  return make("figure", { class: now - from < 1000 * fewest ? "pulse young" : "pulse" }, out, make("figcaption", {}, make("span", {}, age(slots * step / 1000) + " ago"), make("span", {}, "peak " + top.toLocaleString()), make("span", {}, "now")));
}
