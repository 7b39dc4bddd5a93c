import { address, age, bar, clock, counting, lateFor, link, long, majority, make, many, nameLink, shown, stateOf, tagOf, trouble, who } from "./view.js";
import { causesOf } from "./causes.js";
import { panel } from "./panel.js";
import { strip } from "./strip.js";
import { addSpans } from "./timeline.js";

const by = id => document.getElementById(id);
const rows = new Map(); // by id
const state = {
  rows, status: null, canBreak: false, secret: "", changes: [], omitted: 0, opened: new Date(),
  samples: [], // how many waited at a poll, and how many of them behind what is in trouble
  polls: [], // what the last ones took, in ms
  spans: new Map(), begun: 0, // who held which name, and since when by the server's time
  causes: causesOf(rows, 0),
  base: 0, received: 0, // the server's time in ms, and when it came
  sort: "trouble", down: false,
};
const mostChanges = 500, mostPolls = 60, mostSamples = 3600; // that this page keeps

// serverNow is the server's time in ms, as far as it is known. All that is shown at once has the same one.
let moment = 0;
const serverNow = state.now = () => moment;
const setNow = () => { moment = state.base ? state.base + performance.now() - state.received : 0; };

// The stream.

let stream, hiddenSince, lost = false, changed = false;

function connect() {
  stream = new EventSource("events");
  stream.addEventListener("hello", e => {
    const hello = JSON.parse(e.data);
    state.canBreak = hello.can_break;
    state.secret = hello.secret;
  });
  stream.addEventListener("update", e => applyUpdate(JSON.parse(e.data)));
  stream.addEventListener("error", () => {
    lost = true;
    away("The program that serves this page does not answer. It is asked again.");
    if (stream.readyState === EventSource.CLOSED) {
      const ended = stream;
      setTimeout(() => { if (stream === ended && !document.hidden) connect(); }, 3000);
    }
  });
}

// A hidden page asks for nothing.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream.close();
    hiddenSince = new Date();
  } else if (stream.readyState === EventSource.CLOSED) {
    connect();
  }
});
addEventListener("pagehide", () => stream.close()); // a page that may come back from a cache
addEventListener("pageshow", e => { if (e.persisted) connect(); });

function applyUpdate(update) {
  if (update.whole) {
    if (state.status && rows.size > 0) {
      const since = hiddenSince ?? (lost ? new Date(Date.now() - (performance.now() - state.received)) : null);
      if (since) remember([{ at: new Date().toISOString(), event: "gap", since: since.toISOString() }]);
    }
    rows.clear();
  }
  hiddenSince = undefined;
  for (const row of update.changed) rows.set(row.id, { ...row.lock, ...row, lock: undefined, hosts: row.hosts ?? [], late: row.lock.holds.some(h => h.late),
    waiting: row.lock.waiting_since && row.lock.kind !== "election" ? Date.parse(row.lock.waiting_since) : undefined });
  for (const id of update.gone) rows.delete(id);
  remember(update.changes);
  state.omitted += update.omitted;
  changed ||= update.whole || update.changes.length > 0;
  if (update.part) return; // the rest follows at once
  state.status = update;
  if (!update.error) {
    state.base = Date.parse(update.at);
    state.received = performance.now();
    setNow();
    state.begun ||= state.base;
    state.ahead = state.base - Date.now(); // of this browser's clock, in ms
    if (state.polls.push(Math.round(1000 * update.took_seconds)) > mostPolls) state.polls.shift();
  }
  const few = tooFew(update);
  if (update.error) away((few || "The server does not answer") + (state.base ? ", so this is older, as of " + clock(new Date(update.at)) : "") + ": ", few ? "" : update.error, few);
  else if (update.ready) away(few || "The server is not ready: ", few ? "" : update.ready, few);
  else if (counting(update.masters) < (update.masters ?? []).length) away(counting(update.masters) + " of " + update.masters.length + " masters usable", "", "some");
  else back();
  alarm("#servers", few || update.error || update.ready, counting(update.masters) < (update.masters ?? []).length);
  by("away").classList.toggle("less", !update.error && !update.ready);
  state.live = !update.error;
  state.causes = causesOf(rows, state.base);
  if (state.live) takeSample();
  alarm("#deadlocks", state.causes.stuck.size, state.causes.circle.size);
  alarm("#", [...rows.values()].some(isBad), false);
  lost = false;
  arrange();
  view.refresh(changed);
  changed = false;
}

