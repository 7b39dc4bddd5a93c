// Elements. All texts are inserted as text: nothing here makes markup of them.

// What is invisible, changes the direction of writing, or piles up marks.
const odd = /[\p{C}\p{Zl}\p{Zp}\ufffd]|(?! )\p{Zs}|\p{M}{5,}/gu;

// shown is a text of others, with odd characters as escapes. A line may end after what divides a name.
export function shown(text) {
  const out = make("span", { class: "text" }), parts = text.includes(" ") ? /.+/gs : /[^:/]*[:/]+|[^:/]+/g;
  const add = plain => plain.match(parts)?.forEach((part, i) => out.append(i ? make("wbr") : "", part));
  let at = 0;
  for (const match of text.matchAll(odd)) {
    add(text.slice(at, match.index));
    const escape = [...match[0]].map(c => "\\u{" + c.codePointAt(0).toString(16) + "}").join("");
    out.append(make("span", { class: "esc" }, escape));
    at = match.index + match[0].length;
  }
  add(text.slice(at));
  return out;
}

// make makes an element. A property on… is a listener, and any other an attribute.
export function make(tag, properties = {}, ...children) {
  const out = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) out.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) out.setAttribute(key, value === true ? "" : value);
  }
  out.append(...children.filter(c => c !== undefined && c !== null));
  return out;
}

// svg makes an element of a picture. The page has the namespace, in its mark.
const space = document.querySelector("svg").namespaceURI;
export function svg(tag, properties = {}, ...children) {
  const out = document.createElementNS(space, tag);
  for (const [key, value] of Object.entries(properties)) if (value !== undefined) out.setAttribute(key, value);
  out.append(...children.filter(c => c !== undefined && c !== null));
  return out;
}

// The columns of numbers.
const numeric = ["Names", "Contended", "Waiters", "Longest wait", "Processes", "Holds", "Blocks", "Data kept for"];

// table makes a table of a caption, titles and rows of cells. On a narrow screen each row is a list
// of its cells, each behind its title; the roles keep it a table for those that do not see it.
export function table(caption, titles, rows, kind) {
  return make("div", { class: "scrolls" }, make("table", { role: "table", class: kind },
    make("caption", { class: "unseen" }, caption),
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...titles.map(t => make("th", { scope: "col", role: "columnheader", class: numeric.includes(t) ? "num" : false }, ["Break", "Evict"].includes(t) ? make("span", { class: "unseen" }, t) : t)))),
    make("tbody", { role: "rowgroup" }, ...rows.map(cells => make("tr", { role: "row" },
      ...cells.map((c, i) => make("td", { role: "cell", class: numeric.includes(titles[i]) ? "num" : false, "data-title": titles[i] }, c ?? "")))))));
}

export function age(seconds) {
  if (!Number.isFinite(seconds)) return "?";
  const s = Math.max(0, seconds);
  if (s < 9.95) return s.toFixed(1) + " s";
  if (s < 120) return Math.round(s) + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  if (s < 172800) return Math.round(s / 3600) + " h";
  return Math.round(s / 86400) + " d";
}

// exact is an age of some minutes with its seconds, on one line.
export const exact = s => (s >= 120 && s < 3600 ? Math.floor(s / 60) + " min" + (s % 60 >= 1 ? " " + Math.floor(s % 60) + " s" : "") : age(s)).replaceAll(" ", "\u00a0");

// clock is a time of the day as logs have it.
export const clock = (date, more) => date.toLocaleTimeString([], { hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: "2-digit", ...more });

// bar is how much remains of a whole, with a text over it. It is red for a hold that is late.
export function bar(part, whole, text, late) {
  const fill = make("i", { "aria-hidden": "true" });
  fill.style.width = 100 * Math.min(1, Math.max(0, whole > 0 ? part / whole : 0)) + "%";
  return make("span", { class: late ? "bar late" : "bar" }, fill, make("span", {}, text));
}

// lateFor is for how many seconds a hold has been late: it is renewed within half its TTL.
export const lateFor = (h, now) => (now - Date.parse(h.renewed)) / 1000 - h.ttl_seconds / 2;

