// Looks into stores: by key, prefix, range, window and as of a time, page after page.

import { ask, askRows } from "./ask.js";
import { count, element, moment, plural, shown, table } from "./dom.js";

const TIMES = ["from", "to", "as_of"];
const FIELDS = {
  "key-value": ["prefix", "low", "high"], window: ["low", "high", ...TIMES], session: ["low", "high", ...TIMES], versioned: TIMES,
};
const SHORT = 9;
const WIDE = ["key", "prefix"];
const LABELS = {
  key: "Key", prefix: "Keys that begin with", low: "First key", high: "Last key", from: "From (time)", to: "To (time)", as_of: "As of (time)",
};

export class Stores {
  #place;
  #stores = [];
  #chosen = null;
  #turn = 0; // answers to questions of an earlier turn come too late
  #select = element("select", { id: "store-name", onchange: () => this.open(this.#select.value) });
  #result = element("div", { "aria-live": "polite" });

  constructor(place) {
    this.#place = place;
  }

  async open(name) {
    if (!this.#stores.length) await this.#list();
    if (!this.#stores.length) return;
    const asked = this.#stores.find((store) => store.name === name);
    if (name && !asked) this.#refuse(name);
    else if (asked || !this.#chosen) this.#choose(asked ?? this.#stores[0]);
  }

  clear() {
    this.#turn += 1;
    [this.#stores, this.#chosen] = [[], null];
    for (const place of [this.#select, this.#result, this.#place]) place.replaceChildren();
  }

  async #list() {
    this.#stores = (await ask("v1/stores")).stores;
    this.#select.replaceChildren(...this.#stores.map((store) => element("option", {}, store.name)));
    this.#place.replaceChildren(this.#stores.length
      ? element("form", { class: "question" }, element("label", { class: "wide" }, "Store", this.#select))
      : element("p", { class: "faint" }, "No store of this application is declared queryable: ks.Materialized(\"name\", queryable=True)."));
  }

  #refuse(name) {
    this.#chosen = null;
    this.#select.selectedIndex = -1;
    this.#put(element("p", { class: "faint" }, `The store ${name} is not declared queryable: ks.Materialized("${name}", queryable=True).`));
  }

  // What stands below the choice of a store, which keeps the focus.
  #put(...parts) {
    while (this.#place.children.length > 1) this.#place.lastChild.remove();
    this.#place.append(...parts);
  }

  #choose(store) {
    this.#chosen = store;
    this.#select.value = store.name;
    this.#turn += 1;
    this.#result.replaceChildren();
    const fields = ["key", ...FIELDS[store.kind.replace("timestamped-", "")] ?? []];
    const inputs = fields.map((name) => element("label", { class: WIDE.includes(name) ? "wide" : "" }, LABELS[name],
      element("input", { id: `ask-${name}`, name, autocomplete: "off", spellcheck: "false",
        placeholder: TIMES.includes(name) ? "2026-01-31T12:00Z or ms" : "" })));
    const form = element("form", { class: "question", onsubmit: (event) => this.#submit(event, form) }, ...inputs,
      element("div", { class: "actions wide" }, element("button", { type: "submit", class: "primary", id: "ask" }, "Look up"),
        element("span", { class: "faint" }, `${store.kind}, ${store.key ?? "?"} → ${store.value ?? "?"}`)));
    this.#put(form, this.#result);
  }

  #submit(event, form) {
    event.preventDefault();
    try {
      const given = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== "")
        .map(([name, value]) => [name, TIMES.includes(name) ? milliseconds(value) : value]));
      this.#ask(given, []);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #ask({ key, ...given }, before) {
    this.#turn += 1;
    const turn = this.#turn;
    const isolation = this.#chosen.kept_in === "rocksdb" ? {} : { isolation: "read_uncommitted" };
    const cursor = before.length ? { cursor: before.at(-1) } : {};
    try {
      const page = await askRows(...this.#target(key, { limit: 50, ...given, ...isolation, ...cursor }));
      if (turn === this.#turn) this.#show(page, { key, ...given }, before);
    } catch (error) {
      if (turn === this.#turn) this.#fail(error);
    }
  }

  // Browsers take `.` and `..` out of a path, however they are written.
  #target(key, given) {
    const place = `v1/stores/${encodeURIComponent(this.#chosen.name)}`;
    if (key === "." || key === "..") return [`${place}/rows`, { ...given, low: key, high: key }];
    return [key === undefined ? `${place}/rows` : `${place}/keys/${encodeURIComponent(key)}`, given];
  }

  #show(page, given, before) {
    const isLong = page.rows.some((row) => shown(row.value).length > SHORT); // then times may go out of sight
    const has = (name) => page.rows.some((row) => row[name] !== undefined);
    const columns = [
      ["key", (row) => shown(row.key), "mono"], ["value", (row) => shown(row.value), isLong ? "mono value" : "mono"],
      ...[["window_start", "window from"], ["window_end", "to"], ["valid_from", "valid from"], ["valid_to", "to"], ["timestamp", "time"]]
        .filter(([name]) => has(name)).map(([name, heading]) => [heading, (row) => (row[name] === null ? "now" : moment(row[name]))]),
    ];
    const step = (word, cursors, id) => element("button", { type: "button", id, onclick: () => this.#ask(given, cursors) }, word);
    const pages = element("div", { class: "actions" },
      before.length ? step("Back", before.slice(0, -1), "page-back") : null,
      page.next ? step("Next page", [...before, page.next], "page-next") : null,
      element("span", { class: "faint" }, `${plural(page.rows.length, "row")}${page.next ? ", and more" : ""}`));
    const from = Object.values(page.instances).filter((each, at, all) => all.indexOf(each) === at).join(", ");
    const position = Object.entries(page.position).map(([source, offset]) => `${source}: ${count(offset)}`).join(", ");
    this.#result.replaceChildren(
      page.rows.length ? table(columns, page.rows, "Rows") : element("p", { class: "faint" }, "There is no such row."), pages,
      element("p", { class: "source" }, `${page.isolation}, from ${from || "nobody"}${position ? ` · up to ${position}` : ""}`));
  }

  #fail(error) {
    this.#result.replaceChildren(element("p", { class: "error", role: "alert" }, error.message));
  }
}

function milliseconds(text) {
  const found = /^-?\d+$/.test(text.trim()) ? Number(text) : Date.parse(text);
  if (Number.isNaN(found)) throw new Error(`${text} is no time: write 2026-01-31T12:00Z, or milliseconds since 1970`);
  return found;
}
