import { strip } from "./strip.js";
import { age, clock, link, make, many, nameLink, processLink, shown, table } from "./view.js";

const mostShown = 100, mostFirst = 3; // the first are those in trouble

const label = hold => hold?.label ? shown(hold.label) : hold?.host ? shown(hold.host + "/" + hold.pid) : "somebody";
const lasted = (hold, at) => hold?.since ? " for " + age((Date.parse(at) - Date.parse(hold.since)) / 1000) : "";
const was = c => c.before?.holds[0];
const wasLate = c => ["ended", "freed"].includes(c.event) && was(c)?.late;
const wasHeld = c => {
  if (!was(c)) return ["holder unknown"];
  const word = c.before.state === "broken" ? "broken" : wasLate(c) ? "late" : "";
  return word ? ["the " + word + " hold of ", label(was(c)), " ended"] : ["was held by ", label(was(c)), lasted(was(c), c.at)];
};

// What each event is called, and what is said of it.
const events = {
  held: ["taken", c => ["by ", label(c.lock.holds[0]), make("span", { class: "of" }, ", token " + c.lock.holds[0].token)]],
  ended: ["ended", c => wasHeld(c)],
  freed: ["freed", c => wasHeld(c)],
  waiting: ["waiters", c => ["now " + (c.lock.waiters ? many(c.lock.waiters, "waiter") : "no waiters")]],
  holders: ["holders", c => ["now " + many(c.lock.holders, "holder")]],
  late: ["became late", c => [label(c.lock.holds.find(h => h.late)), " did not renew in time"]],
  broken: ["broken", c => ["the hold of ", label(c.lock.holds[0]), ...c.lock.holds[0]?.by ? [", by ", shown(c.lock.holds[0].by)] : []]],
  renewed: ["renewed", c => ["by ", label(c.lock.holds[0]), ", no longer late"]],
  counted: ["counted", c => [c.lock.count + " to count down"]],
  foreign: ["foreign", () => ["the key is none of ours"]],
};

// A hold that ends as an operator broke it is called so.
export const isBreak = c => c.event === "ended" && c.lock?.state === "broken";
const eventOf = c => isBreak(c) ? "broken" : c.event;

const strong = { held: "on", late: "bad", foreign: "bad", broken: "warn" };

// lines make a table of changes, the newest first. What one poll found of one name is one line.
function lines(list, one, caption = "Changes") {
  const groups = [];
  for (const c of list) {
    const last = groups.at(-1)?.[0];
    const same = o => o.name === c.name && o.name_base64 === c.name_base64;
    if (last && last.batch === c.batch && same(last) && c.event !== "gap") groups.at(-1).push(c);
    else {
      // Waiters that go and come at once are one line.
      const near = c.event === "waiting" && groups.slice(-8).findLast(g => same(g[0]));
      if (near && near.every(o => o.event === "waiting" && Date.parse(c.at) - Date.parse(o.at) < 1500)) near.push(c);
      else groups.push([c]);
    }
  }
  return table(caption, ["Time", ...one ? [] : ["Name"], "Change", "What", ...one ? [] : ["Process"]], groups.slice(-mostShown).reverse().map(g => line(g, one)), one ? "log one" : "log");
}

function line(group, one) {
  const [c] = group, time = make("span", { class: "time" }, clock(new Date(c.at)));
  if (c.event === "gap") return [time, ...one ? [] : [""], make("span", { class: "tag" }, "gap"), make("span", { class: "faint" }, "nothing was looked at since " + clock(new Date(c.since)))];
  const counts = group.length > 1 && group.every(o => o.event === "waiting");
  const said = counts ? [[c, "waiters", () => [[c.before?.waiters ?? 0, ...group.map(o => o.lock.waiters)].join(" → ")]]] : group.map(c => [c, ...events[eventOf(c)] ?? [c.event, () => []]]);
  // That others wait goes without saying beside a hold that began or ended.
  const tag = said.filter(([c], i) => !i || !["waiting", "holders"].includes(c.event)).map(([c, word]) => [make("span", { class: "tag " + (strong[eventOf(c)] ?? "") }, word), " "]);
  return [time, ...one ? [] : [nameLink(c)], make("span", {}, ...tag.flat()), make("span", { class: "faint" }, ...said.flatMap(([c, , what], i) => [i ? ", " : "", ...what(c)])), ...one ? [] : [process(group)]];
}

// process is the one that holds the name, or did.
function process(group) {
  const hold = group.map(c => c.lock?.holds?.[0] ?? was(c)).find(h => h?.host);
  return hold ? processLink(hold) : "";
}