// link leads to a place of this page.
export function link(hash, text, label) {
  return make("a", { href: hash, "aria-label": label }, typeof text === "string" ? shown(text) : text);
}

// address is the part of a URL for a name: its bytes, which may be no UTF-8.
export function address(of) {
  if (!of.name_base64) return encodeURIComponent(of.name);
  return [...atob(of.name_base64)].map(c => "%" + c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

export function nameLink(of) {
  const out = link("#lock=" + address(of), of.name);
  out.className = "id";
  return out;
}

export function processLink(of, before = "") {
  if (!of.host) return make("span", { class: "faint" }, "?");
  return link("#process=" + encodeURIComponent(of.host) + "/" + of.pid, before + of.host + "/" + of.pid);
}

export const who = of => of.label ? shown(of.label) : of.host ? shown(of.host + "/" + of.pid) : make("span", { class: "faint" }, "?");

// heldBy names the holder, its process, and how many others there are.
export const heldBy = (h, holders) => [make("b", {}, who(h)), ...h.label && h.host ? [", ", processLink(h)] : [], holders > 1 ? " and " + many(holders - 1, "other") : ""];

// majority is how many masters of a quorum a lock needs; 0: there is no quorum.
export const majority = masters => masters?.length ? Math.floor(masters.length / 2) + 1 : 0;

// counting is how many masters are usable.
export const counting = masters => (masters ?? []).filter(m => m.counts).length;

// wants is what a holder has or a waiter wants, if that is not the whole name.
export const wants = of => of.mode === "exclusive" ? "" :
  " (" + (of.mode === "permits" ? of.permits + (of.permits === 1 ? " permit" : " permits") : of.mode) + ")";

export const many = (n, word, ending = "s") => n.toLocaleString() + " " + word + (n === 1 ? "" : ending);

// figures are numbers in large type, each with what it counts, and perhaps more about it.
export function figures(list) {
  return make("dl", { class: "figures" }, ...list.filter(f => f).map(([title, value, more, kind]) => make("div", { class: kind || false },
    make("dt", {}, title), make("dd", {}, value, more ? make("small", {}, more) : ""))));
}

// verdict says in one sentence how it is: good, warn or bad, and what that means.
export function verdict(kind, text, ...means) {
  return make("div", { class: "verdict " + kind }, make("p", {}, make("strong", {}, text)), make("p", { class: "means" }, ...means));
}

// A wait of so many seconds is long.
export const long = 60;

// trouble is how bad the state of a name or hold is by itself: 2 is trouble, 1 that somebody waits, 0 neither.
// A hold that was broken is trouble while it blocks somebody.
export function trouble(row) {
  if (row.late || row.state === "unknown" || row.state === "broken" && row.waiters !== 0) return 2;
  return row.waiters > 0 ? 1 : 0;
}

// tagOf is the class of a state in words.
export const tagOf = row => "tag " + (trouble(row) === 2 ? "bad" : row.state === "broken" ? "warn" : "");

// What words of a state mean.
export const meanings = {
  late: "Late: the hold was not renewed within half its TTL. Its process may be stopped or cut off, or its max hold is nearly over.",
  broken: "Broken: an operator ended the hold. Nobody else gets in until its code has stopped, or the time left is over.",
  "min hold": "Min hold: the holder is done. Its min hold blocks others for the time left.",
  "handed over": "Handed over: to a waiter that is not known to have taken it up.",
  retained: "Perhaps unused: its process keeps it for its next use, and gives it back when another asks.",
  unknown: "Unknown: fewer masters than a majority answered, of those that count.",
};

// stateOf is the state of a name or hold in words, and what it means.
export function stateOf(row) {
  if (row.retains && row.state === "held" && !row.late) return ["held, perhaps unused", meanings.retained];
  const word = row.late && row.state === "held" ? "late" : row.state + (row.late ? ", late" : "");
  return [word, meanings[row.late ? "late" : row.state]];
}
