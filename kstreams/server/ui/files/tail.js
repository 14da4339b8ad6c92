// The last records of a topic, and those that come.

import { ask, askRows } from "./ask.js";
import { count, element, line, moment, setText, shown, table } from "./dom.js";

const KEPT = 200;
const EVERY_MS = 1_000;
const COLUMNS = [
  ["time", (row) => moment(row.timestamp)], ["at", (row) => `${row.partition}@${row.offset}`, "tight"],
  ["key", (row) => shown(row.key, 120), "mono"], ["value", (row) => shown(row.value, 300), "mono value"],
];

export class Tail {
  #place;
  #topic = null;
  #next = null;
  #timer = null;
  #turn = 0; // answers to questions of an earlier turn come too late
  #isPaused = false;
  #button = element("button", { type: "button", id: "pause", onclick: () => this.#pause(!this.#isPaused) });
  #rows = element("div", {});
  #said = element("p", { class: "source", role: "status" });

  constructor(place) {
    this.#place = place;
  }

  async open(topic) {
    if (!this.#topic) await this.#list();
    const select = this.#place.querySelector("select");
    if (!select) return;
    if (topic) select.value = topic;
    if (select.value) this.#choose(select.value);
    else this.#refuse(topic);
  }

  close() {
    clearTimeout(this.#timer);
    this.#turn += 1;
  }

  clear() {
    this.close();
    [this.#topic, this.#next] = [null, null];
    this.#rows.replaceChildren();
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
      ...topics.map((topic) => element("option", {}, topic)));
    this.#place.replaceChildren(element("form", { class: "question" }, element("label", { class: "wide" }, "Topic", select)),
      element("div", { class: "actions" }, this.#button, this.#said), this.#rows);
  }

  #refuse(topic) {
    this.close();
    this.#topic = null;
    this.#rows.replaceChildren(element("p", { class: "faint" },
      `The records of ${topic} may not be looked at here: the setting server.tail.topics does not name it.`));
  }

  #choose(topic) {
    if (topic !== this.#topic) {
      [this.#topic, this.#next] = [topic, null];
      this.#rows.replaceChildren();
      this.#pause(false);
    } else this.#again();
  }

  #pause(isPaused) {
    this.#isPaused = isPaused;
    this.#button.setAttribute("aria-pressed", String(isPaused));
    setText(this.#button, isPaused ? "Go on" : "Pause");
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
    setText(this.#said, skipped ? `${count(skipped)} records were left out: they come faster than they are shown.` : "");
    if (!records.length && this.#rows.hasChildNodes()) return;
    const newest = [...records].sort((a, b) => b.timestamp - a.timestamp || b.offset - a.offset);
    const body = this.#rows.querySelector("tbody");
    if (!body) {
      this.#rows.replaceChildren(newest.length ? table(COLUMNS, newest, `Records of ${this.#topic}`)
        : element("p", { class: "faint" }, "The topic is empty."));
      return;
    }
    body.prepend(...newest.map((record) => line(COLUMNS, record)));
    while (body.rows.length > KEPT) body.lastChild.remove();
  }
}
