// The states of the spec: as small steps above a task, and with their meaning beside the drawn lifecycle.

import { badge, find, h } from "./dom.js";
import { spec } from "./spec.js";
import { actionWord, rules } from "./tasks.js";

/** All states in a row, with the present one marked. */
export function drawSteps(place, present) {
  place.replaceChildren(
    ...rules.states.map((state) =>
      h(
        "li",
        { data: { state: state.word.toLowerCase() }, title: state.doc, "aria-current": state.name === present.name ? "step" : false },
        state.word,
      ),
    ),
  );
}

/** What the states mean and what leads from one to another. */
export function drawLegend() {
  find("states").replaceChildren(...rules.states.map(stateRow));
}

function stateRow(state) {
  const edges = rules.edges.filter((edge) => edge.from.includes(state.name));
  return h("li", {}, h("div", { class: "state-head" }, badge(state.word), h("p", {}, state.doc)), h("ul", {}, ...edges.map(edgeLine)));
}

function edgeLine(edge) {
  const target = rules.states.find((state) => state.name === edge.to);
  const here = edge.by.includes(spec.principal);
  return h(
    "li",
    {},
    h("span", { class: "edge-name" }, here ? actionWord(edge) : edge.name.replaceAll("_", " ")),
    h("span", { class: "faint" }, " → "),
    badge(target.word),
    h("span", { class: "faint" }, ` by ${edge.by.join(", ")}`),
  );
}