// takeSample keeps how many wait, and how many of them behind what is in trouble, for the strip beside the headline.
function takeSample() {
  const sum = list => list.reduce((n, r) => n + (r.waiters ?? 0), 0), behind = new Set(state.causes.causes.filter(isTrouble).flatMap(c => c.names));
  if (state.samples.push({ at: state.base, n: sum([...rows.values()]), bad: sum([...behind]) }) > mostSamples) state.samples.shift();
}

// isTrouble tells a root cause that is late, broken or unknown, and a cycle that stays, from a wait that is only long.
const isTrouble = c => state.causes.stuck.has(c.cycle) || trouble(c.row) === 2;

// tooFew says that a quorum has no majority. What each master says is on the page of servers.
function tooFew(status) {
  const count = counting(status.masters), need = majority(status.masters);
  return count < need ? count + " of " + status.masters.length + " masters usable, and a lock needs " + need : "";
}

// alarm marks a view that should be looked at: red, or amber if that is less.
function alarm(hash, is, less) {
  const a = document.querySelector("nav a[href='" + hash + "']");
  a.classList.toggle("alarm", !!(is || less));
  a.classList.toggle("less", !is);
  a.title = is ? "In trouble" : less ? "Worth a look" : "";
}

let batches = 0;

function remember(changes) {
  batches++;
  for (const c of changes) {
    c.batch = batches; // those of one poll
    addSpans(state.spans, c);
  }
  state.changes.push(...changes);
  if (state.changes.length > mostChanges) {
    state.omitted += state.changes.length - mostChanges;
    state.changes.splice(0, state.changes.length - mostChanges);
  }
}

function away(text, error = "", few = "") {
  const old = by("away"), why = few ? link("#servers", "see why") : shown(error);
  if (few) text = text.replace(/: $/, "") + ": ";
  if (old.hidden || old.textContent !== text + why.textContent) old.replaceChildren(text, why);
  old.hidden = false;
  state.live = false;
  by("live").textContent = "not live";
}

function back() {
  if (!by("away").hidden) {
    by("away").hidden = true;
    say("The server answers again.");
  }
}

const say = text => { by("said").textContent = text; };

// The list: of all rows, those that are visible are elements.

const scroll = by("scroll"), body = document.querySelector("#locks tbody");
const spacers = [0, 1].map(() => make("tr", { class: "spacer", "aria-hidden": "true" }, make("td", { colspan: "9" })));
const elements = new Map();
let order = [], selected, unseen; // unseen is the name that was opened, until its row is shown

const oldest = row => row.holds[0];
const end = row => oldest(row) ? Date.parse(row.at) + 1000 * oldest(row).remaining_seconds : undefined;
const left = row => oldest(row) ? (end(row) - serverNow()) / 1000 : undefined;
const held = row => oldest(row)?.since ? (serverNow() - Date.parse(oldest(row).since)) / 1000 : undefined;
const holderText = row => oldest(row) ? oldest(row).label || (oldest(row).host ?? "") + "/" + (oldest(row).pid ?? "") : "";

const longest = row => row.waiting === undefined ? undefined : (serverNow() - row.waiting) / 1000;

// Red is what is in trouble: late, unknown, broken with waiters, or part of a cycle that is known or stays.
const isBad = r => trouble(r) === 2 || state.causes.stuck.has(state.causes.circle.get(r));

// Amber is a long wait, at its root cause alone: what is behind it waits for no reason of its own.
const isSlow = r => longest(r) >= long && (causeOf(r)?.row ?? r) === r;