const bounds = "Changes are differences between two polls: shorter holds are not seen.";

// What is looked for among the changes, while the page is open.
let text = "", event = "", troubled = false, choose;

// changeFilters are the fields that say which changes are shown.
export function changeFilters(onchange) {
  const name = make("input", { type: "search", placeholder: "Name, holder", autocomplete: "off", value: text });
  const kind = make("select", {}, make("option", { value: "" }, "Every change"), ...Object.entries(events).map(([value, [word]]) => make("option", { value, selected: value === event }, word)));
  const bad = make("input", { type: "checkbox", checked: troubled });
  const take = () => { [text, event, troubled] = [name.value.trim().toLowerCase(), kind.value, bad.checked]; onchange(); };
  choose = event => { kind.value = kind.value === event ? "" : event; take(); };
  return make("form", { class: "filters", role: "search", onsubmit: e => e.preventDefault(), oninput: take },
    make("label", { class: "field wide" }, make("span", { class: "unseen" }, "Search"), name), make("label", { class: "field choice" }, make("span", { class: "unseen" }, "Change"), kind),
    make("label", { class: "chip" }, bad, make("span", {}, "In trouble")));
}

// Trouble is what became late, and the end of that, what was broken, and what is none of ours.
const isTrouble = c => ["late", "renewed", "foreign"].includes(c.event) || wasLate(c) || [c.lock, c.before].some(l => l?.state === "broken");

const isChosen = c => (!event || eventOf(c) === event) && (!troubled || isTrouble(c)) &&
  (!text || [c.name, ...[...c.lock?.holds ?? [], ...c.before?.holds ?? []].map(h => h.label)].some(t => t?.toLowerCase().includes(text)));

// changesOf shows the changes since the page was opened that are looked for, the newest first.
export function changesOf(state) {
  const all = state.changes, list = all.filter(isChosen), opened = clock(state.opened);
  if (!all.length) {
    return [make("section", { class: "card empty" }, make("h3", {}, "Nothing has changed since " + opened + "."),
      make("p", {}, "What is taken, freed or waited for from now on comes here by itself."), make("p", {}, link("#", "See what is held now")))];
  }
  const part = of => {
    const n = all.filter(c => eventOf(c) === of).length;
    return n ? [make("button", { type: "button", class: of === "held" ? "" : strong[of], "aria-pressed": String(event === of), onclick: () => choose(of) }, make("b", {}, n.toLocaleString()), " " + events[of][0])] : [];
  };
  // The end of a trouble alone says nothing, so what became late last is there too.
  const trouble = text || event || troubled ? [] : all.filter(isTrouble), last = trouble.slice(-mostFirst), began = trouble.findLast(c => c.event === "late");
  const first = began && !last.includes(began) ? [began, ...last] : last;
  const counts = [make("span", {}, make("b", {}, all.length.toLocaleString()), " " + (all.length === 1 ? "change" : "changes") + " since " + opened), ...["held", "freed", "late", "broken"].flatMap(part)];
  // What became late before the page was opened is no change, and still the first that matters.
  const late = text || event ? [] : state.causes.causes.filter(c => c.row.late).slice(0, mostFirst).map(c => make("p", { class: "now" }, make("span", { class: "tag bad" }, "late now"), " ", nameLink(c.row),
    make("span", { class: "faint" }, " blocks " + many(c.waiters, "waiter"))));
  return [make("div", { class: "top" }, make("p", { class: "lead" }, ...counts.flatMap((c, i) => i + 1 < counts.length ? [make("span", {}, c, ","), " "] : [c])),
    strip(all.map(c => ({ at: Date.parse(c.at), n: 1, bad: +(eventOf(c) === "late"), warn: +(eventOf(c) === "broken") })), state.begun, state.now(), (a, b) => a + b)),
  first.length || late.length ? make("section", { class: "card first" }, make("h3", {}, "Around the trouble"), ...late, first.length ? lines(first, false, "Around the trouble") : null) : null,
  make("section", { class: "card" }, list.length ? lines(list) : make("p", {}, "No change matches the filters."), make("p", { class: "faint" }, bounds + left(state.omitted + Math.max(0, list.length - mostShown))))];
}

// changesOfName shows those of one name.
export function changesOfName(state, name) {
  const list = state.changes.filter(c => c.name === name || c.event === "gap");
  const intro = make("p", { class: "faint" }, "Seen since this page was opened at " + clock(state.opened) + ". " + bounds + left(state.omitted + Math.max(0, list.length - mostShown)));
  return [intro, list.length ? lines(list, true) : null];
}

const left = n => n ? " " + n.toLocaleString() + " older or further changes are not shown." : "";
