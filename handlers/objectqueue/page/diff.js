// What differs between two versions, field by field: added, removed, changed, each by its path.

import { h } from "./dom.js";
import { jsonText } from "./json.js";

const TEXT_SHOWN = 600;
const MARKS = { added: "+", removed: "−", changed: "±", same: "" };

/** [{path, kind, before, after}] in the order of the later one; kind is "added", "removed", "changed" or "same". */
export function differences(before, after, path = "") {
  if (before instanceof Map && after instanceof Map) return ofMembers(before, after, path, (name) => (path ? `${path}.${name}` : name));
  if (Array.isArray(before) && Array.isArray(after)) {
    return ofMembers(new Map(before.entries()), new Map(after.entries()), path, (index) => `${path}[${index}]`);
  }
  const same = jsonText(before) === jsonText(after);
  return [{ path, kind: same ? "same" : "changed", before, after }];
}

function ofMembers(before, after, path, pathOf) {
  const found = [];
  for (const [name, value] of after) {
    if (before.has(name)) found.push(...differences(before.get(name), value, pathOf(name)));
    else found.push({ path: pathOf(name), kind: "added", after: value });
  }
  for (const [name, value] of before) {
    if (!after.has(name)) found.push({ path: pathOf(name), kind: "removed", before: value });
  }
  return found.length || !path ? found : [{ path, kind: "same", before, after }];
}

/** The table of some differences; those that are the same only with `all`. */
export function diffTable(found, { all = false } = {}) {
  const rows = found.filter((difference) => all || difference.kind !== "same");
  if (!rows.length) return h("p", { class: "faint" }, "No field differs.");
  return h(
    "table",
    { class: "diff" },
    h("thead", {}, h("tr", {}, ...["Field", "Before", "After"].map((word) => h("th", { scope: "col" }, word)))),
    h("tbody", {}, ...rows.map(row)),
  );
}

function row(difference) {
  const { path, kind } = difference;
  return h(
    "tr",
    { class: kind, data: { path } },
    h("th", { scope: "row" }, mark(kind), path),
    h("td", { class: "before", "data-label": "Before" }, shown(difference, "before")),
    h("td", { class: "after", "data-label": "After" }, shown(difference, "after")),
  );
}

function mark(kind) {
  return h("span", { class: "sign", title: kind }, h("span", { "aria-hidden": "true" }, MARKS[kind]), h("span", { class: "off-screen" }, kind));
}

function shown(difference, side) {
  if (!(side in difference)) return "–";
  const text = jsonText(difference[side]);
  return text.length > TEXT_SHOWN ? `${text.slice(0, TEXT_SHOWN)}… (${text.length} characters)` : text;
}