// What is in trouble comes first: cycles, what is late or unknown, what is broken and blocks somebody; then who is
// waited for longest. What is broken and blocks nobody can wait.
const byTrouble = r => {
  const rank = state.causes.stuck.has(state.causes.circle.get(r)) ? 0 : r.late || r.state === "unknown" ? 1 : trouble(r) === 2 ? 2 : r.waiters ? 3 : r.state === "broken" ? 4 : 5;
  return 1e15 * rank + (r.waiting ?? 9e14);
};

const keys = {
  name: r => r.name, kind: r => r.kind ?? "", trouble: byTrouble, holder: holderText,
  chain: r => { const cause = causeOf(r); return cause && 2 * cause.place + (cause.row !== r); },
  held, left, wait: r => r.waiters, longest,
};

function chosen() {
  const text = by("search").value.trim().toLowerCase(), kind = by("kind").value, host = by("host").value.trim().toLowerCase();
  const older = parseFloat(by("older").value), contended = by("contended").checked, troubled = by("trouble").checked, root = by("root").checked;
  return [...rows.values()].filter(r =>
    (!text || r.name.toLowerCase().includes(text) || holderText(r).toLowerCase().includes(text)) &&
    (!kind || r.kind === kind) && (!contended || r.waiters > 0) && (!troubled || isBad(r) || isSlow(r) || r.state === "broken") && (!root || causeOf(r)?.row === r) &&
    (!host || r.hosts.some(h => h.toLowerCase().includes(host))) &&
    (!(older > 0) || held(r) > older));
}

function arrange() {
  const key = keys[state.sort], sign = state.down ? -1 : 1;
  const keyed = chosen().map(row => ({ row, key: key(row), stem: row.name.replace(/\d+$/, "") }));
  // Names that differ only in a number at their end, such as those of shards, are in its order.
  const byName = (a, b) => compare(a.stem, b.stem) || a.row.name.length - b.row.name.length || compare(a.row.name, b.row.name);
  keyed.sort((a, b) => {
    if (state.sort === "name") return sign * byName(a, b);
    if (a.key === undefined || b.key === undefined) return (a.key === undefined) - (b.key === undefined) || byName(a, b);
    return sign * compare(a.key, b.key) || byName(a, b);
  });
  order = keyed.map(k => k.row);
  const more = state.status?.more ? ", and about " + state.status.more.toLocaleString() + " that are not shown" : "";
  by("count").textContent = order.length.toLocaleString() + " of " + many(rows.size, "name") + more;
  by("none").hidden = order.length > 0 || !rows.size;
  showEmpty(state.base > 0 && !rows.size);
  sum();
  showPulse();
  showCauses();
  draw();
}

// showEmpty says how to begin, instead of a list that has nothing. What somebody types in stays.
function showEmpty(empty) {
  by("empty").hidden = !empty;
  for (const id of ["top", "scroll"]) by(id).hidden = empty;
  by("filters").hidden = empty && !by("filters").contains(document.activeElement);
}

// sum says in one line how it is.
function sum() {
  if (!rows.size) return;
  const all = [...rows.values()], count = is => all.filter(is).length;
  const late = count(r => r.late), cycles = state.causes.stuck.size, broken = count(r => r.state === "broken"), unknown = count(r => r.state === "unknown");
  const worst = all.reduce((a, b) => (b.waiting ?? Infinity) < (a?.waiting ?? Infinity) ? b : a, undefined);
  const part = (n, word, of = "") => make("span", { class: of }, make("b", {}, n.toLocaleString()), " " + word);
  const parts = [part(all.length, all.length === 1 ? "name" : "names"), part(count(r => r.waiters > 0), "contended")];
  const lead = (n, word, of, is) => {
    if (n) parts.push(make("a", { href: is ? "#lock=" + address(all.find(is)) : "#deadlocks" }, part(n, word, of)));
  };
  lead(cycles, (state.causes.known.size ? "deadlock" : "possible deadlock") + (cycles === 1 ? "" : "s"), "bad");
  lead(late, "late", "bad", r => r.late);
  const blocking = all.some(r => r.state === "broken" && r.waiters), showBroken = () => lead(broken, "broken", blocking ? "bad" : "", r => r.state === "broken");
  if (blocking) showBroken();
  lead(unknown, "unknown", "bad", r => r.state === "unknown");
  if (worst) {
    const wait = longest(worst);
    parts.push(make("span", { class: isBad(causeOf(worst)?.row ?? worst) ? "bad" : wait >= long ? "warn" : "" }, "longest wait ", make("a", { href: "#lock=" + address(worst) }, make("b", {}, age(wait)))));
  } else if (!late && !broken && !unknown && !cycles) parts.push(make("span", { class: "good" }, "nothing waits"));
  if (!blocking) showBroken(); // it can wait
  if (by("sum").contains(document.activeElement) || by("sum").matches(":hover") && by("sum").textContent) return;
  by("sum").replaceChildren(...parts.flatMap((p, i) => i ? [", ", p] : [p]));
}

