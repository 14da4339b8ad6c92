// The page: who logs in, which tab is open, and how often the application is asked.

import { ask, askText, forgetToken, keepToken, keptToken, takeToken } from "./ask.js";
import { byId, count, element, plural, rate, setText } from "./dom.js";
import { Graph } from "./graph.js";
import { Overview } from "./overview.js";
import { Left, Rates } from "./rates.js";
import { Stores } from "./stores.js";
import { Tail } from "./tail.js";

const EVERY_MS = 1_000;
const QUIET_MS = 4_000;
const READABLE = 0.65; // a larger graph is scrolled at first
const QUIET_AFTER = 10; // polls in which nothing moves

const graph = new Graph(byId("graph"), (card) => choose({ ...card }));
const overview = new Overview(byId("overview"), {
  onClose: leave, onBrowse: (store) => openTab("stores", store), onTail: (topic) => openTab("tail", topic),
});
const stores = new Stores(byId("stores"));
const tail = new Tail(byId("tail"));
let rates = new Rates();
let left = new Left();
let seen = null; // what was shown last
let chosen = null;
let topology = null;
let drawn = ""; // the picture as it came
let isSilent = false;
let timer = null;
let still = 0;

async function begin() {
  if (!keptToken()) return showLogin("");
  try {
    await look();
  } catch (error) {
    if (error.status === 403) return beginWithStores();
    if (error.status === 401) forgetToken();
    return showLogin(error.status === 401 ? "The token is wrong: each start of an application may have a new one." : error.message);
  }
  enter(false);
  fit(false);
  openTab("overview");
  poll();
}

// Whether there is another topology than before.
async function look() {
  const [known, picture] = await Promise.all([ask("v1/topology"), askText("v1/topology.svg")]);
  topology = known;
  document.title = `${topology.application_id} – kstreams`;
  setText(byId("name"), topology.application_id);
  if (picture === drawn) return false;
  graph.draw(picture);
  drawn = picture;
  return true;
}

// A reader of some stores is told nothing of the application.
function beginWithStores() {
  document.title = "Stores – kstreams";
  byId("name").textContent = "Stores";
  enter(true);
  openTab("stores");
}

function enter(storesAlone) {
  byId("login").hidden = true;
  byId("application").hidden = false;
  byId("application").classList.toggle("stores-alone", storesAlone);
}

function showLogin(error) {
  clearTimeout(timer);
  byId("application").hidden = true;
  byId("login").hidden = false;
  byId("login-error").textContent = error;
  byId("token").focus();
}

function logOut(reason = "") {
  forgetToken();
  for (const part of [graph, stores, tail]) part.clear();
  [rates, left, seen, chosen, topology, drawn, isSilent, still] = [new Rates(), new Left(), null, null, null, "", false, 0];
  byId("overview").replaceChildren();
  byId("notice").hidden = true;
  document.title = "kstreams";
  showLogin(reason);
}

async function poll() {
  clearTimeout(timer);
  if (!keptToken() || document.hidden) return;
  try {
    const { instances } = await ask("v1/activity");
    if (!topology) return;
    if (isSilent || (seen && seen.instances[0].pid !== instances[0].pid)) await greet();
    show(instances);
    if (!byId("notice").hidden) byId("notice").hidden = true; // quiet: each setting would count as a change
  } catch (error) {
    if (error.status === 401) return logOut("The token holds no longer: the application has started anew.");
    if (topology) fallSilent(error.message);
  }
  timer = setTimeout(poll, still > QUIET_AFTER ? QUIET_MS : EVERY_MS);
}

// What has started again may have another topology.
async function greet() {
  const isAnother = await look();
  isSilent = false;
  if (!isAnother) return;
  for (const part of [stores, tail]) part.clear();
  choose(null);
  openTab("overview");
  fit(false);
}

// Numbers of a moment ago would look like those of now.
function fallSilent(reason) {
  [isSilent, still] = [true, 0];
  notice(reason);
  setText(byId("state"), "SILENT");
  byId("state").classList.remove("good");
  byId("state").classList.add("wrong");
  for (const total of ["total-in", "total-out"]) setText(byId(total), "–");
  if (seen) graph.paint(seen.instances, new Map());
}

