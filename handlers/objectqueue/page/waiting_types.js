// Types of tasks that wait, seen through the index: what the oldest entries hint at, a few tasks and not all of them.

import { Corrupt, Task, idIn, rules, taskKey, waiting } from "./tasks.js";
import { indexMinute } from "./time.js";

const LISTED = 200;
const READ = 24;
const PARALLEL = 8;
const index = Object.values(rules.indexes).find((candidate) => candidate.time === rules.lease.oldest_by);

export class WaitingTypes {
  #known = new Map(); // by entry: {etag, type | null}

  constructor(bucket) {
    this.bucket = bucket;
  }

  /** The types of some tasks that have waited longest: one LIST, and a GET for each that was not seen before. */
  async read() {
    const { entries } = await this.bucket.list(index.key.slice(0, index.key.indexOf("{")), { most: LISTED });
    const now = indexMinute(this.bucket.clock.now() * 1000);
    const oldest = entries
      .map((entry) => ({ ...entry, id: idIn(index.key, entry.key), minute: entry.key.split("/").at(-2) }))
      .filter((entry) => entry.id && entry.minute <= now)
      .sort((one, other) => (one.minute < other.minute ? -1 : 1))
      .slice(0, READ);
    const unknown = oldest.filter((entry) => this.#known.get(entry.key)?.etag !== entry.etag);
    const reader = async () => {
      for (let next = unknown.shift(); next; next = unknown.shift()) await this.#read(next);
    };
    await Promise.all(Array.from({ length: PARALLEL }, reader));
    const kept = new Map(oldest.map((entry) => [entry.key, this.#known.get(entry.key)]));
    this.#known = kept;
    return new Set([...kept.values()].map((known) => known?.type).filter(Boolean));
  }

  async #read(entry) {
    const found = await this.bucket.get(taskKey(entry.id));
    this.#known.set(entry.key, { etag: entry.etag, type: found ? typeOf(found) : null });
  }
}

function typeOf(found) {
  try {
    const task = new Task(found.text, found);
    return waiting(task.state) ? task.text(rules.lease.only) : null;
  } catch (error) {
    if (error instanceof Corrupt) return null;
    throw error;
  }
}