// showPulse draws how many waited since the page was opened.
function showPulse() {
  const now = state.samples.at(-1);
  by("pulse").hidden = !rows.size || state.samples.every(s => s.n === now.n && s.bad === now.bad);
  if (by("pulse").hidden) return;
  by("pulse").replaceChildren(make("p", {}, make("b", {}, now.n.toLocaleString()), now.n === 1 ? " waiter" : " waiters", ...now.bad ? [make("span", { class: "bad" }, ", ", make("b", {}, now.bad.toLocaleString()), " behind trouble")] : []),
    strip(state.samples, state.begun, serverNow(), Math.max));
}

// showCauses names the roots of what waits, as many as there is room for.
function showCauses() {
  const all = state.causes.causes, most = Math.max(2, Math.min(4, Math.floor(by("list").clientWidth / 270)));
  by("causes").hidden = !all.length;
  by("more").textContent = all.length > most ? most + " of " + all.length.toLocaleString() : "";
  by("every").hidden = all.length <= most || by("root").checked;
  const cards = by("causes").querySelectorAll("a");
  all.slice(0, most).forEach((c, i) => {
    const card = cards[i] ?? make("a", {}), h = oldest(c.row), bad = isTrouble(c), known = state.causes.known.has(c.cycle);
    let word = "";
    if (c.row.late) word = h.renewed ? "late for " + age(lateFor(h, serverNow())) : "late";
    else if (trouble(c.row) === 2) word = stateOf(c.row)[0];
    card.href = "#lock=" + address(c.row);
    card.className = "cause" + (bad ? " bad" : isSlow(c.row) ? " slow" : "");
    const some = (c.cycle ?? []).slice(0, 4), around = (c.cycle?.length <= 4 ? [...some, some[0]] : some).flatMap((r, i) => [i ? " → " : "", oldest(r) ? who(oldest(r)) : "nobody"]);
    card.replaceChildren(make("span", { class: "who" }, ...c.cycle ? [(known ? "Deadlock of " : "Possible deadlock of ") + c.cycle.length] : [make("b", {}, shown(c.row.name))]),
      word ? make("span", { class: bad ? "tag bad" : "tag warn" }, word) : "",
      make("span", { class: c.cycle ? "what whole" : "what" }, ...c.cycle ? [...around, c.cycle.length > 4 ? " → …" : ""] : h ? ["held by ", make("b", {}, who(h)), c.row.holders > 1 ? " +" + (c.row.holders - 1) : h.label && h.host ? make("span", { class: "more" }, ", " + h.host + "/" + h.pid) : ""] : ["nobody holds it"]),
      make("span", { class: "blocks" }, "blocks ", make("b", {}, c.waiters.toLocaleString()), make("span", { class: "more" }, (c.waiters === 1 ? " waiter" : " waiters") + (c.names.length > 1 ? " in " + many(c.names.length, "name") : "")), " for ", make("span", { class: "for" }, age((serverNow() - c.since) / 1000))));
    card.setAttribute("aria-label", card.title = [...card.children].map(e => e.textContent).join(", "));
    if (!cards[i]) by("cards").append(card);
  });
  for (const card of [...cards].slice(most < all.length ? most : all.length)) card.remove();
}

