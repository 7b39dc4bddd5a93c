import { address, age, bar, clock, exact, figures, heldBy, lateFor, link, make, many, nameLink, processLink, shown, stateOf, table, tagOf, trouble, verdict, wants, who } from "./view.js";
import { changeFilters, changesOf, changesOfName, isBreak } from "./changes.js";
import { awayFirst, counts, serversOf, tally, why } from "./servers.js";
import { graphOf } from "./causes.js";
import { chainOf, legend, noteOf, pictureOf, sentencesOf, treeOf } from "./graph.js";
import { timeline } from "./timeline.js";

// panel shows what the hash names: a name, a process, waits, changes, servers or deadlocks.
export function panel(box, dialog, state, say) {
  let hash = "", kind = "", key = "", lock, asked = 0, past = { entries: [] }, stacks, searched = {}, worded = false;

  function open(to) {
    const fresh = to !== hash || box.hidden;
    hash = to;
    [kind, key] = to.includes("=") ? [to.slice(0, to.indexOf("=")), to.slice(to.indexOf("=") + 1)] : [to, ""];
    const known = ["lock", "process", "waits", "changes", "servers", "deadlocks"].includes(kind);
    box.hidden = !known;
    box.dataset.kind = kind;
    lock = undefined;
    if (fresh) [stacks, searched] = [undefined, {}];
    if (fresh && kind === "lock") readPast();
    if (known && fresh) {
      show(title(), make("p", {}, "…"));
      box.querySelector("h2").focus();
      refresh();
    }
    return kind === "lock" ? decode(key) : undefined;
  }

  // readPast reads the history of the name once. It is shown when it has come.
  async function readPast() {
    const of = hash;
    past = { entries: [] };
    try {
      const found = await (await fetch("history?name=" + key)).json();
      if (of !== hash) return;
      past = { entries: [], ...found };
      refresh();
    } catch { /* the page says by itself that its server is away */ }
  }

  // askStacks asks the holders' processes which line of code holds the name.
  async function askStacks() {
    const of = hash;
    stacks = { asking: true };
    refresh();
    let found;
    try {
      const response = await fetch("stacks?name=" + key, { method: "POST", headers: { "Content-Type": "application/json", "X-Holdfast-Secret": state.secret } });
      found = await response.json();
    } catch (err) {
      found = { error: err.message };
    }
    if (of !== hash) return;
    stacks = { stacks: [], ...found };
    say(stacks.error ? "Nobody could be asked." : "The processes were asked.");
    refresh();
  }

  const title = () => ({ waits: "Who waits for whom", changes: "Changes", servers: "Servers", deadlocks: "Deadlocks" }[kind] ?? decode(key));

  function decode(text) {
    try { return decodeURIComponent(text); } catch { return text; }
  }

  // show replaces what the panel shows, and keeps the focus where it was, by its place.
  function show(heading, ...children) {
    const close = ["lock", "process"].includes(kind) ? [make("button", { class: "close quiet", type: "button", title: "Close", "aria-label": "Close", onclick: () => { location.hash = ""; } }, "×")] : [];
    const next = box.cloneNode();
    next.append(...close, make("h2", { id: "title", tabindex: "-1" }, shown(heading)), ...children.filter(c => c));
    if (kind !== "lock" && next.isEqualNode(box)) return; // nothing changed: who clicks or selects is not disturbed
    put(box, [...next.childNodes]);
  }

  function put(into, children) {
    const all = () => [...into.querySelectorAll("a, button, h2, summary")], inside = all(), at = inside.indexOf(document.activeElement);
    const scrolled = [...into.querySelectorAll(".scrolls")].map(e => e.scrollLeft);
    into.replaceChildren(...children.filter(c => c));
    into.querySelectorAll(".scrolls").forEach((e, i) => { e.scrollLeft = scrolled[i] ?? 0; });
    if (at >= 0) all()[Math.min(at, inside.length - 1)]?.focus({ preventScroll: true });
  }

  // showChanges leaves the filters as they are: somebody may be typing there.
  function showChanges() {
    const fill = () => {
      const [top, ...rest] = changesOf(state);
      put(box.querySelector("#told"), [top]);
      put(box.querySelector("#log"), rest);
    };
    if (!box.querySelector("#log")) show("Changes", make("div", { id: "told" }), changeFilters(fill), make("div", { id: "log" }));
    fill();
  }

  async function ask(path) {
    const mine = ++asked, response = await fetch(path), document = await response.json();
    if (mine !== asked) return;
    if (!response.ok) throw Object.assign(new Error(document.error), { status: response.status });
    return document;
  }

  async function refresh(changed = true) {
    if (box.hidden || getSelection()?.type === "Range" && box.contains(getSelection().anchorNode)) return;
    try {
      if (kind === "changes" && changed) showChanges();
      if (kind === "servers") show("Servers", ...serversOf(state));
      if (kind === "deadlocks") show("Deadlocks", ...deadlocks());
      if (kind === "lock") {
        if (lock) show(lock.name, ...detail(lock)); // with the numbers of the poll that the list shows
        const found = await ask("lock?name=" + key);
        if (found) { lock = { ...found.lock, typed: found.typed, why: found.why }; show(lock.name, ...detail(lock)); }
      }
      if (kind === "waits" && state.status) show(title(), ...waits(graphOf(state.causes)));
      if (kind === "process") {
        const cut = key.lastIndexOf("/"), found = await ask("process?host=" + key.slice(0, cut) + "&pid=" + key.slice(cut + 1));
        if (found) show("Process " + decode(key), ...processOf(found));
      }
    } catch (err) {
      if (kind === "lock") show(decode(key), make("p", {}, err.status === 404 ? "Nobody holds this name, and nobody waits for it." : shown(err.message)), ...history(decode(key)));
      else show(title(), make("p", { class: "bad" }, shown(err.message)));
    }
  }

  function detail(l) {
    const late = l.holds.find(h => h.late), of = { ...l, late }, why = stateOf(l)[1], cause = behind(l);
    const facts = [make("span", { class: tagOf(of) }, stateOf(of)[0])], note = noteOf(l, l.why, state.now(), cause, late ? lateness(late, l) : ""), [acts, ...told] = code(l);
    const atOnce = acts && note?.matches(".note:not(:has(.go))"); // what is to be done, in the box that says why
    if (atOnce) note.append(acts);
    if (l.kind) facts.push(" " + l.kind);
    if (l.permits !== undefined) facts.push(", " + l.taken + " of " + l.permits + " permits taken" + (l.queue[0]?.permits ? ", the next needs " + l.queue[0].permits : ""));
    if (l.count !== undefined) facts.push(", " + l.count + " to count down");
    if (l.foreign) facts.push(", ", shown(l.foreign));
    if (l.holders === 1 && l.holds.length) facts.push(["held", "handed over"].includes(l.holds[0].state) ? ", held by " : ", last held by ", ...heldBy(l.holds[0], l.holders));
    return [
      make("p", { class: "facts" }, ...facts), l.permits !== undefined ? permits(l) : null,
      ...atOnce ? [note, ...told, numbers(l, cause)] : [numbers(l, cause), note],
      l.state === "broken" ? brokenNote(l) : why && !late ? make("p", { class: "note" + (trouble(of) === 2 ? " bad" : "") }, why) : null,
      ...chainOf(l.why, state.now(), cause),
      make("h3", {}, (l.kind === "election" ? "Leader" : "Holds") + " (" + l.holders + ")"), l.holds.length ? holds(l) : make("p", { class: "faint" }, "Nobody holds it."),
      ...atOnce ? [] : [acts, ...told], ...freeing(l), make("h3", {}, "Waiters"), ...queue(l), ...masters(l.masters), ...history(l.name, l),
    ];
  }

  // numbers are the figures of a name.
  function numbers(l, cause) {
    const since = at => (state.now() - Date.parse(at)) / 1000, h = l.holds[0];
    if (!h) return null;
    return figures([h.since ? ["Held for", age(since(h.since)), "since " + clock(new Date(h.since))] : null, h.late && h.renewed ? ["Late for", age(lateFor(h, state.now())), "last renewed " + age(since(h.renewed)) + " ago", "bad"] : ["Time left", age(h.remaining_seconds - since(l.at)), "of " + age(h.ttl_seconds)],
      l.masters?.length ? null : cause?.names.length > 1 ? ["Blocks", many(cause.waiters, "waiter"), "in " + many(cause.names.length, "name") + ", " + cause.row.waiters.toLocaleString() + " of them here", h.late ? "bad" : ""] : ["Waiters", (cause?.row ?? l).waiters.toLocaleString()],
      l.waiting_since ? ["Longest wait", age(since(l.waiting_since))] : null]);
  }

  // lateness says why a hold may be late, and when it ends. The figures say since when it is.
  const lateness = (h, l) => make("span", {}, make("strong", {}, "Late"), ": not renewed within half its TTL, " + exact(h.ttl_seconds / 2) + ". Its process may be stopped or cut off, or its max hold is nearly over. It ends by itself in " + exact(h.remaining_seconds - (state.now() - Date.parse(l.at)) / 1000) + ".");

  // brokenNote says who broke a hold, whom that blocks, and what comes next.
  function brokenNote(l) {
    const h = l.holds.find(h => h.state === "broken"), broke = [...past.entries].find(e => e.event === "broken")?.at ?? state.changes.findLast(c => c.name === l.name && isBreak(c))?.at;
    const go = h?.host ? processLink(h, "Open process ") : null;
    if (go) go.className = "go";
    const ago = at => (state.now() - Date.parse(at)) / 1000, when = at => "at " + clock(new Date(at)) + ", " + exact(ago(at)) + " ago";
    return make("div", { class: "note " + (trouble(l) === 2 ? "bad" : "warn") }, make("p", {}, make("strong", {}, "Broken", h?.by ? " by " : "", h?.by ? shown(h.by) : ""), broke ? " " + when(broke) : h?.renewed ? ", last renewed " + when(h.renewed) : "", ". ",
      ...h ? ["Nobody gets the name until the code of ", who(h), " has stopped, or " + exact(h.remaining_seconds - ago(l.at)) + " are over. "] : [], l.waiters === 0 ? "Nobody waits for it now." : l.waiters ? "It blocks " + many(l.waiters, "waiter") + "." : ""),
      go);
  }

  // behind is a root cause, with a graph of what waits behind it.
  function behind(l) {
    const cause = state.causes.causes.find(c => !c.cycle && address(c.row) === address(l));
    return cause && { ...cause, graph: graphOf(state.causes, cause.names) };
  }

  // permits is how many of a semaphore are taken, with a mark on what is free and not enough.
  function permits(l) {
    const out = bar(l.taken, l.permits, ""), mark = make("i", { class: "short", "aria-hidden": "true" }), needs = l.queue[0]?.permits ?? 0;
    mark.style.left = 100 * l.taken / l.permits + "%";
    mark.style.width = 100 * Math.max(0, Math.min(needs, l.permits - l.taken)) / l.permits + "%";
    out.style.setProperty("--part", 100 / l.permits + "%");
    if (l.permits <= 40) out.classList.add("parts");
    out.append(mark);
    return out;
  }

  // Of one hold the figures above tell the times, and what breaks it stands below.
  const breakable = h => state.canBreak && ["held", "handed over"].includes(h.state);
  const breakButton = (l, h) => make("button", { type: "button", class: "danger", "aria-label": "Break… the hold of " + (h.label || h.host + "/" + h.pid), onclick: () => askOperation(l, breaking(h)) }, "Break…");

  function holds(l) {
    const one = l.holds.length === 1, titles = ["Holder", "State", ...one ? [] : ["Held", "Left"], "Token"];
    if (state.canBreak && !one) titles.push("Break");
    return table("Holds", titles, l.holds.map(h => {
      const remaining = h.remaining_seconds - (state.now() - Date.parse(l.at)) / 1000, [word, why] = stateOf(h);
      const held = make("span", {}, h.since ? age((state.now() - Date.parse(h.since)) / 1000) : "?");
      const of = { ...h, waiters: l.waiters };
      const what = make("span", { class: trouble(of) === 2 || h.state === "broken" ? tagOf(of) : "", title: why }, word, h.fixed ? ", fixed" : "", h.by ? " by " : "", h.by ? shown(h.by) : "");
      const cells = [make("span", {}, who(h), h.owner ? " as " : "", h.owner ? shown(h.owner.replace(/^shard \d+ \d+ (\S{1,6})\S* \d+ \S+$/, "member $1")) : "", wants(h), make("br"), processLink(h)),
        what, ...one ? [] : [held, bar(remaining, h.ttl_seconds, age(remaining), h.late)], String(h.token)];
      if (state.canBreak && !one) cells.push(breakable(h) ? breakButton(l, h) : "");
      return cells;
    }));
  }

  // code tells which line of code holds the name, once that was asked.
  function code(l) {
    if (!l.holds.some(h => ["held", "handed over"].includes(h.state))) return [];
    const go = make("button", { type: "button", class: "quiet", disabled: stacks?.asking, onclick: askStacks }, "Which line of code holds it?");
    const acts = make("p", { class: "acts" }, go, l.holds.length === 1 && breakable(l.holds[0]) ? breakButton(l, l.holds[0]) : null, stacks?.asking ? " Asking…" : "");
    if (!stacks || stacks.asking) return [acts];
    return [acts, stacks.error ? make("p", { class: "note" }, "Nobody could be asked: ", shown(stacks.error)) : null, ...stacks.stacks.map(s => make("div", { class: "stack" },
      make("p", {}, who(s.hold), ", token " + s.hold.token + (s.why ? ": " : (s.leases > 1 ? ": the oldest of " + s.leases + " leases was" : ":") + " taken " + age(s.age_seconds ?? 0) + " ago by"), s.why ? shown(s.why) : ""),
      s.frames.length ? make("ol", { class: "scrolls" }, ...s.frames.map(f => make("li", {}, make("code", {}, shown(f.file), ":" + f.line + " ", shown(f.function))))) : null))];
  }

  // When the name is free again, and how to free it now.
  function freeing(l) {
    const has = (...states) => l.holds.find(h => states.includes(h.state)), out = [];
    const held = has("held", "handed over");
    if (held && !state.canBreak) {
      out.push(make("p", { class: "faint" }, "This page may not break a hold. This command may, with the servers and the prefix of this page: ",
        make("code", {}, "holdfast break " + quoted(l) + " --token " + held.token)));
    }
    return out;
  }

  // quoted is a name as an argument for a shell, or NAME if a copy of what is shown is another name.
  function quoted(l) {
    if (l.name_base64 || l.name.startsWith("-") || shown(l.name).querySelector(".esc")) return "NAME";
    return /^[\w:./@+,-]+$/.test(l.name) ? l.name : "'" + l.name.replaceAll("'", "'\\''") + "'";
  }

  function queue(l) {
    if (l.masters?.length) return [make("p", { class: "faint" }, "A quorum has no queue: its waiters ask again and again, and no server lists them.")];
    if (!l.queue.length) return [make("p", { class: "faint" }, "Nobody waits.")];
    const titles = ["Place", "Waiter", "Waited", "Alive", "Also holds"];
    if (state.canBreak) titles.push("Evict");
    const out = [table("Waiters", titles, l.queue.map(w => [
      w.place ? String(w.place) : "-", make("span", {}, who(w), wants(w), w.kept ? " (kept)" : "", make("br"), processLink(w)),
      w.since ? age((state.now() - Date.parse(w.since)) / 1000) : "?", make("span", { class: w.alive === "no" ? "warn" : "" }, w.alive),
      w.under?.length ? make("span", {}, ...w.under.flatMap((name, i) => [nameLink({ name, name_base64: w.under_base64?.[i] }), " "])) : "",
      ...state.canBreak ? [make("button", { type: "button", class: "danger", "aria-label": "Evict… the waiter " + (w.label || w.host + "/" + w.pid), onclick: () => askOperation(l, evicting(w)) }, "Evict…")] : [],
    ]))];
    if (l.queue.length < l.waiters) out.push(make("p", { class: "faint" }, "The first " + l.queue.length + " of " + l.waiters + " are shown."));
    return out;
  }

  function waits(found) {
    if (state.status?.masters) return [verdict("", "A quorum has no queue.", "Its waiters ask again and again, and no server lists them.")];
    const narrow = box.clientWidth < 700;
    if (!found.names.length) {
      return [make("section", { class: "card empty" }, make("h3", {}, found.contended ? "No holder is known to wait for anything itself." : "Nobody waits."),
        make("p", {}, "Once a holder waits for another name, it is drawn here who waits for whom."), make("p", {}, link("#", "See what is held now")))];
    }
    const round = found.edges.length === found.names.length && found.edges.every(e => e.cycle) && new Set(state.causes.circle.values()).size === 1; // one cycle and no more
    const intro = make("p", { class: "faint intro" }, narrow && round ? "Each holder waits for the name below it, and the last one for the first." : narrow ? "Below each name are those whose holders wait for it." : "An arrow leads from a name to the one that its holder waits for." + (found.names.some((_, i) => !found.edges.some(e => e.from === i)) ? " The root causes are on the left." : ""));
    const stuck = found.edges.some(e => e.stuck), cycle = found.edges.some(e => e.cycle);
    const perhaps = found.edges.some(e => e.cycle && e.perhaps), kind = stuck ? "bad" : "warn";
    const drawn = new Set(found.names), others = state.causes.causes.filter(c => !drawn.has(c.row)).length;
    return [make("div", { class: "top" }, intro, narrow ? null : legend(found.edges)), !cycle ? null : make("p", { class: "note " + (perhaps ? kind : "bad") }, make("strong", {}, perhaps ? "A possible deadlock: " : "A deadlock: "),
      perhaps ? "callers of the same processes or owners wait for each other. " + (stuck ? "It has lasted " + age(Math.max(...[...state.causes.stuck].map(lasted))) + "." : "It is amber, and red after a minute.") : "callers wait for each other, and none of them goes on by itself.", make("br"), make("a", { class: "go", href: "#deadlocks" }, "See which hold to break")),
      found.omitted ? make("p", { class: "note" }, found.names.length + " of " + (found.names.length + found.omitted) + " such names are drawn: cycles first, then what belongs to the longest waits.") : null,
      make("section", { class: "card" }, narrow ? treeOf(found, state.now(), state.causes.of, round) : pictureOf(found, state.now(), state.causes.of, round, box.clientWidth - 48),
        others ? make("p", { class: "faint" }, many(others, "more root cause") + " without a chain. ", make("button", { type: "button", class: "plain", onclick: state.showRoots }, "Show all root causes")) : null),
      narrow ? null : make("details", { class: "card", open: worded, ontoggle: e => { worded = e.target.open; } }, make("summary", {}, "As sentences"), sentencesOf(found))];
  }

  function masters(list) {
    if (!list?.length) return [];
    return [make("h3", {}, "Masters"), make("p", { class: "faint" }, tally(list)), table("Masters", ["Master", "Usable", "Held by", "Reason"], awayFirst(list).map(m => [
      shown(m.node), counts(m), m.holds.length ? make("span", {}, ...m.holds.slice(0, 5).flatMap((h, i) => [i ? ", " : "", who(h)]), m.holds.length > 5 ? ", …" : "") : m.counts ? "nobody" : "?", why(m),
    ]), "masters")];
  }

  function history(name, l = { name, holds: [] }) {
    return [make("h3", {}, "Who held it"), timeline(l, state.spans, state.begun, state.now(), past.entries),
      past.error ? make("p", { class: "note" }, "The history cannot be read: ", shown(past.error)) : null, make("h3", {}, "Changes"), ...changesOfName(state, name)];
  }

  function processOf(found) {
    const list = (heading, all, cells) => [make("h3", {}, heading + " (" + all.length + ")"),
      all.length ? table(heading, ["Name", "Kind", "For", "Label"], all.map(cells), "even") : make("p", { class: "faint" }, "None.")];
    const since = x => x.since ? age((state.now() - Date.parse(x.since)) / 1000) : "?";
    // Below a name stands what it blocks, or behind which root cause it is.
    const rows = new Map([...state.rows.values()].map(r => [address(r), r]));
    const placed = u => {
      const row = rows.get(address(u)), cause = row && state.causes.of.get(row.id);
      return make("span", {}, nameLink(u), ...!cause ? [] : [make("br"), make("span", { class: cause.row.late ? "bad" : "faint" }, ...cause.row === row ? ["blocks " + many(cause.waiters, "waiter")] : ["behind ", nameLink(cause.row)])]);
    };
    const longest = (all, of) => all.length ? age(Math.max(...all.map(u => (state.now() - Date.parse(of(u).since)) / 1000))) : "–";
    return [figures([["Holds", found.holds.length.toLocaleString()], ["Oldest hold", longest(found.holds, u => u.hold)],
      ["Waits", found.waits.length.toLocaleString()], ["Longest wait", longest(found.waits, u => u.waiter)]]), ...list("Holds", found.holds, u => [placed(u), u.kind ?? "", since(u.hold), shown(u.hold.label)]),
      ...list("Waits", found.waits, u => [placed(u), u.kind ?? "", since(u.waiter), shown(u.waiter.label)])];
  }

  // deadlocks shows the cycles that the last poll tells, and what a search finds.
  function deadlocks() {
    if (!state.status) return [make("p", { class: "empty" }, "Nothing was looked at yet.")];
    if (state.status.masters) return [verdict("", "A quorum has no queue.", "Its waiters ask again and again, and no server lists them. So no deadlock is seen.")];
    const { circle, known, stuck } = state.causes, cycles = [...new Set([...known, ...stuck, ...circle.values()])], narrow = box.clientWidth < 700;
    const contended = [...state.causes.before.keys()], waits = contended.flatMap(r => r.waits ?? []), perhaps = waits.filter(w => w.perhaps).length;
    const found = searched.found, list = found && [...found.deadlocks, ...found.possible];
    return [
      known.size ? verdict("bad", known.size > 1 ? known.size + " deadlocks." : "A deadlock.", "The callers of " + many(cycles[0].length, "name") + " wait for each other. " + end) :
        cycles.length ? verdict(stuck.size ? "bad" : "warn", cycles.length > 1 ? cycles.length + " possible deadlocks." : "A possible deadlock.",
          "Callers of the same processes or owners " + (stuck.size ? "have waited for each other for " + age(lasted(cycles[0])) + ". " + end : "wait for each other. Busy processes do so for a moment. If it lasts a minute, it is red here.")) :
        verdict("good", "No deadlock is seen.", "In the last poll no callers wait for each other, as far as they, their processes and owners tell."),
      ...cycles.slice(0, mostCycles).map(c => cycleCard(graphOf(state.causes, c), narrow)),
      !waits.length && !cycles.length ? null : figures([["Contended names", contended.length.toLocaleString(), "in the last poll"], ["Waits reported", (waits.length - perhaps).toLocaleString(), "by holders themselves"],
        ["Waits guessed", perhaps.toLocaleString(), "from process or owner"], [cycles.length && !known.size ? "Possible deadlocks" : "Deadlocks", cycles.length.toLocaleString(), "cycles of such waits", stuck.size ? "bad" : cycles.length ? "warn" : ""]]),
      make("section", { class: "card" }, make("h3", {}, "Search"),
        make("p", { class: "faint" }, "A search reads all names anew, and may take 10 seconds. Waiters report deadlocks. Possible ones are guessed from process and owner."),
        make("p", {}, make("button", { type: "button", class: "quiet", disabled: searched.asking, onclick: search }, "Search for deadlocks")),
        searched.asking ? make("p", { role: "status" }, "Searching…") : null, searched.error ? make("p", { class: "bad" }, shown(searched.error)) : null,
        found ? make("p", {}, make("strong", {}, list.length ? found.deadlocks.length + " found, " + found.possible.length + " possible." : "None was found."), make("span", { class: "faint" }, " That was at " + clock(searched.at) + ".")) : null,
        ...(list ?? []).map(members)),
    ];
  }

  const end = "To end it, break the youngest hold: it has least to lose. Or open a name, and evict a waiter.";
  const mostCycles = 10; // that are drawn

  // lasted is for how many seconds all of a cycle have waited.
  const lasted = cycle => (state.now() - Math.max(...cycle.map(r => r.waiting))) / 1000;

  // breakHold asks whether to break the hold of a row.
  async function breakHold(row) {
    const found = await (await fetch("lock?name=" + address(row))).json(), l = { ...found.lock, typed: found.typed }, h = l.holds?.find(breakable);
    if (h) askOperation(l, breaking(h));
    else location.hash = "#lock=" + address(row);
  }

  // cycleCard shows a cycle, and has what ends it.
  function cycleCard(graph, narrow) {
    const since = e => Date.parse(graph.names[e.from].holds[0]?.since) || 0, youngest = graph.edges.reduce((a, b) => since(b) > since(a) ? b : a);
    const act = e => state.canBreak ? make("button", { type: "button", class: e !== youngest ? "quiet" : graph.edges.some(e => e.perhaps) ? "danger" : "danger full", "aria-label": "Break hold… of " + graph.names[e.from].name, onclick: () => breakHold(graph.names[e.from]) }, narrow ? "Break…" : "Break hold…") :
      link("#lock=" + address(graph.names[e.from]), "Open", "Open " + graph.names[e.from].name);
    const steps = make("ol", { class: narrow ? "steps closed" : "steps" }, ...graph.edges.map(e => make("li", { class: e === youngest ? "least" : false }, make("div", {}, make("strong", {}, e.label ? shown(e.label) : "somebody"), " holds ", nameLink(graph.names[e.from]), ...e === youngest ? [" ", make("span", { class: "tag warn" }, "youngest hold" + (since(e) ? ", " + age((state.now() - since(e)) / 1000) : ""))] : [],
      make("br"), make("span", { class: "faint" }, e.perhaps ? "and perhaps waits for " : "and waits for "), nameLink(graph.names[e.to]), graph.edges.length > 1 && e === graph.edges.at(-1) ? make("span", { class: "bad", title: "the first name of the cycle", "aria-label": ", the first name" }, " ↺") : ""), act(e))));
    return make("section", { class: graph.edges.some(e => e.stuck) ? "card loop" : "card loop less" }, narrow ? null : pictureOf(graph, state.now(), state.causes.of, true), steps);
  }

  const members = d => make("ol", { class: "cycle" }, ...d.members.map(m => make("li", {}, who(m), " (", processLink(m), ") holds ",
    nameLink({ name: m.holds, name_base64: m.holds_base64 }), m.perhaps ? " and perhaps waits for " : " and waits for ", nameLink({ name: m.waits, name_base64: m.waits_base64 }))));

  async function search() {
    const mine = searched = { asking: true };
    refresh();
    try {
      const found = await ask("deadlocks");
      if (found) Object.assign(mine, { found, at: new Date() });
      say((found?.deadlocks.length ?? 0) + " deadlocks");
    } catch (err) {
      mine.error = err.message;
    }
    mine.asking = false;
    refresh();
  }

  const breaking = h => ({ path: "break", of: { token: h.token }, go: "Break the hold", done: "The hold is broken.", ask: ["Break the hold of ", who(h), "?"],
    means: "Its lease ends. Nobody else gets in before its code has stopped, or its TTL is over." });
  const evicting = w => ({ path: "evict", of: { waiter: w.id }, go: "Evict the waiter", done: "The waiter is evicted.", ask: ["Evict the waiter ", who(w), "?"],
    means: "Its call ends with an error that says so, and those behind it move up. Who holds the name keeps it." });

  function askOperation(l, op) {
    const typed = make("input", { id: "typed", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
    const go = make("button", { type: "submit", class: "danger full", disabled: true }, op.go), told = make("p", { role: "alert", class: "bad" });
    typed.addEventListener("input", () => { go.disabled = typed.value !== l.typed; });
    const form = make("form", { onsubmit: async e => {
      e.preventDefault();
      if (go.disabled) return;
      go.disabled = true;
      try {
        const response = await fetch(op.path, { method: "POST", headers: { "Content-Type": "application/json", "X-Holdfast-Secret": state.secret },
          body: JSON.stringify({ name: l.name, name_base64: l.name_base64, ...op.of, typed: typed.value }) });
        const answer = await response.json();
        if (!response.ok) throw new Error(answer.error);
        dialog.close();
        say(op.done);
      } catch (err) {
        told.replaceChildren(shown(err.message));
        go.disabled = false;
      }
    } },
    make("h2", { id: "ask" }, ...op.ask), make("p", {}, op.means),
    make("p", {}, make("label", { for: "typed" }, "Type the name to go on: ", make("code", {}, l.typed))), typed, told,
    make("div", { class: "buttons" }, go, make("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel")));
    dialog.replaceChildren(form);
    dialog.showModal();
    typed.focus();
  }

  return { open, refresh };
}
