// Elements of the page, made without any HTML from texts, and numbers as people read them.

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function setText(place, text) {
  if (place.textContent !== text) place.textContent = text; // quiet: a reader hears of changes alone
}

export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (number) => whole.format(number);

export function rate(number) {
  if (number >= 100_000) return `${whole.format(number / 1000)}k/s`;
  return number >= 10 || number === 0 ? `${whole.format(number)}/s` : `${number.toFixed(1)}/s`;
}

export function bytes(number) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; number >= 1000 && unit < units.length - 1; unit += 1) number /= 1000;
  return `${unit === 0 || number >= 100 ? whole.format(number) : number.toFixed(1)} ${units[unit]}`;
}

export function time(milliseconds) {
  if (milliseconds === undefined || milliseconds === null || milliseconds < 0) return "–";
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? `${milliseconds} ms` : date.toISOString().replace("T", " ").replace(/(\.000)?Z$/, "");
}

export function shown(value, longest = 400) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

// A table whose columns are [heading, row => text or element, class].
export function table(columns, rows, caption) {
  const heads = columns.map(([heading, , kind]) => element("th", { scope: "col", class: kind }, heading));
  const lines = rows.map((row) =>
    element("tr", {}, ...columns.map(([, cell, kind]) => element("td", { class: kind }, cell(row)))));
  const made = element("table", { "aria-label": caption },
    element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines));
  return element("div", { class: "rows" }, made);
}
