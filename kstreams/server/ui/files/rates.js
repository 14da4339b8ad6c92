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

export function sumBy(rows, key, value) {
  const found = new Map();
  for (const row of rows) found.set(key(row), (found.get(key(row)) ?? 0) + value(row));
  return found;
}