function causeOf(row) { return state.causes.of.get(row.id); }

// showChain says in a row what it blocks, or what it is behind.
function showChain(tr) {
  const cause = causeOf(tr.lock), chain = !cause ? "" : state.causes.circle.has(tr.lock) ? state.causes.known.has(state.causes.circle.get(tr.lock)) ? "in a deadlock" : "in a possible deadlock" :
    cause.row === tr.lock ? "blocks " + cause.waiters : "behind";
  const text = chain === "behind" ? chain + " " + cause.row.id + cause.row.name : chain;
  if (tr.chain === text) return;
  tr.chain = text;
  for (const cell of tr.querySelectorAll(".chain")) {
    cell.replaceChildren(...chain === "behind" ? [chain + " ", nameLink(cause.row)] : chain ? [make(cause.names.length > 1 ? "b" : "span", {}, chain)] : []);
    cell.title = chain === "behind" ? "behind " + shown(cause.row.name).textContent : chain.startsWith("blocks") ? many(cause.waiters, "waiter") + " in " + many(cause.names.length, "name") : "";
  }
}

const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
// On a phone the list scrolls with all that is above it. There, and beside the panel, a row has two lines.
const phone = matchMedia("(max-width: 760px)");
const isNarrow = () => phone.matches || !by("panel").hidden;
const height = () => isNarrow() ? 60 : 44;
const scroller = () => phone.matches ? by("list") : scroll;
const above = () => phone.matches ? scroll.offsetTop - by("list").offsetTop : 0;

function draw() {
  by("list").classList.toggle("narrow", isNarrow());
  const size = height(), top = scroller().scrollTop - above(), first = Math.max(0, Math.min(order.length, Math.floor(top / size)) - 5);
  const last = Math.max(first, Math.min(order.length, Math.ceil((top + scroller().clientHeight) / size) + 5));
  const wanted = order.slice(first, last), ids = new Set(wanted.map(r => r.id));
  for (const [id, tr] of elements) {
    if (ids.has(id)) continue;
    if (tr.contains(document.activeElement)) scroll.focus({ preventScroll: true });
    tr.remove();
    elements.delete(id);
  }
  spacers[0].firstChild.style.height = first * size + "px";
  spacers[1].firstChild.style.height = Math.max(0, order.length - last) * size + "px";
  by("locks").setAttribute("aria-rowcount", order.length + 1);
  if (!body.contains(spacers[0])) body.append(...spacers);
  let before = spacers[0];
  wanted.forEach((row, i) => {
    let tr = elements.get(row.id);
    if (tr?.lock !== row) {
      const focused = tr?.contains(document.activeElement), made = rowElement(row);
      tr?.replaceWith(made);
      elements.set(row.id, tr = made);
      if (focused) tr.querySelector("button").focus({ preventScroll: true });
    }
    showChain(tr);
    tr.classList.toggle("sick", isBad(row));
    tr.setAttribute("aria-rowindex", first + i + 2);
    if (row.name === selected) tr.setAttribute("aria-current", "true");
    else tr.removeAttribute("aria-current");
    if (before.nextSibling !== tr) before.after(tr);
    before = tr;
  });
  markMore();
  follow();
  tick();
}

