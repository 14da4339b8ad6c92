// What there is to say of the chosen card.

import { bytes, count, element, rate } from "./dom.js";
import { lagOf } from "./graph.js";
import { sumBy } from "./rates.js";

export function chosenCard(chosen, instances, rates, topology, { onClose, onBrowse, onTail }) {
  const { kind, name } = chosen;
  const facts = { topic: ofTopic, store: ofStore }[kind] ?? ofNode;
  const rows = [["kind", kind], ...facts(chosen, instances, rates), ...tasksOf(chosen, instances, topology)];
  const action = { topic: ["Look at its records", onTail], store: ["Look into it", onBrowse] }[kind];
  return element("section", { class: "selected", "aria-label": `Chosen: ${name}`, "data-key": chosen.id },
    element("header", {}, element("span", { class: "title" }, name),
      element("button", { type: "button", class: "close", "aria-label": "Close", onclick: onClose }, "✕")),
    element("dl", { class: "facts" }, ...rows.filter(([, value]) => value !== null)
      .flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)])),
    action && element("p", { class: "actions" }, element("button", { type: "button", onclick: () => action[1](name) }, action[0])));
}

const rateOf = (rates, ...meters) => {
  const known = meters.find((meter) => rates.has(meter));
  return known ? rate(rates.get(known)) : null;
};

function ofTopic({ name }, instances, rates) {
  const lags = instances.flatMap((each) => each.lags).filter((each) => lagOf([[each.topic, 1]], name))
    .sort((one, other) => one.partition - other.partition);
  return [
    ["written", rateOf(rates, `written:${name}`, `repartitioned:${name}`)], ["read", rateOf(rates, `consumed:${name}`)],
    ["lag", lags.map((each) => `${each.partition}: ${count(each.lag)}`).join(", ") || null],
  ];
}

function ofStore({ name, detail }, instances) {
  const sum = (rows, field) => rows.filter((row) => row.store === name).reduce((total, row) => total + row[field], 0);
  const sizes = instances.flatMap((each) => each.stores);
  const left = sum(instances.flatMap((each) => each.restores), "remaining");
  const isOnDisk = sizes.some((each) => each.store === name);
  return [
    ["store", detail], ["rows, about", isOnDisk ? count(sum(sizes, "rows")) : null],
    ["size", isOnDisk ? bytes(sum(sizes, "bytes")) : null], ["to restore", left ? count(left) : null],
  ];
}

function ofNode({ name, detail }, instances, rates) {
  const lost = instances.flatMap((each) => each.counts).filter((each) => each.kind === "dropped" && each.of === name);
  const ratio = Math.max(0, ...instances.map((each) => each.ratios[name] ?? 0));
  return [
    ["declared at", detail || null], ["read", rateOf(rates, `read:${name}`)],
    ["time", ratio > 0 ? `${(100 * ratio).toFixed(0)} % of its thread` : null],
    ...[...sumBy(lost, (each) => each.reason, (each) => each.count)].map(([reason, sum]) => ["dropped", `${count(sum)}: ${reason}`]),
  ];
}

// Thread by thread: an application may have hundreds of tasks.
function tasksOf({ kind, name }, instances, topology) {
  if (kind === "topic") return [];
  const box = topology.sub_topologies.find((part) => part[kind === "store" ? "stores" : "nodes"].some((each) => each.name === name));
  const lines = instances.flatMap((each) => each.threads.map((thread) => {
    const tasks = thread.tasks.filter((task) => task.startsWith(`${box?.id}_`));
    const at = instances.length > 1 ? ` at ${each.instance}` : "";
    return tasks.length ? `${tasks.join(", ")} on ${thread.name.replace(/^.*-(?=StreamThread-)/, "")}${at}` : null;
  })).filter(Boolean);
  return [["tasks", lines.length ? element("span", {}, ...lines.flatMap((line) => [line, element("br")])) : "none here"]];
}
