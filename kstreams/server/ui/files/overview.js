// What instances do: the chosen card, instances with their tasks, lags, drops, restores.

import { bytes, count, element, patch, plural, rate, table, time } from "./dom.js";
import { lagOf } from "./graph.js";
import { sumBy } from "./rates.js";

export class Overview {
  #place;
  #most = new Map(); // of each restore: the most that was seen to be left

  constructor(place, { onClose, onBrowse }) {
    this.#place = place;
    this.onClose = onClose;
    this.onBrowse = onBrowse;
  }

  show(instances, rates, chosen, topology) {
    patch(this.#place, ...[
      chosen && this.#chosen(instances, rates, chosen, topology), ...this.#restores(instances), ...this.#instances(instances),
      ...this.#lags(instances), ...this.#dropped(instances, rates), ...this.#tasks(instances), ...this.#stores(instances),
    ].filter(Boolean));
  }

  #chosen(instances, rates, chosen, topology) {
    const facts = [["kind", chosen.kind], ...this.#facts(instances, rates, chosen, topology)];
    return element("section", { class: "selected", "aria-label": `Chosen: ${chosen.name}`, "data-key": chosen.id },
      element("header", {}, element("span", { class: "title" }, chosen.name),
        element("button", { type: "button", class: "close", "aria-label": "Close", onclick: this.onClose }, "✕")),
      element("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
      chosen.kind === "store"
        ? element("p", { class: "actions" }, element("button",
          { type: "button", onclick: () => this.onBrowse(chosen.name) }, "Look into it"))
        : null);
  }

  #facts(instances, rates, { kind, name, detail }, topology) {
    if (kind === "topic") {
      const lags = instances.flatMap((each) => each.lags).filter((each) => lagOf([[each.topic, 1]], name));
      const written = rates.get(`written:${name}`) ?? rates.get(`repartitioned:${name}`);
      return [
        ...(written === undefined ? [] : [["written", rate(written)]]),
        ...(lags.length ? [["lag", lags.sort((a, b) => a.partition - b.partition)
          .map((each) => `${each.partition}: ${count(each.lag)}`).join(", ")]] : []),
      ];
    }
    const box = topology.sub_topologies.find((part) =>
      part.nodes.some((node) => node.name === name) || part.stores.some((store) => store.name === name));
    const tasks = instances.flatMap((each) => each.threads.flatMap((thread) => thread.tasks
      .filter((task) => task.startsWith(`${box?.id}_`)).map((task) => `${task} on ${thread.name} at ${each.instance}`)));
    const lost = instances.flatMap((each) => each.counts).filter((each) => each.kind === "dropped" && each.of === name);
    const ratio = Math.max(0, ...instances.map((each) => each.ratios[name] ?? 0));
    const read = rates.get(`read:${name}`);
    return [
      ...(detail ? [[kind === "store" ? "store" : "declared at", detail]] : []),
      ...(read === undefined ? [] : [["read", rate(read)]]),
      ...(ratio > 0 ? [["time", `${(100 * ratio).toFixed(0)} % of its thread`]] : []),
      ...[...sumBy(lost, (each) => each.reason, (each) => each.count)].map(([reason, sum]) => ["dropped", `${count(sum)}: ${reason}`]),
      ["tasks", tasks.length ? element("span", {}, ...tasks.flatMap((task) => [task, element("br")])) : "none here"],
    ];
  }

  #restores(instances) {
    const rows = instances.flatMap((each) => each.restores.map((restore) => ({ ...restore, instance: each.instance })));
    if (!rows.length) {
      this.#most.clear();
      return [];
    }
    const bar = ({ instance, task, store, remaining }) => {
      const key = [instance, task, store].join("\n");
      const most = Math.max(this.#most.get(key) ?? 0, remaining);
      this.#most.set(key, most);
      return element("progress", { max: most, value: most - remaining, "aria-label": `${store} of ${task} is restored` });
    };
    return [element("h2", {}, "Restoring"), table([
      ["store", (row) => row.store], ["task", (row) => row.task], ["", bar], ["left", (row) => count(row.remaining), "number"],
    ], rows, "Restoring")];
  }

  #instances(instances) {
    return [element("h2", {}, plural(instances.length, "instance")), table([
      ["address", (each) => each.instance], ["pid", (each) => (each.pid ? String(each.pid) : "–"), "number"],
      ["state", (each) => each.state], ["threads", (each) => count(each.threads.length), "number"],
      ["tasks", (each) => count(each.threads.reduce((sum, thread) => sum + thread.tasks.length, 0)), "number"],
    ], instances, "Instances")];
  }

  #lags(instances) {
    const rows = instances.flatMap((each) => each.lags).sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition);
    const waiting = rows.filter((each) => each.lag > 0);
    if (!waiting.length) return [element("h2", {}, "Lag"), element("p", { class: "faint" }, "Nothing waits.")];
    return [element("h2", {}, "Lag"), table([
      ["topic", (row) => row.topic], ["partition", (row) => count(row.partition), "number"],
      ["records", (row) => count(row.lag), "number"],
    ], waiting.slice(0, 60), "Lag")];
  }

  #dropped(instances, rates) {
    const rows = instances.flatMap((each) => each.counts).filter((each) => each.kind === "dropped" && each.count > 0);
    const failed = instances.reduce((sum, each) => sum + each.failed_threads, 0);
    const sums = [...sumBy(rows, (row) => `${row.of}\n${row.reason}`, (row) => row.count)].map(([key, sum]) => [...key.split("\n"), sum]);
    const errors = failed ? [element("p", { class: "error" }, `${plural(failed, "thread")} ended by errors.`)] : [];
    if (!sums.length) return [element("h2", {}, "Dropped and failed"), ...errors,
      failed ? null : element("p", { class: "faint" }, "Nothing was dropped.")];
    return [element("h2", {}, "Dropped and failed"), ...errors, table([
      ["operator", ([of]) => of], ["reason", ([, reason]) => reason], ["records", ([, , sum]) => count(sum), "number"],
      ["now", ([of]) => rate(rates.get(`dropped:${of}`) ?? 0), "number"],
    ], sums, "Dropped records")];
  }

  #stores(instances) {
    const sizes = instances.flatMap((each) => each.stores);
    const rows = sumBy(sizes, (each) => each.store, (each) => each.rows);
    const used = sumBy(sizes, (each) => each.store, (each) => each.bytes);
    if (!rows.size) return [];
    return [element("h2", {}, "Stores on disk"), table([
      ["store", ([name]) => name], ["rows, about", ([, sum]) => count(sum), "number"], ["size", ([name]) => bytes(used.get(name)), "number"],
    ], [...rows], "Stores on disk")];
  }

  #tasks(instances) {
    const rows = instances.flatMap((each) => {
      const threads = new Map(each.threads.flatMap((thread) => thread.tasks.map((task) => [task, thread.name])));
      return each.tasks.map((task) => ({ ...task, thread: threads.get(task.task) ?? "–", instance: each.instance }));
    }).sort((a, b) => a.task.localeCompare(b.task, "en", { numeric: true }));
    if (!rows.length) return [];
    return [element("h2", {}, plural(rows.length, "task")), table([
      ["task", (row) => row.task, "tight"], ["thread", (row) => row.thread.replace(/^.*-StreamThread-/, ""), "tight"],
      ...(instances.length > 1 ? [["at", (row) => row.instance, "tight"]] : []), ["stream time", (row) => time(row.stream_time).slice(0, 19), "tight"],
      ["stores", (row) => bytes(row.bytes), "number"],
    ], rows, "Tasks")];
  }
}