// follow shows the row of the name that was opened, once: what the reader scrolls to stays.
function follow() {
  const at = unseen && !phone.matches ? order.findIndex(r => r.name === unseen) : -1;
  if (at < 0) return;
  unseen = undefined;
  const top = at * height();
  if (top < scroll.scrollTop || top + 2 * height() > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = Math.max(0, top - scroll.clientHeight / 2);
}

// markMore shows that rows follow below.
function markMore() { scroll.classList.toggle("more", scroll.scrollTop + scroll.clientHeight < scroll.scrollHeight - 4); }

function rowElement(row) {
  const h = oldest(row), cell = (name, ...children) => make("td", { class: name }, ...children);
  const open = make("button", { class: "open", type: "button", title: shown(row.name).textContent, onclick: () => { location.hash = "lock=" + address(row); } }, shown(row.name));
  let kind = row.kind ?? "";
  if (row.permits !== undefined) kind = bar(row.taken, row.permits, row.taken + "/" + row.permits + " " + row.kind);
  const holder = () => make("span", {}, row.kind === "election" && h ? make("span", { class: "role" }, "leader ") : "",
    row.foreign ? make("span", { class: "faint" }, shown(row.foreign)) : row.count !== undefined ? row.count + " to count down" : h ? who(h) : "", row.holders > 1 ? " +" + (row.holders - 1) : "");
  const [word, why] = stateOf(row);
  const tr = make("tr", { class: "row" },
    make("th", { scope: "row", class: "name" }, open, make("span", { class: "small" }, holder(), make("span", { class: "chain" }))),
    cell("state", make("span", { class: trouble(row) === 2 || row.state === "broken" ? tagOf(row) : "calm", title: why }, word)),
    cell("longest", make("b", {}), row.waiters ? make("span", { class: "small faint" }, many(row.waiters, "waiter")) : ""),
    cell("chain"), cell("wait", state.status?.masters ? "–" : row.waiters ? String(row.waiters) : ""),
    cell("holder", holder()), cell("held"), cell("left"), cell("kind", kind));
  tr.lock = row;
  return tr;
}

// tick moves what changes by time alone.
function tick() {
  for (const tr of elements.values()) {
    const row = tr.lock, h = oldest(row), wait = longest(row);
    if (wait !== undefined) {
      tr.querySelector(".longest b").textContent = age(wait);
      tr.classList.toggle("slow", isSlow(row));
    }
    if (!h) continue;
    tr.querySelector(".held").textContent = h.since ? age(held(row)) : "?";
    const cell = tr.querySelector(".left"), seconds = left(row);
    if (!cell.firstChild) cell.append(bar(seconds, h.ttl_seconds, "", row.late));
    cell.querySelector("i").style.width = 100 * Math.min(1, Math.max(0, seconds / h.ttl_seconds)) + "%";
    const late = row.late && h.renewed;
    cell.querySelector("span span").textContent = late ? "late for " + age(lateFor(h, serverNow())) : age(seconds);
    if (late) cell.title = "last renewed " + age((serverNow() - Date.parse(h.renewed)) / 1000) + " ago, ends in " + age(seconds);
  }
  if (state.status && state.live) {
    by("live").textContent = "live, " + clock(new Date(serverNow()), { timeZoneName: "short" });
  }
}
// An update moves all of it. Without one for a while, the time goes on nevertheless.
setInterval(() => {
  if (document.hidden || performance.now() - state.received < 1500) return;
  setNow();
  sum();
  showCauses();
  tick();
}, 500);

for (const box of [scroll, by("list")]) box.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
scroll.tabIndex = 0;
scroll.setAttribute("role", "region");
scroll.setAttribute("aria-label", "List of names");
addEventListener("resize", showCauses);
const sizes = new ResizeObserver(() => draw());
for (const box of [scroll, by("list")]) sizes.observe(box);

// The URL has the filters and the order, so a view can be sent to somebody.
const filters = ["search", "kind", "host", "older", "contended", "root", "trouble"];

function keepInURL() {
  const query = new URLSearchParams();
  for (const id of filters) {
    const value = by(id).type === "checkbox" ? by(id).checked ? "1" : "" : by(id).value.trim();
    if (value) query.set(id, value);
  }
  if (state.sort !== "trouble" || state.down) query.set("sort", (state.down ? "-" : "") + state.sort);
  const text = query.toString();
  history.replaceState(null, "", location.pathname + (text ? "?" + text : "") + location.hash);
}

function takeFromURL() {
  const query = new URLSearchParams(location.search);
  for (const id of filters) {
    if (by(id).type === "checkbox") by(id).checked = query.get(id) === "1";
    else by(id).value = query.get(id) ?? "";
  }
  const sort = query.get("sort") ?? "trouble";
  state.down = sort.startsWith("-");
  state.sort = Object.hasOwn(keys, sort.replace("-", "")) ? sort.replace("-", "") : "trouble";
}

// toTop shows the first rows, if others are shown.
function toTop() { scroller().scrollTop = Math.min(scroller().scrollTop, above()); }

let saying, keeping, byHand = false;
by("fold").addEventListener("click", () => unfold(byHand = by("fold").ariaExpanded !== "true"));
// isFolded says that a filter is in use which the fold would hide.
const isFolded = () => filters.some(id => id !== "search" && (by(id).type === "checkbox" ? by(id).checked : by(id).value));
function unfold(is) {
  by("fold").ariaExpanded = String(is);
  by("filters").classList.toggle("unfolded", is);
}
by("filters").addEventListener("input", e => {
  if (e.target.id !== "search") unfold(byHand || isFolded());
  toTop();
  arrange();
  clearTimeout(keeping);
  keeping = setTimeout(keepInURL, 200); // browsers bound how often
  clearTimeout(saying);
  saying = setTimeout(() => say(by("count").textContent), 700);
});
state.showRoots = () => {
  by("root").checked = true;
  location.hash = "";
  by("filters").dispatchEvent(new Event("input"));
};
by("every").addEventListener("click", state.showRoots);

// Where the browser lets the page copy, it does.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    say("The " + button.dataset.copy + " is copied.");
    button.textContent = "Copied";
  });
}
by("clear").addEventListener("click", () => {
  by("filters").reset();
  by("filters").dispatchEvent(new Event("input"));
  by("search").focus();
});
by("filters").addEventListener("submit", e => e.preventDefault());

