// What the page has to say: a banner for what is wrong with the whole view, short notes for what was just done.

import { explained } from "./explain.js";
import { find, h, icon } from "./dom.js";

const NOTE_MS = 6000;

/** A box with an explanation and, where given, a way on. */
export function notice({ title, text }, { kind = "error", action, onAction } = {}) {
  const button = action ? h("button", { type: "button", on: { click: onAction } }, action) : null;
  return h(
    "div",
    { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" },
    icon(kind === "error" ? "alert" : "info"),
    h("div", { class: "notice-text" }, h("strong", {}, title), h("p", {}, text)),
    button,
  );
}

export function showBanner(error, doing, onAction) {
  find("banner").replaceChildren(notice(explained(error, doing), { action: "Try again", onAction }));
}

export function clearBanner() {
  find("banner").replaceChildren();
}

/** A note that goes by itself. */
export function note(text) {
  const shown = h("div", { class: "note" }, icon("check"), text);
  find("notes").append(shown);
  setTimeout(() => shown.remove(), NOTE_MS);
}
