import { long } from "./view.js";

// byWait is an order that stays from poll to poll: the longest wait first, then by name.
const byWait = (a, b) => (a.waiting ?? Infinity) - (b.waiting ?? Infinity) || (a.name < b.name ? -1 : 1);

// A wait of so many ms makes a root cause: a shorter one is the usual course of things.
const shortest = 10_000;

// around puts a cycle in the order in which its holders wait, from the longest wait on.
function around(cycle, next) {
  const left = new Set(cycle.sort(byWait)), order = [];
  for (let r = cycle[0]; r; r = next(r).find(n => left.has(n))) {
    left.delete(r);
    order.push(r);
  }
  order.push(...left);
  order.forEach((r, i) => { cycle[i] = r; });
  return cycle;
}

// causesOf finds what blocks waiters, by what the rows tell of their holders' waits: holds whose
// callers are not known to wait for anything, and cycles. A cause is { row, cycle, names, waiters, since }:
// the row that leads to it, the rows of a cycle, all rows behind it and its own, how many wait there,
// and since when. First come stuck cycles, then late holders, then the cause of the longest wait, then
// what most wait for.
export function causesOf(rows, now) {
  const contended = [...rows.values()].filter(r => r.waiters > 0).sort(byWait), before = new Map(contended.map(r => [r, []]));
  const next = r => (r.waits ?? []).map(w => rows.get(w.id)).filter(n => n !== r && before.has(n));
  for (const r of contended) for (const n of next(r)) before.get(n).push(r);
  let room = 200_000; // steps, of lists that are one thicket
  const behind = row => {
    const seen = new Set([row]);
    for (const r of seen) for (const b of before.get(r)) if (room-- > 0) seen.add(b);
    return seen;
  };
  // Roots are taken away, then those that waited for them alone, and so on. Cycles are left, and what is behind them.
  const open = new Map(contended.map(r => [r, next(r).length])), done = contended.filter(r => !open.get(r));
  for (const r of done) for (const b of before.get(r)) if (open.set(b, open.get(b) - 1).get(b) === 0) done.push(b);
  // A cycle is known if callers themselves tell all of it, and else perhaps one: of a process, or of an owner.
  // It is stuck if it is known, or has long waits only: a busy process makes one for a moment.
  const isKnown = cycle => {
    let inside = new Set(cycle.map(r => r.id)), size = Infinity;
    for (; inside.size && inside.size < size && room > 0; room -= cycle.length) {
      size = inside.size;
      inside = new Set(cycle.filter(r => inside.has(r.id) && (r.waits ?? []).some(w => !w.perhaps && w.id !== r.id && inside.has(w.id))).map(r => r.id));
    }
    return inside.size > 0 && inside.size === size;
  };
  const known = new Set(), stuck = new Set(), left = new Map(contended.filter(r => open.get(r) > 0).map(r => [r, behind(r)])), found = [], circle = new Map();
  for (const [r, all] of left) {
    if (circle.has(r)) continue;
    const cycle = [...all].filter(m => left.get(m)?.has(r));
    if (cycle.length < 2) continue;
    for (const m of cycle) circle.set(m, cycle);
    if (isKnown(cycle)) known.add(cycle);
    if (known.has(cycle) || cycle.every(r => now - r.waiting >= 1000 * long)) stuck.add(cycle);
    found.push({ row: around(cycle, next)[0], cycle, all });
  }
  for (const row of contended) if (!circle.has(row) && (row.root && row.kind !== "election" || row.late || row.state === "free")) {
    const all = behind(row);
    if (row.late || [...all].some(r => now - r.waiting >= shortest)) found.push({ row, all });
  }
  const causes = found.map(({ row, cycle, all }) => ({ row, cycle, names: [...all],
    waiters: [...all].reduce((sum, r) => sum + r.waiters, 0), since: Math.min(...[...all].map(r => r.waiting ?? Infinity)) }));
  const first = Math.min(...causes.map(c => c.since)), rank = c => stuck.has(c.cycle) ? 0 : c.row.late ? 1 : c.since === first ? 2 : 3;
  causes.sort((a, b) => rank(a) - rank(b) || b.waiters - a.waiters || byWait(a.row, b.row));
  causes.forEach((c, i) => { c.place = i; });
  const of = new Map(); // the cause of each row, by id
  for (const c of causes) for (const r of c.names) if (!of.has(r.id) || r === c.row) of.set(r.id, c);
  return { causes, of, circle, known, stuck, before, next };
}

// graphOf returns what is drawn of waits: { names, edges, omitted, contended }, cycles first, and then what
// belongs to the longest waits; or only the rows that are given. An edge { from, to, label, perhaps, cycle, stuck } goes from a name that is
// held to the one that its holder waits for.
export function graphOf({ circle, stuck, before, next }, only) {
  const inCycle = r => stuck.has(circle.get(r)) ? 2 : circle.has(r) ? 1 : 0;
  const contended = [...before.keys()].sort((a, b) => inCycle(b) - inCycle(a) || byWait(a, b));
  const most = 60, all = new Set(only);
  for (const seed of only ? [] : contended) {
    const near = new Set([seed]);
    for (const r of near) for (const n of [...next(r), ...before.get(r)]) near.add(n);
    if (near.size > 1 && !all.has(seed)) for (const r of near) all.add(r);
  }
  const names = [...all].slice(0, most), places = new Map(names.map((r, i) => [r.id, i]));
  const edges = names.flatMap((r, from) => (r.waits ?? []).filter(w => places.has(w.id) && w.id !== r.id).map(w => (
    { from, to: places.get(w.id), label: w.label, perhaps: w.perhaps, cycle: circle.has(r) && circle.get(r) === circle.get(names[places.get(w.id)]), stuck: stuck.has(circle.get(r)) })));
  return { names, edges, omitted: all.size - names.length, contended: before.size };
}
