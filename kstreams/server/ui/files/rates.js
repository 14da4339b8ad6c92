// From counters of instances to records per second: differences between two polls, each over its instance's own clock.

export class Rates {
  #before = new Map();

  // What passes each meter (`read:NODE`, `written:TOPIC`) per second; one that is seen for the first time has no rate yet.
  of(instances) {
    const now = new Map();
    const found = new Map();
    for (const instance of instances) {
      for (const counted of instance.counts) {
        const meter = `${counted.kind}:${counted.of}`;
        const key = [instance.instance, instance.pid, meter, counted.by, counted.reason].join("\n");
        const before = this.#before.get(key);
        now.set(key, { count: counted.count, seconds: instance.seconds });
        const seconds = before ? instance.seconds - before.seconds : 0;
        const gone = before && seconds > 0 ? Math.max(0, counted.count - before.count) / seconds : 0;
        found.set(meter, (found.get(meter) ?? 0) + gone);
      }
    }
    this.#before = now;
    return found;
  }
}

// What tasks have dropped stays dropped when they go elsewhere and count from 0 there: this tells what is counted no longer.
export class Left {
  #last = new Map(); // of each counter: what it counts, and how far it was
  #left = new Map();

  of(instances) {
    const now = new Set();
    for (const { instance, pid, counts } of instances) {
      for (const { kind, of, by, reason, count } of counts) {
        if (kind !== "dropped") continue;
        const [what, key] = [`${of}\n${reason}`, [instance, pid, of, by, reason].join("\n")];
        const last = this.#last.get(key)?.count ?? 0;
        if (count < last) this.#left.set(what, (this.#left.get(what) ?? 0) + last); // the task has come back
        this.#last.set(key, { of, reason, count });
        now.add(key);
      }
    }
    const left = [...this.#left].map(([what, count]) => ({ of: what.split("\n")[0], reason: what.split("\n")[1], count }));
    const gone = [...this.#last].filter(([key]) => !now.has(key)).map(([, counted]) => counted);
    return [...left, ...gone].map((counted) => ({ kind: "dropped", by: "", ...counted }));
  }
}

export function sumBy(rows, key, value) {
  const found = new Map();
  for (const row of rows) found.set(key(row), (found.get(key(row)) ?? 0) + value(row));
  return found;
}
