// The list of the tasks of one shard.

import { badge, find, h, moment, reconcile, setText, tick } from "./dom.js";
import { FILTERS, Listing, PAGE_ROWS } from "./listing.js";
import { goTo, linkTo, route } from "./route.js";
import { rules, SHARDS, waiting } from "./tasks.js";
import { localTime, relative, span } from "./time.js";

const SORTS = {
  state: (row) => row.task?.state.word ?? "",
  type: (row) => row.task?.text(rules.lease.only) ?? "",
  attempt: (row) => row.task?.number(rules.lease.fence) ?? 0,
};

const LOOKS = 6; // one refresh in so many that show tasks which wait looks at what workers run

export class TaskList {
  #listing = null;
  #tasks = new Map(); // what has been read, in whatever list
  #place = "";
  #sort = null; // {by, up}: an order of the rows on the screen
  #types = null; // what active workers run; null where that is not known
  #looks = 0;

  /** `types` reads what active workers run: a set, or null. */
  constructor(bucket, refresh, types) {
    this.bucket = bucket;
    this.readTypes = types;
    this.refreshNow = refresh;
    this.rows = find("task-rows");
    this.#buildTools();
  }

  /** Shows the place where the reader is; one LIST, and GETs of what changed. */
  async refresh() {
    const place = route();
    const key = `${place.shard} ${place.state}`;
    this.#showTools(place);
    if (key === this.#place) {
      await this.#listing.refresh();
    } else {
      this.#place = key;
      const filter = FILTERS.find((candidate) => candidate.id === place.state) ?? FILTERS[0];
      this.#listing = new Listing(this.bucket, { shard: place.shard, filter, tasks: this.#tasks });
      this.#wait();
      await this.#listing.fill(() => this.#show(route(), key));
    }
    await this.#show(route(), key);
    await this.#lookAtTypes();
  }

  /** Finds out now and then which tasks wait for a worker that is not there. Who may not read workers sees no hint. */
  async #lookAtTypes() {
    if (!this.page?.rows.some((row) => this.#isDue(row)) || this.#looks++ % LOOKS) return;
    try {
      this.#types = await this.readTypes();
    } catch {
      this.#types = null;
    }
    this.#hint();
  }

  #isDue({ task }) {
    return Boolean(task) && waiting(task.state) && (task.time(rules.lease.oldest_by) ?? 0) <= this.bucket.clock.now() * 1000;
  }

