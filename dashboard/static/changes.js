import { age, clock, figures, make, many, nameLink, shown, table } from "./view.js";

const mostShown = 100;

const label = hold => hold?.label ? shown(hold.label) : hold?.host ? shown(hold.host + "/" + hold.pid) : "somebody";
const lasted = (hold, at) => hold?.since ? " for " + age((Date.parse(at) - Date.parse(hold.since)) / 1000) : "";
const was = c => c.before?.holds[0];

// What each event is called, and what is said of it.
const events = {
  held: ["taken", c => ["by ", label(c.lock.holds[0]), make("span", { class: "of" }, ", token " + c.lock.holds[0].token)]],
  ended: ["ended", c => was(c) ? ["was held by ", label(was(c)), lasted(was(c), c.at)] : []],
  freed: ["freed", c => was(c) ? ["was held by ", label(was(c)), lasted(was(c), c.at)] : []],
  waiting: ["waiters", c => ["now " + (c.lock.waiters ? many(c.lock.waiters, "waiter") : "no waiters")]],
  holders: ["holders", c => ["now " + many(c.lock.holders, "holder")]],
  late: ["became late", c => [label(c.lock.holds.find(h => h.late)), " did not renew in time"]],
  renewed: ["renewed", c => ["by ", label(c.lock.holds[0])]],
  counted: ["counted", c => [c.lock.count + " to count down"]],
  foreign: ["foreign", () => ["the key is none of ours"]],
};

// A hold that ends as an operator broke it is called so.
const isBreak = c => c.event === "ended" && c.lock?.state === "broken";
const broken = c => ["the hold of ", label(c.lock.holds[0]), ...c.lock.holds[0]?.by ? [", by ", shown(c.lock.holds[0].by)] : []];

const strong = { held: "on", late: "bad", foreign: "bad" };

// lines make a table of changes, the newest first. What one poll found of one name is one line.
function lines(list, one) {
  const groups = [];
  for (const c of list) {
    const last = groups.at(-1)?.[0];
    if (last && last.batch === c.batch && last.name === c.name && last.name_base64 === c.name_base64 && c.event !== "gap") groups.at(-1).push(c);
    else groups.push([c]);
  }
  return table("Changes", ["Time", ...one ? [] : ["Name"], "Change", "What"], groups.slice(-mostShown).reverse().map(g => line(g, one)), one ? "log one" : "log");
}

function line(group, one) {
  const [c] = group, time = make("span", { class: "time" }, clock(new Date(c.at)));
  if (c.event === "gap") return [time, ...one ? [] : [""], make("span", { class: "tag" }, "gap"), make("span", { class: "faint" }, "nothing was looked at since " + clock(new Date(c.since)))];
  const said = group.map(c => isBreak(c) ? [c, "broken", broken] : [c, ...events[c.event] ?? [c.event, () => []]]);
  // That others wait goes without saying beside a hold that began or ended.
  const tag = said.filter(([c], i) => !i || !["waiting", "holders"].includes(c.event)).map(([c, word]) => [make("span", { class: "tag " + (isBreak(c) ? "bad" : strong[c.event] ?? "") }, word), " "]);
  return [time, ...one ? [] : [nameLink(c)], make("span", {}, ...tag.flat()), make("span", { class: "faint" }, ...said.flatMap(([c, , what], i) => [i ? ", " : "", ...what(c)]))];
}

const bounds = "Changes are differences between two polls: shorter holds are not seen.";

// What is looked for among the changes, while the page is open.
let text = "", event = "", troubled = false;

// changeFilters are the fields that say which changes are shown.
export function changeFilters(onchange) {
  const name = make("input", { type: "search", placeholder: "Search a name or a holder", autocomplete: "off", value: text });
  const kind = make("select", {}, make("option", { value: "" }, "Every change"), ...Object.entries(events).map(([value, [word]]) => make("option", { value, selected: value === event }, word)));
  const bad = make("input", { type: "checkbox", checked: troubled });
  const take = () => { [text, event, troubled] = [name.value.trim().toLowerCase(), kind.value, bad.checked]; onchange(); };
  return make("form", { class: "filters", role: "search", onsubmit: e => e.preventDefault(), oninput: take },
    make("label", { class: "field wide" }, make("span", { class: "unseen" }, "Search"), name), make("label", { class: "field choice" }, make("span", { class: "unseen" }, "Change"), kind),
    make("label", { class: "chip" }, bad, make("span", {}, "In trouble")));
}

// Trouble is what became late, and the end of that, what was broken, and what is none of ours.
const isTrouble = c => ["late", "renewed", "foreign"].includes(c.event) || [c.lock, c.before].some(l => l?.state === "broken");

const isChosen = c => (!event || c.event === event) && (!troubled || isTrouble(c)) &&
  (!text || [c.name, ...[...c.lock?.holds ?? [], ...c.before?.holds ?? []].map(h => h.label)].some(t => t?.toLowerCase().includes(text)));

// changesOf shows the changes since the page was opened that are looked for, the newest first.
export function changesOf(state) {
  const all = state.changes, list = all.filter(isChosen), opened = clock(state.opened), kinds = ["held", "freed", "waiting", "late"];
  const count = (...events) => all.filter(c => events.includes(c.event)).length, late = count("late"), others = all.filter(c => !kinds.includes(c.event)).length;
  if (!all.length) {
    return [make("section", { class: "card empty" }, make("h3", {}, "Nothing has changed since " + opened + "."),
      make("p", {}, "What is taken, freed or waited for from now on comes here by itself, the newest first."), make("p", {}, bounds))];
  }
  return [figures([
    ["Changes", all.length.toLocaleString(), "since " + opened], ["Taken", count("held").toLocaleString(), "holds that began"],
    ["Freed", count("freed").toLocaleString(), "names that are gone"], ["Waiters", count("waiting").toLocaleString(), "more or fewer wait"],
    ["Became late", late.toLocaleString(), "not renewed in time", late ? "bad" : ""], ["Others", others.toLocaleString(), "ended, renewed and so on"]]),
  make("section", { class: "card" }, list.length ? lines(list) : make("p", {}, "No change matches the filters."), make("p", { class: "faint" }, bounds + left(state.omitted + Math.max(0, list.length - mostShown))))];
}

// changesOfName shows those of one name.
export function changesOfName(state, name) {
  const list = state.changes.filter(c => c.name === name || c.event === "gap");
  const intro = make("p", { class: "faint" }, "Seen since this page was opened at " + clock(state.opened) + ". " + bounds + left(state.omitted + Math.max(0, list.length - mostShown)));
  return [intro, list.length ? lines(list, true) : null];
}

const left = n => n ? " " + n.toLocaleString() + " older or further changes are not shown." : "";
