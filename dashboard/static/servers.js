import { age, clock, counting, figures, link, majority, make, many, shown, table, verdict } from "./view.js";

const mostListed = 10; // hosts, and processes

// serversOf shows how the servers are, and what is on them.
export function serversOf(state) {
  const s = state.status, rows = [...state.rows.values()];
  if (!s) return [make("p", { class: "empty" }, "Nothing was looked at yet.")];
  const sum = of => rows.reduce((n, r) => n + of(r), 0).toLocaleString(), off = Math.abs(state.ahead) / 1000;
  const how = off < 1 ? "The server's clock matches this browser's." : "The server's clock is " + age(off) + (state.ahead > 0 ? " ahead of" : " behind") + " this browser's.";
  const note = " " + how + (state.canBreak ? " Breaking and evicting are allowed here." : " This page may only read.");
  return [
    s.masters ? majorityOf(s, note) : readiness(s, note), s.masters ? make("section", { class: "card" }, make("h3", {}, "Masters"), mastersOf(s.masters)) : null,
    figures([
      ["Names", rows.length.toLocaleString(), s.more ? "and about " + s.more.toLocaleString() + " not shown" : "all are shown"],
      ["Holders", sum(r => r.holders), "of " + many(rows.filter(r => r.holders > 0).length, "name") + (rows.some(r => r.holders > 1) ? ", some shared" : "")],
      ["Waiters", s.masters ? "–" : sum(r => r.waiters), s.masters ? "a quorum has no queue" : "for " + many(rows.filter(r => r.waiters > 0).length, "name")],
      ["Last poll", state.polls.at(-1) + " ms", "slowest of " + state.polls.length + ": " + Math.max(...state.polls) + " ms"],
    ]),
    rows.length ? make("div", { class: "pair" }, processes(state), make("div", {}, kinds(rows, state), hosts(state))) :
      make("section", { class: "card empty" }, make("h3", {}, "No name is held or waited for."), make("p", {}, "Kinds, hosts and processes are counted here once there are some."), make("p", {}, link("#", "How to hold a name"))),
  ];
}

const readiness = (s, note) => s.error || s.ready
  ? verdict("bad", "The server is not ready.", shown(s.error || s.ready), note)
  : verdict("good", "The servers are ready.", "Locks can be taken and renewed. Checked every 5 s." + note);

// majorityOf tells whether enough masters are usable.
export function majorityOf(s, note = "") {
  const count = counting(s.masters), need = majority(s.masters), few = count < need, wrong = s.error || s.ready;
  const means = few ? "No lock can be taken or renewed until " + need + " are usable." : wrong ? shown(wrong) :
    count < s.masters.length ? "Locks can be taken and renewed, " + (count === need ? "but not if one more goes away." : "also if " + (count - need) + " more " + (count - need > 1 ? "go" : "goes") + " away.") : "Locks can be taken and renewed. Checked every 5 s.";
  return verdict(few || wrong ? "bad" : count < s.masters.length ? "warn" : "good", tally(s.masters), means, note);
}

export const tally = list => counting(list) + " of " + list.length + " masters usable. A lock needs " + majority(list) + ".";

function mastersOf(list) {
  return table("Masters", ["Master", "Usable", "Data kept for", "Reason"], awayFirst(list).map(m => [shown(m.node), counts(m), m.age_seconds ? age(m.age_seconds) : "?", why(m)]), "masters");
}

export const awayFirst = list => [...list].sort((a, b) => !!a.counts - !!b.counts);
export const counts = m => make("span", { class: "tag " + (m.counts ? "good" : "bad") }, m.counts ? "yes" : "no");
export const why = m => m.why || m.foreign ? shown((m.why || m.foreign).replace("unreachable (not applied)", "unreachable")) : "";

function kinds(rows, state) {
  const all = new Map(), first = list => list.reduce((min, r) => Math.min(min, r.waiting ?? Infinity), Infinity);
  for (const r of rows) {
    const kind = r.kind || "other";
    if (!all.has(kind)) all.set(kind, []);
    all.get(kind).push(r);
  }
  return make("section", { class: "card" }, make("h3", {}, "Kinds"), table("Kinds", ["Kind", "Names", "Contended", "Waiters", "Longest wait"],
    [...all].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1)).map(([kind, list]) => {
      const since = first(list), waiters = list.reduce((n, r) => n + r.waiters, 0);
      return [kind, list.length.toLocaleString(), none(list.filter(r => r.waiters > 0).length), none(waiters), since < Infinity ? age((state.now() - since) / 1000) : none(0)];
    }), "kinds"));
}

// holdersOf counts by a key of the holder what is held, who waits for that, and whom its root causes
// block: who blocks most comes first. Of several holders of a name it counts the oldest.
function holdersOf(state, keyOf) {
  const all = new Map(), rows = [...state.rows.values()], { causes, circle, stuck } = state.causes;
  for (const r of rows) {
    const h = r.holds[0];
    if (!h?.host) continue;
    const key = keyOf(h), p = all.get(key) ?? { key, of: h, names: 0, waiters: 0, blocked: new Set(), bad: false, labels: new Set(), pids: new Set() };
    p.names++;
    p.waiters += r.waiters;
    p.bad ||= r.late || stuck.has(circle.get(r));
    for (const c of causes) if (c.row === r || c.cycle?.includes(r)) for (const b of c.names) p.blocked.add(b);
    p.pids.add(h.pid);
    if (h.label) p.labels.add(h.label);
    all.set(key, p);
  }
  for (const p of all.values()) p.blocks = [...p.blocked].reduce((n, r) => n + r.waiters, 0);
  return [...all.values()].sort((a, b) => b.blocks - a.blocks || b.waiters - a.waiters || b.names - a.names || (a.key < b.key ? -1 : 1));
}

const holds = (p, lone) => [p.names.toLocaleString(), none(p.waiters), p.blocks && p.bad && !lone ? make("strong", { class: "bad" }, p.blocks.toLocaleString()) : none(p.blocks)];

function hosts(state) {
  const list = holdersOf(state, h => h.host);
  return make("section", { class: "card" }, make("h3", {}, "Hosts"), table("Hosts", ["Host", "Processes", "Names", "Waiters", "Blocks"],
    list.slice(0, mostListed).map(p => [shown(p.key), p.pids.size.toLocaleString(), ...holds(p, list.length === 1)]), "kinds"), rest(list, "more host", "s"));
}

function processes(state) {
  const list = holdersOf(state, h => h.host + "/" + h.pid);
  return make("section", { class: "card" }, make("h3", {}, "Processes"), table("Processes", ["Process", "Names", "Waiters", "Blocks", "Holders"],
    list.slice(0, mostListed).map(p => [link("#process=" + encodeURIComponent(p.of.host) + "/" + p.of.pid, p.key), ...holds(p), labels([...p.labels])]), "kinds lined"), rest(list, "more process", "es"));
}

const rest = (list, word, ending) => list.length > mostListed ? make("p", { class: "faint" }, "And " + many(list.length - mostListed, word, ending) + ".") : null;

const none = n => n ? n.toLocaleString() : make("span", { class: "faint" }, "–");

const labels = list => make("span", { class: "faint" }, ...list.sort().slice(0, 2).flatMap((l, i) => [i ? ", " : "", shown(l)]), list.length > 2 ? " and " + (list.length - 2) + " more" : "");
