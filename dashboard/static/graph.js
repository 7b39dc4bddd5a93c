import { address, age, long, make, many, nameLink, processLink, shown, stateOf, svg, tagOf, trouble, who } from "./view.js";

const width = 204, height = 76, apart = 88;

// pictureOf draws a graph of waits. What all wait for is at the left. All that is drawn of others is text.
// A root cause tells whom it blocks: of is the cause of each row, by id.
// A cycle is drawn from its first name on to the right, if it is drawn ahead. What is not wide is drawn over the room.
export function pictureOf(graph, now, of, ahead, room = 0) {
  const edge = ahead ? 1 : 12, places = placesOf(graph), last = Math.max(...places.map(p => p.layer)), across = Math.max(242, Math.min(280, (room - width - 2 * edge) / last)), x = p => edge + (ahead ? last - p.layer : p.layer) * across, y = p => edge + p.row * apart;
  const back = graph.edges.some(e => places[e.to].layer >= places[e.from].layer) ? 50 : 0; // room below for its way
  const right = Math.max(room, Math.max(...places.map(x)) + width + edge), down = Math.max(...places.map(y)) + height + edge + back;
  const out = svg("svg", { class: "graph", viewBox: [0, 0, right, down].join(" "), width: right, height: down, role: "group", "aria-label": "Who waits for whom" });
  const heads = ["plain", "cycle", "stuck"].map(kind => svg("marker", { id: "head-" + kind, class: kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    svg("path", { d: "M0 .5 8 4 0 7.5z" })));
  out.append(svg("defs", {}, ...heads));
  for (const g of ahead ? [] : new Set(places.map(p => p.group))) { // what belongs together stands on one ground
    const inside = places.filter(p => p.group === g).map(y), top = Math.min(...inside) - edge;
    out.append(svg("rect", { class: "ground", y: top, width: right, height: Math.max(...inside) + height + edge - top, rx: 12 }));
  }
  for (const e of graph.edges) {
    const a = { x: x(places[e.from]), y: y(places[e.from]) }, b = { x: x(places[e.to]), y: y(places[e.to]) };
    out.append(svg("path", { class: "edge " + kindOf(e) + (e.perhaps ? " perhaps" : ""), d: way(a, b, ahead ? -1 : 1, across), "marker-end": "url(#head-" + kindOf(e) + ")" },
      svg("title", {}, shown(e.label || "somebody").textContent + " holds " + shown(graph.names[e.from].name).textContent + " and " + (e.perhaps ? "perhaps " : "") + "waits for " + shown(graph.names[e.to].name).textContent)));
  }
  graph.names.forEach((n, i) => {
    const mine = graph.edges.filter(e => e.from === i), cycle = mine.find(e => e.cycle);
    out.append(box(n, x(places[i]), y(places[i]), trouble(n) === 2 || cycle?.stuck ? " sick" : cycle ? " maybe" : "", !mine.length, now, of.get(n.id)));
  });
  return make("div", { class: "scrolls" }, out);
}

const kindOf = e => e.cycle ? e.stuck ? "stuck" : "cycle" : "plain";

// way goes from a name that is held to the one that its holder waits for: to the left, or for -1 to the right.
function way(a, b, left, across) {
  if (left * b.x < left * a.x) {
    // All that lead to one name join before it, and end as one arrow.
    const begin = a.x + (left > 0 ? 0 : width), end = b.x + (left > 0 ? width : 0);
    const from = a.y + height / 2, to = b.y + height / 2, join = end + left * ((across - width) / 2 + 2), round = to > from ? 8 : -8;
    if (from === to) return "M" + [begin, from] + "H" + end;
    return "M" + [begin, from] + "H" + (join + 8 * left) + "Q" + [join, from, join, from + round] + "V" + (to - round) + "Q" + [join, to, join - 8 * left, to] + "H" + end;
  }
  // Back to one that waits for this one, or beside it: below both.
  const from = { x: a.x + width / 2 + 16 * left, y: a.y + height }, to = { x: b.x + width / 2 - 16 * left, y: b.y + height }, low = Math.max(from.y, to.y) + 60;
  return "M" + [from.x, from.y] + "C" + [from.x, low, to.x, low, to.x, to.y];
}

function box(name, x, y, kind, root, now, cause) {
  const hold = name.holds[0], wait = name.waiting_since ? (now - Date.parse(name.waiting_since)) / 1000 : undefined;
  const text = (at, kind, value, most) => {
    const plain = shown(value).textContent;
    return svg("text", { x: 14, y: at, class: kind }, plain.length > most ? plain.slice(0, most - 1) + "…" : plain);
  };
  const word = trouble(name) === 2 ? stateOf(name)[0] : "", pill = 16 + 6.4 * word.length, slow = root && now - name.waiting >= 1000 * long ? " slow" : "";
  const holder = hold ? hold.label || (hold.host ? hold.host + "/" + hold.pid : "?") : "nobody holds it";
  return svg("a", { href: "#lock=" + address(name), transform: "translate(" + x + " " + y + ")", class: "box" + kind + slow },
    svg("title", {}, shown(name.name).textContent + ", " + stateOf(name)[0] + ", " + shown(holder).textContent),
    svg("rect", { width, height, rx: 10 }), text(24, "label", name.name, 23), text(43, "", holder, word ? 20 : 32),
    ...word ? [svg("rect", { class: "pill", x: width - 12 - pill, y: 30, width: pill, height: 18, rx: 9 }), svg("text", { class: "word", x: width - 12 - pill / 2, y: 43 }, word)] : [],
    !name.waiters ? undefined : root && cause?.row === name && cause.names.length > 1 ?
      svg("text", { x: 14, y: 62 }, svg("tspan", { class: "strong" }, "blocks " + cause.waiters), " in " + many(cause.names.length, "name") + " for ", svg("tspan", { class: "for" }, age((now - cause.since) / 1000))) :
      svg("text", { x: 14, y: 62 }, many(name.waiters, "waiter") + " for ", svg("tspan", { class: "for" }, age(wait))));
}

// legend tells what the kinds of arrows mean that are drawn.
export function legend(edges) {
  const line = (kind, text) => make("span", {}, svg("svg", { viewBox: "0 0 28 8", width: 28, height: 8, "aria-hidden": "true" }, svg("path", { class: "edge" + kind, d: "M0 4H28" })), text);
  return make("p", { class: "legend faint" }, edges.some(e => !e.perhaps) ? line("", "reported by the waiter") : "", edges.some(e => e.perhaps) ? line(" perhaps", "guessed from the same process") : "");
}

// placesOf gives each name a layer, one behind those that its holders wait for, and a row in it.
function placesOf({ names, edges }) {
  const waits = names.map((_, i) => edges.filter(e => e.from === i && e.to !== i).map(e => e.to)), layers = names.map(() => undefined);
  const layerOf = (i, above) => {
    if (layers[i] !== undefined) return layers[i];
    above.add(i);
    const deeper = waits[i].filter(to => !above.has(to)).map(to => layerOf(to, above));
    above.delete(i);
    return layers[i] = deeper.length ? 1 + Math.max(...deeper) : 0;
  };
  names.forEach((_, i) => layerOf(i, new Set()));
  const group = groupsOf(names.length, edges), out = names.map((_, i) => ({ layer: layers[i], row: 0, group: group[i] }));
  let base = 0;
  for (const g of new Set(group)) { // the groups stand one below the other
    const free = [], inside = names.map((_, i) => i).filter(i => group[i] === g).sort((a, b) => layers[a] - layers[b]);
    for (const i of inside) {
      const near = waits[i].filter(to => layers[to] < layers[i]).map(to => out[to].row);
      out[i].row = Math.max(free[layers[i]] ?? 0, near.length ? Math.min(...near) : 0);
      free[layers[i]] = out[i].row + 1;
    }
    for (const i of inside) out[i].row += base;
    base = 1.28 + Math.max(...inside.map(i => out[i].row));
  }
  return out;
}

// groupsOf gives all names that edges join the same number.
function groupsOf(count, edges) {
  const group = Array.from({ length: count }, (_, i) => i);
  for (const e of edges) {
    const from = group[e.from], to = group[e.to];
    group.forEach((g, i) => { if (g === from) group[i] = to; });
  }
  return group;
}

// treeOf shows a graph of waits where a picture has no room: below each name those whose holders wait for it.
// Of a cycle that is drawn ahead, below each name is the one that its holder waits for.
export function treeOf(graph, now, of, ahead) {
  const items = [], seen = new Set(), roots = graph.names.map((_, i) => i).filter(i => !graph.edges.some(e => e.from === i));
  const add = (i, depth, by) => {
    const n = graph.names[i], again = seen.has(i), h = n.holds[0], sick = trouble(n) === 2 || by?.cycle && by.stuck, wait = (now - n.waiting) / 1000;
    const cause = depth || ahead ? undefined : of?.get(n.id);
    const about = again ? ", as above" : cause?.row === n && cause.names.length > 1 ? ", blocks " + cause.waiters + " in " + many(cause.names.length, "name") + " for " : ", " + many(n.waiters, "waiter") + (n.waiting ? " for " : "");
    const ages = again ? "" : cause?.row === n && cause.names.length > 1 ? age((now - cause.since) / 1000) : n.waiting ? age(wait) : "";
    items.push([depth, make("li", { class: (depth || ahead ? "" : "root") + (sick ? " sick" : by?.cycle || !depth && wait >= long ? " slow" : "") }, make("div", {}, nameLink(n), " ",
      trouble(n) === 2 && !by?.cycle ? make("span", { class: tagOf(n) }, stateOf(n)[0] + (cause?.row === n ? ", root cause" : "")) : cause?.row === n && !by ? make("span", { class: "tag" }, "root cause") : "",
      make("span", { class: "line" }, h ? who(h) : "nobody holds it", by?.perhaps && !ahead ? " (guessed)" : "", about, make("span", { class: "for" }, ages))))]);
    if (again) return;
    seen.add(i);
    const next = ahead ? graph.edges.find(e => e.from === i) : undefined;
    if (!ahead) graph.edges.filter(e => e.to === i).sort((a, b) => a.from - b.from).forEach(e => add(e.from, depth + 1, e));
    else if (!seen.has(next.to)) add(next.to, depth + 1, graph.edges.find(e => e.from === next.to));
  };
  for (const i of roots) add(i, 0);
  graph.names.forEach((_, i) => { if (!seen.has(i)) add(i, 0, graph.edges.find(e => e.cycle && e.from === i)); });
  const out = nest("Who waits for whom", items);
  if (ahead) out.classList.add("closed");
  return out;
}

// nest makes a list of lists of items, each of which has its depth.
function nest(label, items) {
  const out = make("ol", { class: "tree", "aria-label": label }), open = []; // the last item of each depth
  for (const [depth, item] of items) {
    open.length = Math.min(depth, open.length);
    let list = open.length ? open.at(-1).querySelector(":scope > ol") : out;
    if (!list) open.at(-1).append(list = make("ol", { class: open.length > 8 ? "deep" : false }));
    list.append(item);
    open.push(item);
  }
  return out;
}

// sentencesOf says what a picture shows.
export function sentencesOf(graph) {
  return make("ul", { class: "sentences" }, ...graph.edges.map(e => make("li", {}, e.label ? shown(e.label) : "somebody", " holds ", nameLink(graph.names[e.from]),
    e.perhaps ? " and perhaps waits for " : " and waits for ", nameLink(graph.names[e.to]), e.cycle ? make("span", { class: e.stuck ? "bad" : "warn" }, e.perhaps ? " (part of a possible deadlock)" : " (part of a deadlock)") : "")));
}

// noteOf says in short why a name is waited for: of the root cause, or that this is it;
// and what is known of a hold that is late.
export function noteOf(lock, why, now, behind, late) {
  const roots = why.roots.filter(l => ["held", "handed over"].includes(l.hold.state)), waits = why.links.some(l => l.waits.length);
  const note = (kind, strong, ...text) => make("div", { class: "note " + kind }, make("p", {}, make("strong", {}, strong), ...text)), open = (href, ...text) => make("a", { class: "go", href }, ...text);
  if (why.cyclic) {
    const perhaps = why.links.some(l => l.waits.some(w => w.perhaps)), stays = why.links.every(l => l.waits.every(w => now - Date.parse(w.waiter.since) >= 1000 * long));
    return note(late || stays || !perhaps ? "bad" : "warn", perhaps ? "A possible deadlock: " : "A deadlock: ", perhaps ? "callers of the same processes or owners wait for each other." : "callers wait for each other.",
      " Break one hold, or evict one waiter.", late ? " " : "", late, make("br"), open("#deadlocks", "See which hold to break"));
  }
  if (waits && roots.length) {
    return note(late || roots[0].hold.late ? "bad" : "", "The root cause", ": ", who(roots[0].hold), " holds ", nameLink(roots[0]), ", and waits for nothing, as far as is known.", roots[0].hold.late ? " It is late." : "",
      roots.length > 1 ? " So is " + many(roots.length - 1, "other holder") + "." : "", late ? " " : "", late, make("br"), open("#lock=" + address(roots[0]), "Open ", shown(roots[0].name)));
  }
  const short = lack(lock), slow = behind && now - behind.since >= 1000 * long;
  if (!behind && !late && !short) return lock.waiters && lock.holds.length ? make("p", { class: "faint" }, "The holder waits for nothing, as far as is known.") : null;
  return note(late ? "bad" : slow ? "warn" : "", behind ? "Root cause. " : "", late, short, behind && !late && !short ? lock.holds.length ? "The holder waits for nothing, as far as is known." : "Nobody holds it." : "");
}

// lack says what the first waiter lacks, if that is not the whole name.
function lack(lock) {
  const first = lock.queue[0];
  if (!first) return "";
  if (lock.permits !== undefined && first.permits) {
    const free = Math.max(0, lock.permits - lock.taken);
    return make("span", {}, free + " of " + many(lock.permits, "permit") + (free === 1 ? " is" : " are") + " free. The first in line, ", who(first), ", needs " + first.permits + ".");
  }
  return first.mode === "writes" && lock.holds.some(h => h.mode === "reads") ? make("span", {}, "The first in line, ", who(first), ", writes: that must wait until nobody reads.") : "";
}

// chainOf shows the way from a name to its root cause, or what waits behind a root cause.
export function chainOf(why, now, behind) {
  if (!why.links.some(l => l.waits.length)) return behind?.names.length > 1 ? [make("h3", {}, "What waits behind it"), treeOf(behind.graph, now)] : [];
  const out = [make("h3", {}, why.cyclic ? "Who waits for whom" : "Why others wait")];
  // A way without a fork goes straight down: an arrow leads from each hold to the one that it waits for.
  const straight = why.links.every((l, i) => l.depth === i);
  const way = nest("The way to the root cause", why.links.map(l => [l.depth, make("li", { class: l.waits.length ? why.cyclic ? "sick" : "" : "root" + (l.hold.late ? " sick" : "") },
    make("div", {}, who(l.hold), " (", processLink(l.hold), ") holds ", nameLink(l),
      ...l.hold.since ? [" ", make("span", { class: "faint more" }, "for " + age((now - Date.parse(l.hold.since)) / 1000))] : [],
      ...l.hold.late || !l.waits.length ? [" ", make("span", { class: l.hold.late ? "tag bad" : "tag" }, [l.hold.late ? "late" : "", l.waits.length ? "" : "root cause"].filter(w => w).join(", "))] : [],
      ...l.waits.flatMap(w => [make("br"), make("span", { class: "faint" }, w.perhaps ? "and perhaps waits for" : "and waits for"), " ", nameLink(w),
        ...w.waiter.since ? [" ", make("span", { class: "faint" }, "for " + age((now - Date.parse(w.waiter.since)) / 1000))] : [],
        ...w.holds === "above" ? [make("br"), make("strong", { class: "bad" }, "It is held above.")] : w.holds === "elsewhere" ? [make("span", { class: "faint" }, ", as above")] : []])))]));
  if (straight) way.classList.add("straight");
  if (why.cyclic && why.links.length > 1) way.classList.add("closed");
  out.push(way);
  if (why.omitted) out.push(make("p", { class: "faint" }, "And " + many(why.omitted, "more hold") + "."));
  return out;
}
