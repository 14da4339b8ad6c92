// The picture of the topology, with live numbers on its wires, cards and boxes.

import { plural, rate, roughly, setAttribute, setText } from "./dom.js";
import { sumBy } from "./rates.js";
import { beside, isStep } from "./steps.js";

export class Graph {
  #place;
  #onChoice;
  #svg = null;
  #cards = [];

  constructor(place, onChoice) {
    this.#place = place;
    this.#onChoice = onChoice;
  }

  draw(text) {
    const bare = text.replace(/<style>[^<]*<\/style>/, ""); // the page has the same rules as a stylesheet
    this.#svg = document.importNode(new DOMParser().parseFromString(bare, "image/svg+xml").documentElement, true);
    this.#place.replaceChildren(this.#svg);
    this.#cards = [...this.#svg.querySelectorAll(".card")];
    for (const card of this.#cards) this.#open(card);
    this.#cards[0]?.setAttribute("tabindex", "0");
  }

  clear() {
    [this.#svg, this.#cards] = [null, []];
    this.#place.replaceChildren();
  }

  get size() {
    const box = this.#svg.viewBox.baseVal;
    return [box.width, box.height];
  }

  // What is in the middle stays there.
  zoom(part) {
    if (!this.#svg) return;
    const [width, height] = this.size;
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.#place;
    const grown = part / (this.#svg.width.baseVal.value / width);
    this.#svg.setAttribute("width", width * part);
    this.#svg.setAttribute("height", height * part);
    this.#place.scrollTo((scrollLeft + clientWidth / 2) * grown - clientWidth / 2,
      (scrollTop + clientHeight / 2) * grown - clientHeight / 2);
  }

  choose(id) {
    for (const card of this.#cards) {
      card.classList.toggle("chosen", card.dataset.id === id);
      card.setAttribute("aria-pressed", String(card.dataset.id === id));
    }
  }

  #open(card) {
    card.setAttribute("tabindex", "-1"); // one stop for all: arrow keys go on from there
    card.setAttribute("role", "button");
    card.dataset.label = card.getAttribute("aria-label");
    card.dataset.detail = card.querySelector(".detail").textContent;
    card.addEventListener("click", () => this.#onChoice(card.dataset));
    card.addEventListener("focus", () => this.#cards.forEach((each) => each.setAttribute("tabindex", each === card ? "0" : "-1")));
    card.addEventListener("keydown", (event) => {
      const next = isStep(event.key) ? beside(card, this.#cards, event.key) : null;
      if (event.key === "Enter" || event.key === " ") this.#onChoice(card.dataset);
      else if (next) next.focus();
      else return;
      event.preventDefault();
    });
  }

  focus(id) {
    this.#cards.find((card) => card.dataset.id === id)?.focus();
  }

  paint(instances, rates) {
    if (!this.#svg) return;
    this.#wires(rates);
    const counts = instances.flatMap((each) => each.counts);
    const dropped = sumBy(counts.filter((each) => each.kind === "dropped"), (each) => `node:${each.of}`, (each) => each.count);
    const lags = sumBy(instances.flatMap((each) => each.lags), (each) => each.topic, (each) => each.lag);
    const lacking = sumBy(instances.flatMap((each) => each.restores), (each) => `store:${each.store}`, (each) => each.remaining);
    for (const card of this.#cards) this.#card(card, dropped, lags, lacking);
    this.#boxes(instances);
  }

  #wires(rates) {
    for (const place of this.#svg.querySelectorAll(".rate")) {
      const passed = passing(place.dataset.meter, rates);
      setText(place, passed > 0 ? rate(passed) : "");
      const wire = this.#svg.querySelector(`[data-wire="${CSS.escape(place.dataset.rate)}"]`);
      wire.classList.toggle("busy", passed > 0);
    }
  }

  #card(card, dropped, lags, lacking) {
    const { id, name, kind, detail, label } = card.dataset;
    const lost = dropped.get(id) ?? 0;
    const left = lacking.get(id) ?? 0;
    const lag = kind === "topic" ? lagOf(lags, name) : 0;
    const line = card.querySelector(".detail");
    const text = lost ? `${roughly(lost)} dropped` : left ? `restoring ${roughly(left)}` : lag ? `lag ${roughly(lag)}` : detail;
    setText(line, text);
    setAttribute(card, "aria-label", text === detail ? label : `${label}, ${text}`);
    line.classList.toggle("bad", lost > 0);
    line.classList.toggle("late", lost === 0 && (left > 0 || lag > 0));
    if (kind === "topic" && !detail) {
      setAttribute(card.querySelector(".label"), "y", Number(line.getAttribute("y")) - (text ? 14 : 7));
    }
  }

  #boxes(instances) {
    for (const box of this.#svg.querySelectorAll(".title")) {
      const own = instances.map((each) => tasksOf(each, box.dataset.title)).filter((each) => each.tasks > 0);
      const tasks = own.reduce((sum, each) => sum + each.tasks, 0);
      const threads = own.reduce((sum, each) => sum + each.threads, 0);
      const parts = [plural(tasks, "task"), plural(threads, "thread"), own.length > 1 ? plural(own.length, "instance") : ""];
      setText(box.querySelector(".live"), tasks ? parts.filter(Boolean).join(" · ") : "");
    }
  }
}

// What a source passes on is what it reads without what it drops.
function passing(meter, rates) {
  const source = meter?.startsWith("passed:") ? meter.slice("passed:".length) : null;
  if (source === null) return rates.get(meter) ?? 0;
  return Math.max(0, (rates.get(`read:${source}`) ?? 0) - (rates.get(`dropped:${source}`) ?? 0));
}

// Internal topics have the id of the application in front in the log, and none in the picture.
export function lagOf(lags, name) {
  let sum = 0;
  for (const [topic, lag] of lags) if (topic === name || (name.endsWith("-repartition") && topic.endsWith(`-${name}`))) sum += lag;
  return sum;
}

function tasksOf(instance, number) {
  const threads = instance.threads.map((thread) => thread.tasks.filter((task) => task.startsWith(`${number}_`)).length);
  return { tasks: threads.reduce((sum, each) => sum + each, 0), threads: threads.filter((each) => each > 0).length };
}
