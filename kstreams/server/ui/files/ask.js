// Questions to the server. The token is kept for this tab alone, and goes into one header.

const KEPT = "kstreams-token";

export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

// The token behind `#token=`, which no browser sends, is taken out of the address.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEPT);
}

export const keepToken = (token) => sessionStorage.setItem(KEPT, token);
export const forgetToken = () => sessionStorage.removeItem(KEPT);
export const keptToken = () => sessionStorage.getItem(KEPT);

async function answer(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = new URLSearchParams(given).toString();
  let found;
  try {
    found = await fetch(query ? `${path}?${query}` : path, {
      headers: { Authorization: `Bearer ${keptToken()}` }, cache: "no-store", credentials: "omit",
      signal: AbortSignal.timeout(20_000),
    });
  } catch {
    throw new Refused(0, `${location.host} does not answer.`);
  }
  if (found.ok) return found;
  const said = await found.json().catch(() => ({ error: found.statusText }));
  throw new Refused(found.status, said.error);
}

export const ask = async (path, parameters = {}) => (await answer(path, parameters)).json();
export const askRows = async (path, parameters = {}) => JSON.parse(await askText(path, parameters), exact);
export const askText = async (path, parameters = {}) => (await answer(path, parameters)).text();

// Whole numbers of 64 bits are more than a number of JavaScript can hold.
function exact(name, value, context) {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  return /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value;
}
