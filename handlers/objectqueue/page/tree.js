// A JSON value as a tree that opens and closes. Branches are built when they are opened, so that large values cost nothing.

import { h } from "./dom.js";
import { ExactNumber, jsonText } from "./json.js";

const OPEN_UP_TO = 12;
const CHILDREN_AT_ONCE = 100;
const TEXT_AT_ONCE = 2000;

/** The element of a value; `name` is its key in what surrounds it. */
export function tree(value, name = null, depth = 0) {
  if (!(value instanceof Map) && !Array.isArray(value)) return h("div", { class: "leaf" }, ...label(name), leaf(value));
  const size = Array.isArray(value) ? value.length : value.size;
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (!size) return h("div", { class: "leaf" }, ...label(name), h("span", { class: "punct" }, open + close));
  const count = Array.isArray(value) ? `${size} ${size === 1 ? "item" : "items"}` : `${size} ${size === 1 ? "key" : "keys"}`;
  const branch = h(
    "details",
    { class: "branch" },
    h("summary", {}, ...label(name), h("span", { class: "punct" }, `${open}…${close}`), h("span", { class: "count" }, count)),
  );
  branch.addEventListener("toggle", () => branch.open && fill(branch, value, depth));
  if (depth === 0 || (depth === 1 && size <= OPEN_UP_TO)) {
    fill(branch, value, depth);
    branch.open = true;
  }
  return branch;
}

/** Opens or closes all that is built of a tree. */
export function setOpen(element, open) {
  if (element.matches("details")) element.open = open;
  for (const branch of element.querySelectorAll("details")) branch.open = open;
}

function fill(branch, value, depth) {
  if (branch.querySelector(":scope > .children")) return;
  const members = Array.isArray(value) ? value.map((item, index) => [index, item]) : Array.from(value);
  const children = h("div", { class: "children" });
  branch.append(children);
  showMore(children, members, 0, depth);
}

function showMore(children, members, from, depth) {
  const until = Math.min(from + CHILDREN_AT_ONCE, members.length);
  children.append(...members.slice(from, until).map(([name, item]) => tree(item, name, depth + 1)));
  if (until === members.length) return;
  const more = h("button", { class: "link", type: "button" }, `Show more (${members.length - until} left)`);
  more.addEventListener("click", () => {
    more.remove();
    showMore(children, members, until, depth);
  });
  children.append(more);
}

function label(name) {
  if (name === null) return [];
  return [h("span", { class: typeof name === "number" ? "index" : "key" }, String(name)), h("span", { class: "punct" }, ": ")];
}

function leaf(value) {
  if (typeof value === "string") return textLeaf(JSON.stringify(value));
  const kind = value === null ? "null" : typeof value === "boolean" ? "boolean" : "number";
  return h("span", { class: kind }, value instanceof ExactNumber ? value.text : jsonText(value));
}

function textLeaf(text) {
  if (text.length <= TEXT_AT_ONCE) return h("span", { class: "string" }, text);
  const shown = h("span", { class: "string" }, text.slice(0, TEXT_AT_ONCE));
  const more = h("button", { class: "link", type: "button" }, `… ${text.length - TEXT_AT_ONCE} more characters`);
  more.addEventListener("click", () => {
    shown.textContent = text;
    more.remove();
  });
  return h("span", {}, shown, more);
}