function show(instances) {
  const passed = rates.of(instances);
  const moves = [...passed.values()].some((each) => each > 0) || instances.some((each) => each.state !== "RUNNING");
  still = moves ? 0 : still + 1;
  instances[0].counts.push(...left.of(instances));
  seen = { instances, passed };
  graph.paint(instances, passed);
  if (!byId("overview").hidden) overview.show(instances, passed, chosen, topology);
  head(instances, passed);
}

function head(instances, passed) {
  const states = [...new Set(instances.map((each) => each.state))];
  const state = byId("state");
  setText(state, `${states.join(", ")}${instances.length > 1 ? ` · ${plural(instances.length, "instance")}` : ""}`);
  state.classList.toggle("good", states.length === 1 && states[0] === "RUNNING");
  state.classList.toggle("wrong", states.some((each) => each.includes("ERROR")));
  const internal = new Set(topology.internal_topics.map((topic) => topic.name));
  const sources = topology.sub_topologies.flatMap((part) => part.nodes)
    .filter((node) => node.kind === "source" && !node.topics.some((topic) => internal.has(topic)));
  const dropped = instances.flatMap((each) => each.counts).filter((each) => each.kind === "dropped");
  const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);
  setText(byId("total-in"), rate(sum(sources.map((node) => passed.get(`read:${node.name}`) ?? 0))));
  setText(byId("total-out"), rate(sum([...passed].filter(([meter]) => meter.startsWith("written:")).map(([, each]) => each))));
  setText(byId("total-lag"), count(sum(instances.flatMap((each) => each.lags.map((lag) => lag.lag)))));
  const lost = sum(dropped.map((each) => each.count));
  setText(byId("total-dropped"), count(lost));
  byId("total-dropped").classList.toggle("wrong", lost > 0);
}

function notice(text) {
  const others = (seen?.instances ?? []).slice(1).map((each) => each.instance);
  const links = others.flatMap((address) => [" ", element("a",
    { href: `${location.protocol}//${address}/ui#token=${encodeURIComponent(keptToken())}` }, `Go on at ${address}`)]);
  byId("notice").replaceChildren(text, ...links);
  byId("notice").hidden = false;
}

function choose(card) {
  chosen = card;
  graph.choose(card?.id);
  if (card) openTab("overview");
  if (seen) overview.show(seen.instances, seen.passed, chosen, topology);
}

// Back to the card, so that a keyboard goes on from there.
function leave() {
  if (!chosen) return;
  const { id } = chosen;
  choose(null);
  graph.focus(id);
}

const TABS = ["overview", "stores", "tail"];

function openTab(name, wanted) {
  for (const each of TABS) {
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
    tab.tabIndex = each === name ? 0 : -1;
    byId(each).hidden = each !== name;
  }
  if (name === "overview" && seen) overview.show(seen.instances, seen.passed, chosen, topology);
  if (name === "stores") stores.open(wanted).catch((error) => fail(name, error));
  if (name === "tail") tail.open(wanted).catch((error) => fail(name, error));
  else tail.close();
}

const fail = (name, error) => byId(name).replaceChildren(element("p", { class: "error", role: "alert" }, error.message));

function fit(whole) {
  const place = byId("graph");
  const [width, height] = graph.size;
  const across = (place.clientWidth - 16) / width;
  const least = whole ? (place.clientHeight - 16) / height : 1;
  const part = Math.floor(100 * Math.max(whole ? 0 : READABLE, Math.min(1, across, least)));
  byId("zoom").value = part;
  graph.zoom(Number(byId("zoom").value) / 100);
}

for (const name of TABS) {
  byId(`tab-${name}`).addEventListener("click", () => openTab(name));
  byId(`tab-${name}`).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !topology) return;
    const next = TABS[(TABS.indexOf(name) + step + TABS.length) % TABS.length];
    openTab(next);
    byId(`tab-${next}`).focus();
  });
}
byId("zoom").addEventListener("input", (event) => graph.zoom(Number(event.target.value) / 100));
byId("fit").addEventListener("click", () => fit(true));
byId("logout").addEventListener("click", () => logOut());
byId("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  byId("token").value = "";
  begin();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.target.closest("input, select")) leave();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) tail.close();
  else if (topology) {
    if (!byId("tail").hidden) tail.open();
    poll();
  }
});
addEventListener("hashchange", () => {
  takeToken();
  if (!topology) begin();
});

takeToken();
begin();
