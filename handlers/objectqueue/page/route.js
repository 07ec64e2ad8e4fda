// Where the reader is, kept in the address after "#", so that going back, bookmarks and links work. No key is ever in it.

const DEFAULTS = { view: "tasks", shard: "0", state: "current", page: "0", order: "newest", task: "" };

export function route() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return { ...DEFAULTS, ...given };
}

/** The address of the present place with some changes. */
export function linkTo(changes) {
  const place = { ...route(), ...changes };
  const parameters = Object.entries(place).filter(([name, value]) => name in DEFAULTS && value !== DEFAULTS[name]);
  return `#${new URLSearchParams(parameters)}`;
}

export function goTo(changes) {
  location.hash = linkTo(changes);
}

export function onMove(listener) {
  addEventListener("hashchange", listener);
}
