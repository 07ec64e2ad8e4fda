// One task in full: its state, its data, its history, and what can be done with it.

import { Conflict, confirmed, takeEdge } from "./actions.js";
import { DataPart } from "./data_part.js";
import { badge, copyButton, find, h, icon, moment, setText, tick } from "./dom.js";
import { explained } from "./explain.js";
import { jsonText } from "./json.js";
import { drawSteps } from "./lifecycle.js";
import { note, notice } from "./notices.js";
import { Corrupt, Task, actionWord, actionsFor, isTaskId, rules, taskKey, titled, waiting } from "./tasks.js";
import { Timeline } from "./timeline.js";
import { microseconds, relative, span } from "./time.js";

const SHOWN_ELSEWHERE = new Set([rules.key, rules.state, rules.lease.only, rules.failure, ...Object.entries(rules.refs).flat()]);

export class Detail {
  #id = null;
  #etag = null;
  #timeline = null;

  constructor(bucket, { close, refresh }) {
    this.bucket = bucket;
    this.refreshNow = refresh;
    this.element = find("detail");
    this.data = Object.entries(rules.refs).map(([field, ref]) => new DataPart(bucket, field, ref));
    find("detail-data").replaceChildren(...this.data.map((part) => part.element));
    find("detail-close").addEventListener("click", close);
  }

  get open() {
    return this.#id !== null;
  }

  /** Shows a task, or nothing; the same one stays as it is. */
  show(id, shard) {
    if (id === this.#id) return;
    this.#id = id || null;
    this.#etag = null;
    this.#timeline?.close();
    this.element.hidden = !id;
    document.body.classList.toggle("with-detail", Boolean(id));
    if (!id) return;
    this.key = taskKey(id, isTaskId(id) ? undefined : shard);
    this.#timeline = new Timeline(this.bucket, this.key);
    this.#say();
    find("detail-body").hidden = true;
    find("detail-wait").hidden = false;
    find("detail-raw").hidden = true;
    find("detail-badge").replaceChildren();
    find("detail-actions").replaceChildren();
    setText(find("detail-type"), "…");
    find("detail-id").replaceChildren(h("code", {}, id), copyButton(id, "Copy the task's id"));
    this.element.scrollTop = 0;
    find("detail-close").focus({ preventScroll: true });
  }

  /** Reads the task again if it has changed, and with it its history. */
  async refresh() {
    const id = this.#id;
    if (!id) return;
    const found = await this.bucket.get(this.key, { etag: this.#etag });
    if (id !== this.#id || found === "same") return;
    find("detail-wait").hidden = true;
    if (!found) {
      this.#etag = null;
      this.#showMissing();
      return;
    }
    this.#etag = found.etag;
    this.#fill(found);
    await this.#refreshTimeline(id);
  }

  #fill(found) {
    try {
      this.task = new Task(found.text, found);
    } catch (error) {
      if (!(error instanceof Corrupt)) throw error;
      this.#showCorrupt(found.text, error.message);
      return;
    }
    const { task } = this;
    find("detail-raw").hidden = true;
    find("detail-body").hidden = false;
    setText(find("detail-type"), task.kind());
    find("detail-badge").replaceChildren(badge(task.state.word));
    drawSteps(find("detail-steps"), task.state);
    this.#showActions(task);
    showClock(task);
    find("detail-error").replaceChildren(...errorOf(task));
    find("detail-facts").replaceChildren(...factsOf(task));
    for (const part of this.data) part.show(task);
  }

  #showActions(task) {
    const buttons = actionsFor(task).map((edge) =>
      h("button", { type: "button", data: { edge: edge.name, action: actionWord(edge) }, title: edge.doc ?? "", on: { click: () => this.#act(task, edge) } }, actionWord(edge)),
    );
    find("detail-actions").replaceChildren(...buttons);
  }

  async #act(task, edge) {
    if (!(await confirmed(this.bucket, task, edge))) return;
    const buttons = find("detail-actions").querySelectorAll("button");
    for (const button of buttons) button.disabled = true;
    const word = actionWord(edge);
    this.#say();
    try {
      const { hidden } = await takeEdge(this.bucket, task, edge);
      note(`${word}: done.`);
      if (hidden) this.#say(hiddenText(hidden), "info");
    } catch (error) {
      if (error instanceof Conflict) this.#sayConflict(word);
      else this.#say(explained(error, `${word.toLowerCase()} this task`));
      for (const button of buttons) button.disabled = false;
      return;
    }
    await this.refreshNow();
  }

  #sayConflict(word) {
    const text = "It is no longer what you see here. Nothing was written: reload it and look again.";
    const reload = async () => {
      this.#say();
      this.#etag = null;
      await this.refreshNow();
    };
    const title = `${word} did not happen: somebody else changed this task first`;
    find("detail-say").replaceChildren(notice({ title, text }, { action: "Reload", onAction: reload }));
  }

  #say(what = null, kind = "error") {
    find("detail-say").replaceChildren(...(what ? [notice(what, { kind })] : []));
  }

  async #refreshTimeline(id) {
    try {
      await this.#timeline.refresh();
      find("timeline-problem").replaceChildren();
    } catch (error) {
      if (id === this.#id) find("timeline-problem").replaceChildren(notice(explained(error, "read the history")));
    }
  }

  #showMissing() {
    find("detail-body").hidden = true;
    find("detail-actions").replaceChildren();
    setText(find("detail-type"), "No such task");
    this.#say({ title: "There is no such task", text: `The bucket has no object “${this.key}”. Is it in another queue?` });
  }

  #showCorrupt(text, reason) {
    find("detail-body").hidden = true;
    find("detail-actions").replaceChildren();
    find("detail-badge").replaceChildren(badge("Corrupt"));
    setText(find("detail-type"), "Not a task");
    this.#say({ title: "This object is not a task", text: `Workers skip it: ${reason}. Its text is shown as it is.` });
    find("detail-raw").hidden = false;
    setText(find("detail-raw"), text.slice(0, 100_000));
  }
}

