// The history of a task: the versions of its object, what happened at each, and what differs between two of them.

import { diffTable, differences } from "./diff.js";
import { badge, find, h, moment, reconcile, setText } from "./dom.js";
import { Corrupt, Task, rules } from "./tasks.js";
import { span } from "./time.js";

const READ_AT_ONCE = 30;
const PARALLEL = 6;

export class Timeline {
  #versions = []; // newest first
  #bodies = new Map(); // versions never change, so each is read once: version -> Task, or the reason why it is none
  #chosen = null; // the two versions that the reader compares; null = the newest two
  #shown = READ_AT_ONCE;
  #closed = false;

  constructor(bucket, key) {
    this.bucket = bucket;
    this.key = key;
    this.list = find("timeline");
    find("older-versions").onclick = () => {
      this.#shown += READ_AT_ONCE;
      this.#show();
    };
    find("all-fields").onchange = () => this.#showDiff();
    this.list.onchange = (event) => this.#choose(event.target);
    this.list.replaceChildren();
    find("diff").replaceChildren();
  }

  /** Reads the versions that are not known yet. */
  async refresh() {
    this.#versions = await this.bucket.versions(this.key);
    await this.#show();
  }

  /** Another task is shown now: whatever is still being read comes too late. */
  close() {
    this.#closed = true;
  }

  async #show() {
    const visible = this.#versions.slice(0, this.#shown + 1); // one more, to tell what the oldest one changed
    const missing = visible.filter(({ version }) => !this.#bodies.has(version));
    const reader = async () => {
      for (let next = missing.shift(); next; next = missing.shift()) await this.#read(next);
    };
    await Promise.all(Array.from({ length: PARALLEL }, reader));
    if (this.#closed) return;
    const count = this.#versions.length;
    setText(find("timeline-count"), count === 1 ? "1 version" : `${count.toLocaleString()} versions`);
    find("older-versions").hidden = count <= this.#shown;
    find("all-fields-part").hidden = count < 2;
    this.#render();
  }

  async #read({ version }) {
    const found = await this.bucket.get(this.key, { version });
    try {
      this.#bodies.set(version, found ? new Task(found.text, found) : "this version is gone");
    } catch (error) {
      if (!(error instanceof Corrupt)) throw error;
      this.#bodies.set(version, error.message);
    }
  }

  #render() {
    const entries = this.#versions.slice(0, this.#shown).map((entry, index) => ({
      ...entry,
      number: this.#versions.length - index,
      task: this.#bodies.get(entry.version),
      before: this.#bodies.get(this.#versions[index + 1]?.version),
    }));
    const pair = this.#pair();
    reconcile(this.list, entries, {
      key: (entry) => entry.version,
      create: entryElement,
      update: (element, entry) => {
        element.querySelector("input").checked = pair.includes(entry.version);
      },
    });
    this.#showDiff();
  }

  #pair() {
    return this.#chosen ?? this.#versions.slice(0, 2).map(({ version }) => version);
  }

  // Two are compared: one more pushes out the one that was chosen first.
  #choose(box) {
    const pair = this.#pair().filter((version) => version !== box.value);
    this.#chosen = box.checked ? [...pair, box.value].slice(-2) : pair;
    this.#render();
  }

  #showDiff() {
    const order = new Map(this.#versions.map(({ version }, index) => [version, this.#versions.length - index]));
    const [before, after] = this.#pair().toSorted((one, other) => order.get(one) - order.get(other));
    const place = find("diff");
    if (!after) {
      const why = this.#versions.length < 2 ? "There is only one version so far." : "Choose two versions to compare.";
      place.replaceChildren(h("p", { class: "faint" }, why));
      return;
    }
    const [one, other] = [before, after].map((version) => this.#bodies.get(version));
    const title = h("h4", {}, `Version ${order.get(before)} compared with version ${order.get(after)}`);
    if (!(one instanceof Task && other instanceof Task)) {
      place.replaceChildren(title, h("p", { class: "faint" }, "One of the two is not a task that can be compared."));
      return;
    }
    place.replaceChildren(title, diffTable(differences(one.fields, other.fields), { all: find("all-fields").checked }));
  }
}

function entryElement({ version, number, task, before, modified }) {
  const readable = task instanceof Task;
  const at = (readable && task.time(rules.updated)) || modified * 1000;
  const word = readable ? task.state.word : "Corrupt";
  const box = h("input", { type: "checkbox", value: version, "aria-label": `Compare version ${number}` });
  const since = readable && before instanceof Task ? (at - (before.time(rules.updated) ?? at)) / 1e6 : null;
  return h(
    "li",
    { data: { state: word.toLowerCase() } },
    h("label", {}, box, h("span", { class: "number" }, `v${number}`)),
    h(
      "div",
      { class: "happened" },
      h("div", {}, badge(word), " ", h("strong", {}, readable ? happened(before, task) : String(task))),
      h("div", { class: "faint" }, moment(at, { past: true }), since === null ? null : ` · ${span(since)} after the version before`),
      readable ? h("div", { class: "faint details" }, detailsOf(task)) : null,
    ),
  );
}

function detailsOf(task) {
  if (task.state.name === rules.lease.state) return `by ${task.text(rules.lease.owner)}, attempt ${task.number(rules.lease.fence)}`;
  return task.text(rules.failure);
}

/** The name of what led from one version to the next, found in the edges of the spec. */
export function happened(before, after) {
  if (!(before instanceof Task)) return before === undefined ? "created" : "changed";
  const fits = rules.edges.filter(
    (edge) =>
      edge.from.includes(before.state.name) &&
      edge.to === after.state.name &&
      (edge.increment ?? []).every((name) => after.number(name) === before.number(name) + 1) &&
      Object.entries(edge.sets ?? {}).every(([name, value]) => after.fields.get(name) === value),
  );
  const weight = (edge) => (edge.increment ?? []).length + Object.keys(edge.sets ?? {}).length;
  const [best] = fits.toSorted((one, other) => weight(other) - weight(one));
  if (best) return best.name.replaceAll("_", " ");
  const moved = (name) => before.text(name) !== after.text(name);
  if (moved(rules.lease.expires)) return "lease renewed";
  const update = rules.updates.find((each) => each.from_request.some(moved));
  return update ? update.name.replaceAll("_", " ") : "changed";
}
