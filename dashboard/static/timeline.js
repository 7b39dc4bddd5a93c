import { age, make, many, shown } from "./view.js";

// The bounds of what this page keeps of holds, and draws of one name.
const mostNames = 2000, mostSpans = 100, mostLanes = 8;

// A span is the time of one hold that was seen: { token, label, from, to }. It has no end while it
// goes on. Of several holders it is that of the oldest.
const held = info => info?.holds[0] && ["held", "handed over"].includes(info.holds[0].state) ? info.holds[0] : undefined;
const labelOf = hold => hold.label || (hold.host ? hold.host + "/" + hold.pid : "?");

// addSpans adds what a change tells to the spans of all names, in the order of the last change.
export function addSpans(all, change) {
  if (change.event === "gap") return;
  const key = change.name_base64 ?? change.name, at = Date.parse(change.at), spans = all.get(key) ?? [];
  const add = hold => spans.push({ token: hold.token, label: labelOf(hold), from: hold.since ? Date.parse(hold.since) : at });
  const before = held(change.before), now = held(change.lock);
  if (before && !spans.length) add(before);
  const last = spans.at(-1);
  if (last && last.to === undefined && last.token !== now?.token) last.to = at;
  if (now && spans.at(-1)?.token !== now.token) add(now);
  if (spans.length > mostSpans) spans.shift();
  all.delete(key);
  all.set(key, spans);
  if (all.size > mostNames) all.delete(all.keys().next().value);
}

// pastSpans makes spans of the entries of a history, the newest first. A hold whose end nobody
// wrote ends with the next grant: its process is gone.
function pastSpans(entries, lock) {
  const spans = [], holds = token => lock.holds.some(h => token >= h.token && token <= h.last_token);
  for (const e of entries.toReversed()) {
    const at = Date.parse(e.at), ends = ["released", "lost"].includes(e.event);
    const open = spans.findLast(s => s.token === e.token && s.to === undefined);
    if (e.event === "granted" && !open) spans.push({ token: e.token, label: labelOf(e), from: at });
    else if (ends && open) open.to = at;
    else if (ends && e.held_seconds) spans.push({ token: e.token, label: labelOf(e), from: at - 1000 * e.held_seconds, to: at });
  }
  spans.forEach((s, i) => { if (s.to === undefined && !holds(s.token)) s.to = spans[i + 1]?.from ?? s.from; });
  return spans;
}

// timeline draws who held a name since this page was opened, and before that as far as a history
// tells, a lane for each holder.
export function timeline(lock, all, begun, now, entries) {
  const seen = all.get(lock.name_base64 ?? lock.name) ?? [], current = held(lock), past = pastSpans(entries, lock);
  const written = entries.length ? Date.parse(entries[0].at) : 0, opened = begun;
  const spans = [...past, ...seen.filter(s => s.from > written && !past.some(p => p.token === s.token))];
  for (const p of past) if (p.to === undefined) p.to = seen.find(s => s.token === p.token)?.to;
  begun = Math.min(begun, ...past.map(p => p.from));
  if (current && !spans.some(s => s.to === undefined)) {
    spans.push({ token: current.token, label: labelOf(current), from: current.since ? Date.parse(current.since) : begun });
  }
  const lanes = new Map(), whole = Math.max(now - begun, 1);
  for (const span of spans) {
    const from = Math.max(span.from, begun), to = Math.min(span.to ?? now, now);
    if (to < begun) continue;
    if (!lanes.has(span.label)) lanes.set(span.label, []);
    lanes.get(span.label).push({ from, to: Math.max(to, from), lasts: (to - span.from) / 1000, open: span.to === undefined });
  }
  if (!lanes.size) return make("p", { class: "faint" }, "No earlier holder since this page was opened.");
  const shares = [...lanes].map(([label, list]) => ({ label, list, sum: list.reduce((sum, s) => sum + s.to - s.from, 0) }));
  shares.sort((a, b) => b.sum - a.sum);
  const lane = ({ label, list, sum }) => {
    const track = make("span", { class: "track", "aria-hidden": "true" }, ...list.map(s => {
      const piece = make("i", { class: s.open ? "open" : false, title: label + " for " + age(s.lasts) });
      piece.style.left = 100 * (s.from - begun) / whole + "%";
      piece.style.width = "max(3px, " + 100 * (s.to - s.from) / whole + "%)";
      return piece;
    }));
    return make("li", {}, make("span", { class: "who" }, shown(label)), track,
      make("span", { class: "sum" }, age(sum / 1000), make("span", { class: "unseen" }, " in " + many(list.length, "hold"))));
  };
  const rest = shares.length - mostLanes;
  return make("div", { class: "times" }, make("ul", { "aria-label": "Who held it" }, ...shares.slice(0, mostLanes).map(lane)),
    make("p", { class: "axis faint" }, make("span", {}, (begun < opened ? "" : "page opened, ") + age(whole / 1000) + " ago"), make("span", {}, "now")),
    rest > 0 ? make("p", { class: "faint" }, "And " + many(rest, "other holder") + ".") : null);
}
