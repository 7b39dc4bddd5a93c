import { age, figures, make, many, nameLink, shown, table } from "./view.js";

const mostShown = 100;

const label = hold => hold?.label ? shown(hold.label) : hold?.host ? shown(hold.host + "/" + hold.pid) : "somebody";
const lasted = (hold, at) => hold?.since ? " for " + age((Date.parse(at) - Date.parse(hold.since)) / 1000) : "";
const was = c => c.before?.holds[0];

// What each event is called, and what is said of it.
const events = {
  held: ["held", c => ["by ", label(c.lock.holds[0]), make("span", { class: "of" }, ", token " + c.lock.holds[0].token)]],
  ended: ["ended", c => was(c) ? ["was held by ", label(was(c)), lasted(was(c), c.at)] : []],
  freed: ["freed", c => was(c) ? ["was held by ", label(was(c)), lasted(was(c), c.at)] : []],
  waiting: ["waiters", c => ["now " + (c.lock.waiters ? many(c.lock.waiters, "waiter") : "no waiters")]],
  holders: ["holders", c => ["now " + many(c.lock.holders, "holder")]],
  late: ["late", c => [label(c.lock.holds.find(h => h.late)), " did not renew in time"]],
  renewed: ["renewed", c => ["by ", label(c.lock.holds[0])]],
  counted: ["counted", c => [c.lock.count + " to count down"]],
  foreign: ["foreign", () => ["the key is none of ours"]],
};

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
  const [c] = group, time = make("span", { class: "time" }, new Date(c.at).toLocaleTimeString());
  if (c.event === "gap") return [time, ...one ? [] : [""], make("span", { class: "tag" }, "gap"), make("span", { class: "faint" }, "nothing was looked at since " + new Date(c.since).toLocaleTimeString())];
  const said = group.map(c => [c, ...events[c.event] ?? [c.event, () => []]]);
  // That others wait goes without saying beside a hold that began or ended.
  const tag = said.filter(([c], i) => !i || !["waiting", "holders"].includes(c.event)).map(([c, word]) => [make("span", { class: "tag " + (strong[c.event] ?? "") }, word), " "]);
  return [time, ...one ? [] : [nameLink(c)], make("span", {}, ...tag.flat()), make("span", { class: "faint" }, ...said.flatMap(([c, , what], i) => [i ? ", " : "", ...what(c)]))];
}

const bounds = "Changes are differences between two polls: shorter holds are not seen.";

// changesOf shows all changes since the page was opened, the newest first.
export function changesOf(state) {
  const list = state.changes, count = event => list.filter(c => c.event === event).length.toLocaleString(), late = list.some(c => c.event === "late");
  const opened = state.opened.toLocaleTimeString();
  if (!list.length) {
    return [make("section", { class: "card empty" }, make("h3", {}, "Nothing has changed since " + opened + "."),
      make("p", {}, "What is held, freed or waited for from now on comes here by itself, the newest first."), make("p", {}, bounds))];
  }
  return [figures([
    ["Changes", (list.length + state.omitted).toLocaleString(), "since " + opened], ["Held", count("held"), "holds that began"],
    ["Freed", count("freed"), "names that are gone"], ["Late", count("late"), "holds not renewed in time", late ? "bad" : ""]]),
  make("section", { class: "card" }, lines(list), make("p", { class: "faint" }, bounds + left(state.omitted + Math.max(0, list.length - mostShown))))];
}

// changesOfName shows those of one name.
export function changesOfName(state, name) {
  const list = state.changes.filter(c => c.name === name || c.event === "gap");
  const intro = make("p", { class: "faint" }, "Seen since this page was opened at " + state.opened.toLocaleTimeString() + ". " + bounds + left(state.omitted + Math.max(0, list.length - mostShown)));
  return [intro, list.length ? lines(list, true) : null];
}

const left = n => n ? " " + n.toLocaleString() + " older or further changes are not shown." : "";
