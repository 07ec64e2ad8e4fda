// Replay, Archive and whatever else the spec lets the page do: one conditional write, then the index entry, never a delete.

import { diffTable, differences } from "./diff.js";
import { h } from "./dom.js";
import { parseJson } from "./json.js";
import { NoAnswer, S3Error } from "./s3.js";
import { actionWord, afterEdge, rules, taskKey } from "./tasks.js";

const CONFLICTS = new Set([404, 409, 412]);

/** A conflicting write: the task was changed since it was read. */
export class Conflict extends Error {}

/**
 * Takes an edge, on the condition that the task is still the one that was seen. Answers {hidden: error} where the task was
 * written but its index entry was not. Throws Conflict after a conflicting write.
 */
export async function takeEdge(bucket, task, edge) {
  // The microseconds are made up, so that two pages that write in the same millisecond never write the same bytes.
  const now = Math.floor(bucket.clock.now()) * 1000 + Math.floor(Math.random() * 1000);
  const next = afterEdge(task, edge, now);
  const retag = () => Promise.all(next.retagged.map(({ key, version }) => bucket.tag(key, next.tags, version)));
  // Large data goes when its task goes: it is kept before the task is back for good, and given up after the task was.
  if (!next.tags) await retag();
  try {
    await bucket.put(taskKey(task.id), next.text, { etag: task.etag, tags: next.tags });
  } catch (error) {
    const refused = error instanceof S3Error && CONFLICTS.has(error.status);
    const unsure = error instanceof NoAnswer || (error instanceof S3Error && error.status >= 500);
    if (!refused && !unsure) throw error;
    const found = await bucket.get(taskKey(task.id));
    if (unsure && found?.etag === task.etag) throw error;
    if (!isOurs(found, next)) throw new Conflict();
  }
  if (next.tags) await retag().catch(() => {});
  try {
    for (const entry of next.entries) await bucket.put(entry.key, entry.text);
    return { hidden: null };
  } catch (error) {
    return { hidden: error };
  }
}

/** Shows what an edge would write and asks; resolves to whether to go on. */
export function confirmed(bucket, task, edge) {
  const next = parseJson(afterEdge(task, edge, Math.floor(bucket.clock.now()) * 1000).text);
  const yes = h("button", { id: "confirm-yes", class: "primary", value: "yes" }, actionWord(edge));
  const dialog = h(
    "dialog",
    { id: "confirm", "aria-labelledby": "confirm-title" },
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "confirm-title" }, `${actionWord(edge)} this task?`),
      h("p", {}, edge.doc ?? ""),
      h("p", { class: "faint" }, "This is what will be written, if nobody else changes the task first:"),
      diffTable(differences(task.fields, next)),
      h("div", { class: "actions" }, h("button", { value: "" }, "Leave it as it is"), yes),
    ),
  );
  document.getElementById("confirm")?.remove(); // One that was closed a moment ago may still be there.
  document.body.append(dialog);
  dialog.showModal();
  yes.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

// Only the object itself shows which write won: an answer may be lost, and browsers repeat a request whose connection broke,
// so that even a refusal may mean that the first of two equal writes was done.
function isOurs(found, next) {
  const ours = parseJson(next.text);
  try {
    const theirs = parseJson(found?.text ?? "");
    return [rules.revision, rules.updated, rules.state].every((name) => theirs.get(name) === ours.get(name));
  } catch {
    return false;
  }
}