function hiddenText(error) {
  const { text } = explained(error, "write the index entry");
  return { title: "Done, but workers may find it late", text: `The index entry could not be written, the next sweep repairs that. ${text}` };
}

function errorOf(task) {
  const text = task.text(rules.failure);
  return text ? [h("h3", {}, "Last error"), h("pre", {}, text)] : [];
}

// The clock of a task: how long its lease still holds, or when it may be taken.
function showClock(task) {
  const place = find("detail-clock");
  const until = task.time(rules.lease.expires);
  const at = task.time(rules.lease.oldest_by);
  if (task.state.name === rules.lease.state && until !== null) place.replaceChildren(leaseClock(task, until));
  else if (at !== null && waiting(task.state)) place.replaceChildren(readyClock(task, at));
  else place.replaceChildren();
}

function leaseClock(task, until) {
  const left = h("span", { class: "countdown", id: "lease-left" });
  const bar = h("progress", { max: "1", "aria-label": "Part of the lease that is left" });
  const whole = task.number(rules.lease.seconds) || 1;
  tick(left, (shown, now) => {
    const seconds = (until - now) / 1e6;
    shown.dataset.over = seconds <= 0 ? "yes" : "no";
    setText(shown, seconds > 0 ? span(Math.ceil(seconds)) : `over for ${span(Math.ceil(-seconds))}`);
    bar.value = Math.min(1, Math.max(0, seconds / whole));
  });
  const owner = h("span", { class: "faint" }, `held by ${task.text(rules.lease.owner) || "nobody"}, attempt ${task.number(rules.lease.fence)}`);
  return h("div", { class: "clock" }, icon("clock"), h("div", {}, h("strong", {}, "Lease "), left, bar, owner, ...saidSoFar(task)));
}

// The fields that the owner of the lease writes.
function saidSoFar(task) {
  return rules.updates
    .filter((update) => update.in.includes(task.state.name))
    .flatMap((update) => update.from_request)
    .filter((name) => (task.fields.get(name) ?? null) !== null)
    .map((name) => h("span", { class: "progress-line", id: name }, `${titled(name)}: `, jsonText(task.fields.get(name))));
}

function readyClock(task, at) {
  const when = h("span", { class: "countdown", id: "available-at" });
  const failed = task.number(rules.retries.count);
  tick(when, (shown, now) => {
    shown.dataset.waits = at > now ? "yes" : "no";
    setText(shown, at > now ? relative((at - now) / 1e6) : "now");
  });
  const why = failed ? `backing off after ${task.retries()}` : "waiting for a worker";
  return h("div", { class: "clock" }, icon("clock"), h("div", {}, h("strong", {}, "Available "), when, h("span", { class: "faint" }, why)));
}

/** All fields that are not shown elsewhere, unknown ones too. */
function factsOf(task) {
  const docs = new Map(rules.fields.map((field) => [field.name, field.doc]));
  return Array.from(task.fields)
    .filter(([name]) => !SHOWN_ELSEWHERE.has(name))
    .map(([name, value]) =>
      h("div", { data: { field: name } }, h("dt", { title: docs.get(name) ?? "" }, name), h("dd", {}, factValue(value))),
    );
}

function factValue(value) {
  if (value === null) return h("span", { class: "faint" }, "–");
  const at = microseconds(value);
  if (at !== null) return h("span", {}, moment(at), h("span", { class: "exact" }, value));
  return typeof value === "string" ? value : jsonText(value);
}
