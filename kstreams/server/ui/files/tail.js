// The last records of a topic, and those that come.

import { ask, askRows } from "./ask.js";
import { count, element, moment, shown, table } from "./dom.js";

const KEPT = 200;
const EVERY_MS = 1_000;

export class Tail {
  #place;
  #topic = null;
  #next = null;
  #records = [];
  #timer = null;
  #turn = 0; // answers to questions of an earlier turn come too late
  #isPaused = false;
  #rows = element("div", {});
  #said = element("p", { class: "source", role: "status" });

  constructor(place) {
    this.#place = place;
  }

  async open() {
    if (this.#topic) this.#again();
    else await this.#list();
  }

  close() {
    clearTimeout(this.#timer);
    this.#turn += 1;
  }

  clear() {
    this.close();
    [this.#topic, this.#next, this.#records, this.#isPaused] = [null, null, [], false];
    this.#place.replaceChildren();
  }

  async #list() {
    const { topics } = await ask("v1/topics");
    if (!topics.length) {
      this.#place.replaceChildren(element("p", { class: "faint" },
        "The records of no topic may be looked at here. Name topics in the setting server.tail.topics, or all: "),
        element("p", {}, element("code", {}, "kstreams run app.py --serve -c 'server.tail.topics=*'")));
      return;
    }
    const select = element("select", { id: "topic-name", onchange: () => this.#choose(select.value) },
      ...topics.map((topic) => element("option", { value: topic }, topic)));
    const pause = element("button", { type: "button", id: "pause", "aria-pressed": "false", onclick: () => this.#pause(pause) }, "Pause");
    this.#place.replaceChildren(element("form", { class: "question" }, element("label", { class: "wide" }, "Topic", select)),
      element("div", { class: "actions" }, pause, this.#said), this.#rows);
    this.#choose(topics[0]);
  }

  #choose(topic) {
    [this.#topic, this.#next, this.#records] = [topic, null, []];
    this.#rows.replaceChildren();
    this.#again();
  }

  #pause(button) {
    this.#isPaused = !this.#isPaused;
    button.setAttribute("aria-pressed", String(this.#isPaused));
    button.textContent = this.#isPaused ? "Go on" : "Pause";
    this.#again();
  }

  #again() {
    this.close();
    if (this.#topic && !this.#isPaused) this.#look();
  }

  async #look() {
    const turn = this.#turn;
    try {
      const after = this.#next ? { after: JSON.stringify(this.#next) } : {};
      const page = await askRows(`v1/topics/${encodeURIComponent(this.#topic)}/tail`, after);
      if (turn !== this.#turn) return;
      this.#next = page.next;
      this.#add(page);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#said.textContent = error.message;
    }
    this.#timer = setTimeout(() => this.#look(), EVERY_MS);
  }

  #add({ records, skipped }) {
    this.#said.textContent = skipped ? `${count(skipped)} records were left out: they come faster than they are shown.` : "";
    if (!records.length && this.#rows.hasChildNodes()) return;
    const newest = [...records].sort((a, b) => b.timestamp - a.timestamp || b.offset - a.offset);
    this.#records = [...newest, ...this.#records].slice(0, KEPT);
    this.#rows.replaceChildren(this.#records.length ? table([
      ["time", (row) => moment(row.timestamp)], ["at", (row) => `${row.partition}@${row.offset}`, "tight"],
      ["key", (row) => shown(row.key, 120), "mono"], ["value", (row) => shown(row.value, 300), "mono value"],
    ], this.#records, `Records of ${this.#topic}`) : element("p", { class: "faint" }, "The topic is empty."));
  }
}