for (const button of document.querySelectorAll("[data-sort]")) {
  button.addEventListener("click", () => {
    state.down = state.sort === button.dataset.sort ? !state.down : ["held", "wait", "longest"].includes(button.dataset.sort);
    state.sort = button.dataset.sort;
    showSort();
    keepInURL();
    toTop();
    arrange();
  });
}

function showSort() {
  for (const b of document.querySelectorAll("[data-sort]")) {
    if (b.dataset.sort === state.sort) b.parentElement.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    else b.parentElement.removeAttribute("aria-sort");
  }
}
takeFromURL();
unfold(isFolded());
showSort();

// Arrows, Home and End move from row to row, also to those that are no elements yet.
scroll.addEventListener("keydown", e => {
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[e.key];
  if (steps === undefined || order.length === 0) return;
  const now = order.indexOf(e.target.closest("tr.row")?.lock);
  const to = Math.min(order.length - 1, Math.max(0, now + steps));
  const size = height(), top = to * size + above(), box = scroller();
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + 2 * size + 40 > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * size + 40 - box.clientHeight;
  draw();
  elements.get(order[to].id)?.querySelector("button").focus({ preventScroll: true });
  e.preventDefault();
});

// The panel beside the list.

const view = panel(by("panel"), by("asking"), state, say);

function route() {
  const hash = location.hash.slice(1);
  unseen = selected = view.open(hash);
  document.querySelector("main").classList.toggle("open", !by("panel").hidden);
  document.querySelector("main").classList.toggle("wide", ["waits", "changes", "servers", "deadlocks"].includes(hash));
  for (const a of document.querySelectorAll("nav a")) {
    if (a.getAttribute("href") === "#" + (hash.includes("=") ? "" : hash)) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  draw();
  if (by("panel").hidden && last?.startsWith("lock=")) {
    for (const tr of elements.values()) if ("lock=" + address(tr.lock) === last) tr.querySelector("button").focus();
  }
  last = hash;
}
let last;
addEventListener("hashchange", route);
addEventListener("keydown", e => { if (e.key === "Escape" && location.hash && !by("asking").open) location.hash = ""; });
connect();
route();
