// Building the page. Everything that comes out of the bucket gets here as text and stays text.

import { localTime, relative } from "./time.js";

const SVG = "http://www.w3.org/2000/svg";

export function find(id) {
  return document.getElementById(id);
}

/** An element; properties are attributes, except `class`, `on` (listeners) and `data` (data attributes). */
export function h(tag, { class: names, on = {}, data = {}, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (names) element.className = names;
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A drawing from the sprite in index.html. */
export function icon(name) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("class", "icon");
  drawing.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#icon-${name}`);
  drawing.append(use);
  return drawing;
}

export function badge(word) {
  return h("span", { class: "badge", data: { state: word.toLowerCase() } }, word);
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Brings the children of `parent` in line with `items`, keeping the elements of those that stay, so that focus, scrolling and
 * open parts survive. `create(item)` makes an element, `update(element, item)` fills it.
 */
export function reconcile(parent, items, { key, create, update }) {
  const before = new Map(Array.from(parent.children, (element) => [element.dataset.key, element]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let element = before.get(name);
    before.delete(name);
    if (!element) {
      element = create(item);
      element.dataset.key = name;
    }
    update?.(element, item);
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
  for (const element of before.values()) element.remove();
}

const ticking = new Map();
let clock = { now: () => Date.now() };

/** Calls `show(element, now)` now and every second as long as the element is on the page; `now` is in microseconds. */
export function tick(element, show) {
  ticking.set(element, show);
  show(element, clock.now() * 1000);
  return element;
}

export function startTicking(storeClock) {
  clock = storeClock;
  setInterval(() => {
    for (const [element, show] of ticking) {
      if (element.isConnected) show(element, clock.now() * 1000);
      else ticking.delete(element);
    }
  }, 1000);
}

/** A time relative to now, with the exact time as its title; clocks that differ a little make no past one a future one. */
export function moment(micros, { past = false } = {}) {
  if (micros === null) return h("span", { class: "faint" }, "–");
  const element = h("time", { datetime: new Date(micros / 1000).toISOString(), title: localTime(micros) });
  return tick(element, (shown, now) => setText(shown, relative((past ? Math.min(0, micros - now) : micros - now) / 1e6)));
}

/** A button that copies a text. */
export function copyButton(text, label) {
  const button = h("button", { class: "ghost small", type: "button", title: label, "aria-label": label }, icon("copy"));
  button.addEventListener("click", async () => {
    button.dataset.done = (await copied(text)) ? "yes" : "no";
    setTimeout(() => delete button.dataset.done, 1500);
  });
  return button;
}

// The clipboard of the browser is there only on https and localhost.
async function copied(text) {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const area = h("textarea", { class: "off-screen", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