  #hint() {
    const rows = new Map(this.page.rows.map((row) => [row.id, row]));
    for (const element of this.rows.children) {
      const row = rows.get(element.dataset.key);
      const type = row?.task?.text(rules.lease.only);
      const unserved = this.#types !== null && row && this.#isDue(row) && !this.#types.has(type);
      const hint = element.querySelector(".unserved");
      if (!unserved) hint?.remove();
      else if (!hint) element.querySelector(".col-doing").append(h("span", { class: "unserved" }, `No active worker runs ${type}.`));
    }
  }

  /** Marks the row of the open task. */
  mark(id) {
    for (const row of this.rows.children) {
      if (row.dataset.key === id) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }

  async #show(place, key) {
    const number = Number(place.page) || 0;
    const listing = this.#listing;
    const page = await listing.page(number, { oldest: place.order === "oldest" });
    if (key !== this.#place || listing !== this.#listing || number !== (Number(route().page) || 0)) return;
    this.page = page;
    this.#render();
  }

  #render() {
    const { rows, next, looked, cut } = this.page;
    const place = route();
    const number = Number(place.page) || 0;
    reconcile(this.rows, this.#sorted(rows), { key: (row) => row.id, create: newRow, update: fillRow });
    this.#hint();
    this.mark(place.task);
    find("task-table").removeAttribute("aria-busy");
    find("no-tasks").hidden = rows.length > 0 || cut;
    setText(find("no-tasks-text"), number ? "There is no more on this page." : emptyText(place));
    find("newer").disabled = number === 0;
    find("older").disabled = !next;
    setText(find("page-number"), rows.length || number ? `${number * PAGE_ROWS + 1}–${number * PAGE_ROWS + rows.length}` : "");
    find("look-further").hidden = !cut;
    setText(find("looked"), cut ? `Looked at ${looked.toLocaleString()} of ${this.#listing.known.toLocaleString()} tasks.` : "");
    setText(find("known"), knownText(this.#listing));
    for (const heading of document.querySelectorAll("#task-table th[data-sort]")) this.#showSort(heading, place);
  }

  #wait() {
    this.rows.replaceChildren();
    find("task-table").setAttribute("aria-busy", "true");
    find("no-tasks").hidden = true;
    find("look-further").hidden = true;
    for (const id of ["looked", "known", "page-number"]) setText(find(id), "");
  }

  #buildTools() {
    find("shard").append(...SHARDS.map((shard) => h("option", { value: shard }, shard)));
    find("shard").addEventListener("change", (event) => goTo({ shard: event.target.value, page: "0" }));
    find("shard-before").addEventListener("click", () => stepShard(-1));
    find("shard-after").addEventListener("click", () => stepShard(1));
    find("filters").append(...FILTERS.map(filterChoice));
    find("filters").addEventListener("change", (event) => goTo({ state: event.target.value, page: "0" }));
    find("newer").addEventListener("click", () => goTo({ page: String(Math.max(0, Number(route().page) - 1)) }));
    find("older").addEventListener("click", () => goTo({ page: String(Number(route().page) + 1) }));
    find("look-further").addEventListener("click", () => {
      this.#listing.lookFurther();
      this.refreshNow();
    });
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row && !event.target.closest("a")) goTo({ task: row.dataset.key });
    });
    for (const heading of document.querySelectorAll("#task-table th[data-sort]")) {
      heading.firstElementChild.addEventListener("click", () => this.#sortBy(heading.dataset.sort));
    }
  }

  #showTools(place) {
    find("shard").value = place.shard;
    const choice = document.querySelector(`#filters input[value="${CSS.escape(place.state)}"]`);
    if (choice) choice.checked = true;
  }

  // The time of change is an order of the whole shard; the others are orders of the rows on the screen.
  #sortBy(by) {
    if (by === "updated") {
      const order = this.#sort || route().order === "oldest" ? "newest" : "oldest";
      const moved = order !== route().order;
      this.#sort = null;
      if (moved) goTo({ order, page: "0" });
    } else {
      this.#sort = { by, up: this.#sort?.by === by ? !this.#sort.up : true };
    }
    this.#render();
  }

  #sorted(rows) {
    if (!this.#sort) return rows;
    const value = SORTS[this.#sort.by];
    const sign = this.#sort.up ? 1 : -1;
    return rows.toSorted((one, other) => sign * (value(one) < value(other) ? -1 : value(one) > value(other) ? 1 : 0));
  }

  #showSort(heading, place) {
    const by = heading.dataset.sort;
    let order = "none";
    if (this.#sort?.by === by) order = this.#sort.up ? "ascending" : "descending";
    else if (!this.#sort && by === "updated") order = place.order === "oldest" ? "ascending" : "descending";
    heading.setAttribute("aria-sort", order);
  }
}

function stepShard(by) {
  const index = (SHARDS.indexOf(route().shard) + by + SHARDS.length) % SHARDS.length;
  goTo({ shard: SHARDS[index], page: "0" });
}

function filterChoice(filter) {
  const input = h("input", { type: "radio", name: "state", value: filter.id });
  return h("label", { class: "chip", title: filter.doc, data: { state: filter.id } }, input, h("span", {}, filter.word));
}

function emptyText(place) {
  const filter = FILTERS.find((candidate) => candidate.id === place.state);
  if (filter?.state) return `No task in shard ${place.shard} is ${filter.word}.`;
  return filter?.id === "all" ? `There are no tasks in shard ${place.shard}.` : `There are no current tasks in shard ${place.shard}.`;
}

function knownText(listing) {
  const count = listing.known.toLocaleString();
  const what = listing.index ? "in the index" : "in this shard";
  return listing.complete ? `${count} ${what}` : `${count} ${what} so far, listing goes on`;
}

function newRow(row) {
  const cell = (name) => h("td", { class: name });
  return h("tr", {}, cell("col-state"), cell("col-task"), cell("col-doing"), cell("col-attempt"), cell("col-updated"));
}

function fillRow(element, row) {
  // Rows tick by themselves; they are filled anew only when their object has changed.
  const mark = row.task ? row.task.etag : row.corrupt;
  const [state, task, doing, attempt, updated] = element.children;
  const link = task.querySelector("a");
  if (link) link.href = linkTo({ task: row.id });
  if (element.dataset.mark === mark) return;
  element.dataset.mark = mark;
  const anchor = (text) => h("a", { href: linkTo({ task: row.id }), class: "task-type" }, text);
  const id = h("span", { class: "task-id", title: row.id }, row.id);
  updated.replaceChildren(moment(row.updated, { past: true }));
  if (!row.task) {
    state.replaceChildren(badge("Corrupt"));
    task.replaceChildren(anchor("Not a task"), id);
    doing.replaceChildren(h("span", { class: "error-line" }, row.corrupt));
    attempt.replaceChildren();
    return;
  }
  state.replaceChildren(badge(row.task.state.word));
  task.replaceChildren(anchor(row.task.kind()), id);
  doing.replaceChildren(...doingOf(row.task));
  attempt.replaceChildren(...attemptOf(row.task));
}

function attemptOf(task) {
  return [h("span", { class: "attempt-number" }, String(task.number(rules.lease.fence))), h("span", { class: "faint" }, task.retries())];
}

/** What there is to say about a task in its state. */
function doingOf(task) {
  const error = task.text(rules.failure);
  const errorLine = error ? h("span", { class: "error-line", title: error }, error) : null;
  if (task.state.name === rules.lease.state) return [leaseLine(task), h("span", { class: "faint" }, task.text(rules.lease.owner))];
  if (waiting(task.state)) return [availableLine(task), errorLine].filter(Boolean);
  const before = task.text(rules.retires.from);
  if (before) return [h("span", { class: "faint" }, `was ${before}`)];
  if (errorLine) return [errorLine];
  const took = (task.time(rules.ended) ?? 0) - (task.time(rules.created) ?? 0);
  return took > 0 ? [h("span", { class: "faint" }, `done ${span(took / 1e6)} after submission`)] : [];
}

function availableLine(task) {
  const at = task.time(rules.lease.oldest_by);
  if (at === null) return h("span", { class: "faint" }, "no time is set");
  const line = h("span", { class: "available", title: localTime(at) });
  const clock = new Date(at / 1000).toLocaleTimeString();
  return tick(line, (shown, now) => {
    const waits = at > now;
    shown.dataset.waits = waits ? "yes" : "no";
    const why = waits ? (task.number(rules.retries.count) ? "backs off, " : "waits, ") : "";
    setText(shown, `${why}available ${relative((at - now) / 1e6)} (${clock})`);
  });
}

function leaseLine(task) {
  const until = task.time(rules.lease.expires);
  const line = h("span", { class: "lease" });
  return tick(line, (shown, now) => {
    const left = (until - now) / 1e6;
    shown.dataset.over = left <= 0 ? "yes" : "no";
    setText(shown, left > 0 ? `lease ends in ${span(Math.ceil(left))}` : `lease ended ${span(Math.ceil(-left))} ago`);
  });
}
