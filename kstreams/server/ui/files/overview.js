// What instances do: the chosen card, instances with their tasks, lags, drops, restores.

import { chosenCard } from "./chosen.js";
import { bytes, count, element, patch, plural, rate, table, time } from "./dom.js";
import { sumBy } from "./rates.js";

export class Overview {
  #place;
  #actions;
  #most = new Map(); // of each restore: the most that was seen to be left

  constructor(place, actions) {
    this.#place = place;
    this.#actions = actions;
  }

  show(instances, rates, chosen, topology) {
    patch(this.#place, ...[
      chosen && chosenCard(chosen, instances, rates, topology, this.#actions), ...this.#restores(instances), ...this.#instances(instances),
      ...this.#throttled(instances, rates), ...this.#dropped(instances, rates), ...this.#lags(instances), ...this.#tasks(instances), ...this.#stores(instances),
    ].filter(Boolean));
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
    const waiting = instances.flatMap((each) => each.lags).filter((each) => each.lag > 0);
    if (!waiting.length) return [element("h2", {}, "Lag"), element("p", { class: "faint" }, "Nothing waits.")];
    const behind = sumBy(waiting, (each) => each.topic, () => 1);
    const sums = sumBy(waiting, (each) => each.topic, (each) => each.lag);
    return [element("h2", {}, "Lag"), table([
      ["topic", ([topic]) => topic], ["partitions behind", ([topic]) => count(behind.get(topic)), "number"],
      ["records", ([, sum]) => count(sum), "number"],
    ], [...sums].sort(([, one], [, other]) => other - one), "Lag")];
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

  #throttled(instances, rates) {
    const rows = instances.flatMap((each) => each.counts).filter((each) => each.kind === "throttled" && each.count > 0);
    const threads = instances.reduce((sum, each) => sum + each.threads.length, 0) || 1;
    return [...sumBy(rows, (row) => row.of, (row) => row.count)].map(([client, sum]) => {
      const share = Math.min(100, Math.round((rates.get(`throttled:${client}`) ?? 0) / threads / 10));
      const now = share ? `${share} % of the time now, ` : "";
      const text = `Quotas ${share ? "delay" : "delayed"} ${client}: ${now}${(sum / 1000).toFixed(1)} s so far.`;
      return element("p", {}, text);
    });
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
