// The picture of the topology, with live numbers on its wires, cards and boxes.

import { plural, rate, roughly, setAttribute, setText } from "./dom.js";
import { sumBy } from "./rates.js";

export class Graph {
  #place;
  #onChoice;
  #svg = null;

  constructor(place, onChoice) {
    this.#place = place;
    this.#onChoice = onChoice;
  }

  draw(text) {
    const bare = text.replace(/<style>[^<]*<\/style>/, ""); // the page has the same rules as a stylesheet
    this.#svg = document.importNode(new DOMParser().parseFromString(bare, "image/svg+xml").documentElement, true);
    this.#place.replaceChildren(this.#svg);
    for (const card of this.#svg.querySelectorAll(".card")) this.#open(card);
  }

  clear() {
    this.#svg = null;
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
    for (const card of this.#svg?.querySelectorAll(".card") ?? []) {
      card.classList.toggle("chosen", card.dataset.id === id);
      card.setAttribute("aria-pressed", String(card.dataset.id === id));
    }
  }

  #open(card) {
    card.setAttribute("tabindex", "0");
    card.setAttribute("role", "button");
    card.dataset.detail = card.querySelector(".detail").textContent;
    card.addEventListener("click", () => this.#onChoice(card.dataset));
    card.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.#onChoice(card.dataset);
    });
  }

  paint(instances, rates) {
    if (!this.#svg) return;
    this.#wires(rates);
    const counts = instances.flatMap((each) => each.counts);
    const dropped = sumBy(counts.filter((each) => each.kind === "dropped"), (each) => `node:${each.of}`, (each) => each.count);
    const lags = sumBy(instances.flatMap((each) => each.lags), (each) => each.topic, (each) => each.lag);
    const lacking = sumBy(instances.flatMap((each) => each.restores), (each) => `store:${each.store}`, (each) => each.remaining);
    for (const card of this.#svg.querySelectorAll(".card")) this.#card(card, dropped, lags, lacking);
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
    const { id, name, kind, detail } = card.dataset;
    const lost = dropped.get(id) ?? 0;
    const left = lacking.get(id) ?? 0;
    const lag = kind === "topic" ? lagOf(lags, name) : 0;
    const line = card.querySelector(".detail");
    const text = lost ? `${roughly(lost)} dropped` : left ? `restoring ${roughly(left)}` : lag ? `lag ${roughly(lag)}` : detail;
    setText(line, text);
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
