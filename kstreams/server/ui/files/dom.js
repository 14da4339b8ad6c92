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

export function setAttribute(place, name, value) {
  if (place.getAttribute(name) !== String(value)) place.setAttribute(name, value);
}

// Makes a place show new children, and leaves alone what is the same: a selection, the focus and a click that has begun stay.
// Listeners stay too: what has others needs another `data-key`.
export function patch(place, ...children) {
  const before = [...place.childNodes];
  children.forEach((child, at) => {
    if (at >= before.length) place.append(child);
    else if (isAlike(before[at], child)) update(before[at], child);
    else before[at].replaceWith(child);
  });
  for (const left of before.slice(children.length)) left.remove();
}

const isAlike = (old, made) => old.nodeName === made.nodeName && old.dataset?.key === made.dataset?.key;

function update(old, made) {
  if (old.nodeType === Node.TEXT_NODE) return setText(old, made.textContent);
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of made.attributes) setAttribute(old, name, value);
  patch(old, ...made.childNodes);
}

export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const count = (number) => whole.format(number);

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

// In few characters, for a card.
export const roughly = (number) => (number < 10_000 ? count(number) : compact.format(number));

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

// A time that breaks between date and hour, if it has to.
export function moment(milliseconds) {
  const parts = time(milliseconds).split(" ").map((part) => element("span", { class: "tight" }, part));
  return element("span", {}, ...parts.flatMap((part, at) => (at ? [" ", part] : [part])));
}

export function shown(value, longest = 400) {
  const text = typeof value === "string" ? value : JSON.stringify(value, written);
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

const written = (name, value) => (typeof value === "bigint" ? JSON.rawJSON(String(value)) : value);

// A row of such a table as the next function makes.
export const line = (columns, row) => element("tr", {}, ...columns.map(([, cell, kind]) => element("td", { class: kind }, cell(row))));

// A table whose columns are [heading, row => text or element, class].
export function table(columns, rows, caption) {
  const heads = columns.map(([heading, , kind]) => element("th", { scope: "col", class: kind }, heading));
  const lines = rows.map((row) => line(columns, row));
  const made = element("table", { "aria-label": caption },
    element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines));
  return element("div", { class: "rows" }, made);
}
