// Tasks by the rules of the spec: where their objects lie, what state they are in, and what an action of the page makes of them.

import { ExactNumber, jsonText, parseJson } from "./json.js";
import { spec } from "./spec.js";
import { indexMinute, isoTime, microseconds } from "./time.js";

export const rules = spec.task;
export const SHARDS = Array.from({ length: 16 ** rules.shard.digits }, (_, index) =>
  index.toString(16).padStart(rules.shard.digits, "0"),
);

const byWord = new Map(rules.states.map((state) => [state.word, state]));
const byName = new Map(rules.states.map((state) => [state.name, state]));
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** An object that should be a task and is none. */
export class Corrupt extends Error {}

export class Task {
  /** Reads the text of an object, or throws Corrupt. */
  constructor(text, { etag = null, version = null } = {}) {
    this.etag = etag;
    this.version = version;
    try {
      this.fields = parseJson(text);
    } catch (error) {
      throw new Corrupt(error instanceof RangeError ? "it is nested too deeply" : `it is no JSON: ${error.message}`);
    }
    if (!(this.fields instanceof Map)) throw new Corrupt("it is no JSON object");
    this.state = byWord.get(this.fields.get(rules.state));
    if (!this.state) throw new Corrupt(`it has no known ${rules.state}: ${jsonText(this.fields.get(rules.state) ?? null)}`);
    if (typeof this.fields.get(rules.key) !== "string") throw new Corrupt(`it has no ${rules.key}`);
  }

  get id() {
    return this.fields.get(rules.key);
  }

  /** A field as text, "" where it is unset. */
  text(name) {
    const value = this.fields.get(name) ?? "";
    return typeof value === "string" ? value : jsonText(value);
  }

  number(name) {
    const value = this.fields.get(name);
    if (value instanceof ExactNumber) return Number(value.text);
    return typeof value === "number" ? value : 0;
  }

  /** A time in microseconds, null where it is unset. */
  time(name) {
    return microseconds(this.fields.get(name));
  }

  /** How often it failed, and how often it may, as people read it. */
  retries() {
    return `${this.number(rules.retries.count)} of ${this.number(rules.retries.limit)} retries`;
  }

  /** What kind of task it is. */
  kind() {
    return this.text(rules.lease.only) || "(no type)";
  }

  /** What a list keeps of it: everything but the data, which may be large. */
  summary() {
    const light = Object.create(Task.prototype);
    const fields = new Map(this.fields);
    for (const name of Object.keys(rules.refs)) fields.delete(name);
    return Object.assign(light, { etag: this.etag, version: this.version, state: this.state, fields });
  }
}

export function stateNamed(name) {
  return byName.get(name);
}

/** Whether tasks of that state are kept out of ordinary lists. */
export function retired(state) {
  return rules.retires.in.includes(state.name);
}

/** Whether a worker may still have to do with tasks of that state: they are in an index. */
export function active(state) {
  return Object.values(rules.indexes).some((index) => index.in.includes(state.name));
}

/** Whether tasks of that state wait for their time: they are in the index of it. */
export function waiting(state) {
  return Object.values(rules.indexes).some((index) => index.time === rules.lease.oldest_by && index.in.includes(state.name));
}

export function isTaskId(text) {
  return UUID.test(text);
}

export function shardOf(id) {
  return id.slice(0, rules.shard.digits);
}

/** The key of a task's object; an object whose name is no task id lies in the shard where it was found. */
export function taskKey(id, shard = shardOf(id)) {
  return filled(rules.object, { [rules.key]: id, [rules.shard.field]: shard });
}

/** What all keys of a pattern begin with in a shard. */
export function shardPrefix(pattern, shard) {
  const place = `{${rules.shard.field}}/`;
  return pattern.slice(0, pattern.indexOf(place)) + `${shard}/`;
}

/** The id in a key of a pattern, or null where the key is none. */
export function idIn(pattern, key) {
  const name = key.slice(key.lastIndexOf("/") + 1);
  const [before, after] = pattern.slice(pattern.lastIndexOf("/") + 1).split(`{${rules.key}}`);
  if (!name.startsWith(before) || !name.endsWith(after)) return null;
  return name.slice(before.length, name.length - after.length) || null;
}

/** The edges that the page may take with a task as it is now. */
export function actionsFor(task) {
  return rules.edges.filter(
    (edge) =>
      edge.by.includes(spec.principal) &&
      edge.from.includes(task.state.name) &&
      Object.entries(edge.where ?? {}).every(([name, value]) => task.fields.get(name) === value),
  );
}

/** The word on an action's button: the first one of the edge's name. */
export function actionWord(edge) {
  return titled(edge.name.split("_")[0]);
}

/** A name of the spec as a heading. */
export function titled(name) {
  return name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");
}

/** Where data lies that a task only refers to. */
export function dataPlace(ref) {
  if (!(ref instanceof Map)) return { key: String(ref), version: null };
  return { key: String(ref.get("key")), version: ref.get("version") ?? null };
}

/** What an edge makes of a task: {text, tags, retagged: [{key, version}], entries: [{key, text}]}, at `now` (microseconds by the store's clock). */
export function afterEdge(task, edge, now) {
  const fields = new Map(task.fields);
  // Times never go backwards; the last digits of `now` are random, and stay so where the task is ahead of the clock.
  const time = isoTime(Math.max(now, (task.time(rules.updated) ?? 0) + 1 + (now % 1000)));
  const target = byName.get(edge.to);
  for (const name of edge.clear ?? []) fields.set(name, null);
  for (const [name, value] of Object.entries(edge.sets ?? {})) fields.set(name, value);
  for (const name of edge.increment ?? []) fields.set(name, task.number(name) + 1);
  for (const name of edge.stamps ?? []) fields.set(name, time);
  fields.set(rules.state, target.word);
  fields.set(rules.updated, time);
  fields.set(rules.revision, task.number(rules.revision) + 1);
  const tags = retired(target) ? { [rules.retires.tag]: rules.retires.value } : null;
  const refs = Object.values(rules.refs).map((name) => fields.get(name) ?? null).filter((ref) => ref !== null);
  const retagged = retired(target) === retired(task.state) ? [] : refs.map(dataPlace);
  return { text: jsonText(fields), tags, retagged, entries: indexEntries(fields, target) };
}

function indexEntries(fields, state) {
  const indexes = Object.values(rules.indexes).filter((index) => index.in.includes(state.name));
  const hint = new Map(rules.hint.map((name) => [name, fields.get(name) ?? 0]));
  return indexes.map((index) => {
    const minute = indexMinute(microseconds(fields.get(index.time)));
    const names = { [rules.key]: fields.get(rules.key), [rules.shard.field]: shardOf(fields.get(rules.key)) };
    return { key: filled(index.key, { ...names, [index.time]: minute }), text: jsonText(hint) };
  });
}

function filled(pattern, values) {
  return pattern.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}
