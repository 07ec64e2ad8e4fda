// The tasks of one shard, page by page. Keys are listed, and only the tasks that are shown are read; a task is read again
// only when the listing has a new ETag, so that a refresh costs one LIST and the few GETs of what has changed.

import { Corrupt, Task, active, idIn, retired, rules, shardPrefix, taskKey } from "./tasks.js";

export const PAGE_ROWS = 25;
const FIRST_LISTS = 10;
const MISSES_AT_ONCE = 200;
const PARALLEL = 8;
const KEPT = 20_000;

/** The filters of the list: one for each state, one for all of them, and the usual one, which leaves out what is put away. */
export const FILTERS = [
  { id: "current", word: "Current", doc: "Everything that is not put away", takes: (state) => !retired(state) },
  ...rules.states.map((state) => ({
    id: state.word.toLowerCase(),
    word: state.word,
    doc: state.doc,
    state,
    takes: (candidate) => candidate.name === state.name,
  })),
  { id: "all", word: "All", doc: "Everything", takes: () => true },
];

export class Listing {
  #entries = new Map(); // by key, as listed
  #cursor = ""; // where the next LIST goes on; "" = at the beginning
  #misses = MISSES_AT_ONCE; // how many tasks may fail the filter before it stops looking

  /** `tasks` is what has been read so far, by id: {listed, etag, task | corrupt | missing}; listings share it. */
  constructor(bucket, { shard, filter, tasks }) {
    this.bucket = bucket;
    this.tasks = tasks;
    this.filter = filter;
    // Tasks that workers still have to do with are few and have an index; all others are found by a scan.
    this.index = Object.values(rules.indexes).find((index) => filter.state && index.in.includes(filter.state.name));
    this.pattern = this.index ? this.index.key : rules.object;
    this.prefix = shardPrefix(this.pattern, shard);
    this.complete = false;
  }

  get known() {
    return this.#entries.size;
  }

  /** Lists everything for the first time, up to a bound; `begun` is called when the first page of keys is there. */
  async fill(begun) {
    for (let count = 0; count < FIRST_LISTS && !this.complete; count += 1) {
      await this.refresh();
      if (count === 0 && !this.complete) await begun();
    }
  }

  /** One LIST: a large shard is listed anew part by part, one part a refresh. */
  async refresh() {
    const start = this.#cursor;
    const { entries, more } = await this.bucket.list(this.prefix, { after: start });
    const end = more ? entries.at(-1).key : null;
    const listed = new Set(entries.map((entry) => entry.key));
    for (const key of this.#entries.keys()) {
      if (key > start && (end === null || key <= end) && !listed.has(key)) this.#entries.delete(key);
    }
    for (const entry of entries) {
      if (idIn(this.pattern, entry.key)) this.#entries.set(entry.key, entry);
    }
    this.#cursor = end ?? "";
    if (end === null) this.complete = true;
    this.fresh = listed;
  }

  /** Lets the next look go through more tasks, when too few of those looked at so far pass the filter. */
  lookFurther() {
    this.#misses += MISSES_AT_ONCE;
  }

  /**
   * The rows of a page, those changed last first: {rows, next, looked, cut}.
   * `next` = there are more; `cut` = it stopped looking after `looked` tasks, as too few passed the filter.
   */
  async page(number, { oldest = false } = {}) {
    const entries = this.#candidates(oldest);
    const wanted = (number + 1) * PAGE_ROWS + 1;
    const found = [];
    let looked = 0;
    while (looked < entries.length && found.length < wanted && looked - found.length < this.#misses) {
      const batch = entries.slice(looked, looked + Math.max(PARALLEL, Math.min(PAGE_ROWS + 1, wanted - found.length)));
      looked += batch.length;
      const rows = await this.#readAll(batch);
      found.push(...rows.filter((row) => row && this.#passes(row)));
    }
    const rows = found.slice(number * PAGE_ROWS, wanted - 1);
    rows.sort((one, other) => (oldest ? 1 : -1) * (one.updated - other.updated));
    return { rows, next: found.length >= wanted, looked, cut: found.length < wanted && looked < entries.length };
  }

  // An object that is no task has no state to filter by.
  #passes(row) {
    return row.task ? this.filter.takes(row.task.state) : !this.filter.state;
  }

  #candidates(oldest) {
    const sign = oldest ? 1 : -1;
    const newest = new Map(); // a task may have two entries in an index while workers move it
    for (const entry of this.#entries.values()) {
      const id = idIn(this.pattern, entry.key);
      if (!newest.has(id) || newest.get(id).modified < entry.modified) newest.set(id, { ...entry, id });
    }
    return Array.from(newest.values()).sort((one, other) => sign * (one.modified - other.modified));
  }

  #cached(entry) {
    const known = this.tasks.get(entry.id);
    if (!known || this.index || (known.listed !== entry.etag && known.etag !== entry.etag)) return null;
    // A listing that is older than this refresh proves nothing of a task that workers may have moved on.
    return this.fresh.has(entry.key) || !known.task || !active(known.task.state) ? known : null;
  }

  async #readAll(entries) {
    const rows = new Array(entries.length);
    let next = 0;
    const reader = async () => {
      while (next < entries.length) {
        const index = next;
        next += 1;
        rows[index] = await this.#row(entries[index]);
      }
    };
    await Promise.all(Array.from({ length: Math.min(PARALLEL, entries.length) }, reader));
    return rows;
  }

  async #row(entry) {
    const known = this.#cached(entry) ?? (await this.#read(entry));
    if (known.missing) return null;
    const updated = known.task?.time(rules.updated) ?? entry.modified * 1000;
    return { id: entry.id, task: known.task, corrupt: known.corrupt, updated };
  }

  async #read(entry) {
    const before = this.tasks.get(entry.id);
    const found = await this.bucket.get(this.index ? taskKey(entry.id) : entry.key, { etag: before?.etag });
    const listed = this.index ? null : entry.etag;
    if (found === "same") return Object.assign(before, { listed });
    const read = { listed, etag: found?.etag, missing: found === null };
    if (found) Object.assign(read, taskOrReason(found, entry.id));
    this.tasks.set(entry.id, read);
    if (this.tasks.size > KEPT) this.tasks.delete(this.tasks.keys().next().value);
    return read;
  }
}

/** {task} of an object's text, or {corrupt: reason}. */
function taskOrReason(found, id) {
  try {
    const task = new Task(found.text, found);
    return task.id === id ? { task: task.summary() } : { corrupt: `it says that its ${rules.key} is “${task.id}”` };
  } catch (error) {
    if (error instanceof Corrupt) return { corrupt: error.message };
    throw error;
  }
}
