// The dashboard of the workers: what they serve, what they do, and whether they are still heard of.

import { find, h, moment, reconcile, setText, tick } from "./dom.js";
import { ExactNumber, jsonText, parseJson } from "./json.js";
import { linkTo } from "./route.js";
import { spec } from "./spec.js";
import { SHARDS, isTaskId, shardOf } from "./tasks.js";
import { microseconds } from "./time.js";
import { WaitingTypes } from "./waiting_types.js";

const SHOWN = 100;
const LOOKS = 6; // one refresh in so many looks at what waits
const PARALLEL = 8;
const [BEFORE_ID, AFTER_ID] = spec.worker.object.split(`{${spec.worker.key}}`);

export class Workers {
  #known = new Map(); // by key: {etag, worker | corrupt}

  #looks = 0;
  #waiting = new Set();

  constructor(bucket) {
    this.bucket = bucket;
    this.waitingTypes = new WaitingTypes(bucket);
  }

  /** Brings the dashboard up to date. */
  async refresh() {
    const { workers, more } = await this.#readAll();
    this.#render(workers, more);
    if (this.#looks++ % LOOKS === 0) await this.#lookAtWaiting();
    this.#renderUnserved(workers, more);
  }

  /** What active workers run: a set of types, or null where that is not known of all of them. */
  async types() {
    const { workers, more } = await this.#readAll();
    return more ? null : this.#typesOf(workers);
  }

  /** One LIST, and a GET for each worker that has been heard of since. */
  async #readAll() {
    const { entries, more } = await this.bucket.list(BEFORE_ID);
    const newest = entries
      .filter((entry) => entry.key.endsWith(AFTER_ID))
      .sort((one, other) => other.modified - one.modified)
      .slice(0, SHOWN);
    const changed = newest.filter((entry) => this.#known.get(entry.key)?.etag !== entry.etag);
    const reader = async () => {
      for (let next = changed.shift(); next; next = changed.shift()) await this.#read(next);
    };
    await Promise.all(Array.from({ length: PARALLEL }, reader));
    const workers = newest.map((entry) => this.#known.get(entry.key)).filter(Boolean);
    workers.sort((one, other) => (one.id < other.id ? -1 : 1));
    return { workers, more: more || entries.length > SHOWN };
  }

  async #read(entry) {
    const found = await this.bucket.get(entry.key);
    if (!found) {
      this.#known.delete(entry.key); // it stopped between the listing and now
      return;
    }
    const id = entry.key.slice(BEFORE_ID.length, entry.key.length - AFTER_ID.length);
    const known = { etag: entry.etag, id, fields: null, heard: entry.modified * 1000 };
    try {
      const fields = parseJson(found.text);
      if (fields instanceof Map) Object.assign(known, { fields, heard: microseconds(fields.get(spec.worker.heartbeat)) ?? known.heard });
    } catch {
      // It stays without fields and is shown as unreadable.
    }
    this.#known.set(entry.key, known);
  }

  async #lookAtWaiting() {
    try {
      this.#waiting = await this.waitingTypes.read();
    } catch {
      this.#waiting = new Set(); // who may not read tasks still sees the workers
    }
  }

  #isStale(worker) {
    return (this.bucket.clock.now() * 1000 - worker.heard) / 1e6 > spec.worker.stale_after_seconds;
  }

  #typesOf(workers) {
    return new Set(workers.filter((worker) => !this.#isStale(worker)).flatMap(typesOf));
  }

  #renderUnserved(workers, more) {
    const known = this.#typesOf(workers);
    const unserved = more ? [] : [...this.#waiting].filter((type) => !known.has(type)).sort();
    find("unserved").hidden = !unserved.length;
    setText(find("unserved-types"), unserved.join(", "));
  }

  #render(workers, more) {
    const stale = (worker) => this.#isStale(worker);
    const live = workers.filter((worker) => !stale(worker));
    reconcile(find("worker-cards"), workers, {
      key: (worker) => worker.id,
      create: () => h("article", { class: "worker" }),
      update: (card, worker) => {
        if (card.dataset.mark === worker.etag) return;
        card.dataset.mark = worker.etag;
        fillCard(card, worker, stale);
      },
    });
    find("no-workers").hidden = workers.length > 0;
    setText(find("workers-active"), String(live.length));
    setText(find("workers-stale"), String(workers.length - live.length));
    setText(find("workers-busy"), String(live.filter((worker) => currentTasks(worker).length).length));
    find("more-workers").hidden = !more;
    const served = new Set(live.flatMap(shardsOf));
    const uncovered = SHARDS.filter((shard) => !served.has(shard));
    find("uncovered").hidden = !live.length || !uncovered.length;
    setText(find("uncovered-shards"), uncovered.join(", "));
  }
}

function fillCard(card, worker, stale) {
  const status = h("span", { class: "badge" });
  tick(status, (shown) => {
    const word = stale(worker) ? "Stale" : "Active";
    setText(shown, word);
    shown.dataset.state = word.toLowerCase();
    card.dataset.stale = word === "Stale" ? "yes" : "no";
  });
  const head = h("header", {}, h("h3", { title: worker.id }, worker.id), status);
  if (!worker.fields) {
    card.replaceChildren(head, h("p", { class: "error-line" }, "This object cannot be read as a worker."));
    return;
  }
  const number = (name) => {
    const value = worker.fields.get(name) ?? 0;
    return value instanceof ExactNumber ? value.text : typeof value === "number" ? value.toLocaleString() : jsonText(value);
  };
  const counter = (name, kind) =>
    h("div", { class: `counter ${kind}` }, h("dd", { data: { counter: name } }, number(name)), h("dt", {}, name.replaceAll("_", " ")));
  const served = new Set(shardsOf(worker));
  card.replaceChildren(
    head,
    h("p", { class: "heard" }, "Last heartbeat ", moment(worker.heard, { past: true })),
    h(
      "dl",
      { class: "counters" },
      counter("tasks_completed", "good"),
      counter("tasks_failed", "bad"),
      counter("leases_lost", "lost"),
    ),
    h("div", { class: "current" }, h("h4", {}, "Current task"), ...currentLinks(worker)),
    h(
      "div",
      { class: "shards", role: "img", "aria-label": `Serves the shards ${[...served].join(", ") || "none"}` },
      ...SHARDS.map((shard) => h("span", { data: { served: served.has(shard) ? "yes" : "no" } }, shard)),
    ),
    h("p", { class: "faint types" }, `Runs ${typesOf(worker).join(", ") || "nothing"}`),
    h("p", { class: "faint" }, "Started ", moment(microseconds(worker.fields.get(spec.worker.created)))),
  );
}

function currentLinks(worker) {
  const ids = currentTasks(worker);
  if (!ids.length) return [h("p", { class: "faint" }, "none")];
  return ids.map((id) =>
    isTaskId(id) ? h("a", { class: "task-id", href: linkTo({ view: "tasks", shard: shardOf(id), task: id }) }, id) : h("span", { class: "task-id" }, id),
  );
}

function currentTasks({ fields }) {
  const several = fields?.get("current_tasks");
  const ids = Array.isArray(several) && several.length ? several : [fields?.get("current_task")];
  return ids.filter((id) => id !== null && id !== undefined).map((id) => (typeof id === "string" ? id : jsonText(id)));
}

function typesOf({ fields }) {
  const types = fields?.get("task_types");
  return Array.isArray(types) ? types.filter((type) => typeof type === "string") : [];
}

function shardsOf({ fields }) {
  const shards = fields?.get("shards");
  return Array.isArray(shards) ? shards.filter((shard) => SHARDS.includes(shard)) : [];
}
