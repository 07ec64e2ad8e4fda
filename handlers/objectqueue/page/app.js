// The page: asks for the way into the bucket, then shows what the reader asks for and keeps it up to date.

import { askForBucket } from "./connect.js";
import { Detail } from "./detail.js";
import { find, setText, startTicking } from "./dom.js";
import { drawLegend } from "./lifecycle.js";
import { Live } from "./live.js";
import { clearBanner, showBanner } from "./notices.js";
import { goTo, linkTo, onMove, route } from "./route.js";
import { spec } from "./spec.js";
import { isTaskId, shardOf } from "./tasks.js";
import { TaskList } from "./task_list.js";
import { relative } from "./time.js";
import { Workers } from "./workers.js";

const VIEWS = ["tasks", "workers", "lifecycle"];
const DOING = { tasks: "list the tasks", workers: "list the workers", lifecycle: "show the lifecycle" };
const THEMES = ["system", "light", "dark"];

class App {
  constructor(bucket) {
    this.bucket = bucket;
    this.live = new Live(() => this.#work(), () => this.#showLive());
    const refresh = () => this.live.now();
    this.workers = new Workers(bucket);
    this.tasks = new TaskList(bucket, refresh, () => this.workers.types());
    this.detail = new Detail(bucket, { close: () => this.#closeDetail(), refresh });
    startTicking(bucket.clock);
    drawLegend();
    this.#listen();
    setText(find("place"), bucket.base.host + bucket.path + (bucket.prefix ? `, queue ${bucket.prefix.slice(0, -1)}` : ""));
    onMove(() => this.#move());
    this.#move();
  }

  /** Brings all that is on the screen up to date; says whether that worked. */
  async #work() {
    const { view } = route();
    try {
      if (view === "tasks") await Promise.all([this.tasks.refresh(), this.detail.refresh()]);
      if (view === "workers") await this.workers.refresh();
      clearBanner();
      return true;
    } catch (error) {
      showBanner(error, DOING[view], () => this.live.now());
      return false;
    }
  }

  #move() {
    const place = route();
    if (!VIEWS.includes(place.view)) return goTo({ view: "tasks" });
    for (const view of VIEWS) find(`${view}-view`).hidden = view !== place.view;
    for (const link of document.querySelectorAll("#views a")) {
      link.href = linkTo({ view: link.dataset.view });
      if (link.dataset.view === place.view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.detail.show(place.view === "tasks" ? place.task : "", place.shard);
    document.body.classList.toggle("with-detail", place.view === "tasks" && Boolean(place.task));
    this.tasks.mark(place.task);
    return this.live.now();
  }

  #closeDetail() {
    const { task } = route();
    goTo({ task: "" });
    document.querySelector(`#task-rows tr[data-key="${CSS.escape(task)}"] a`)?.focus();
  }

  #listen() {
    find("pause").addEventListener("click", () => this.live.setPaused(!this.live.paused));
    find("refresh").addEventListener("click", () => this.live.now());
    find("interval").addEventListener("change", (event) => this.live.setSeconds(Number(event.target.value)));
    find("leave").addEventListener("click", () => location.reload()); // nothing but this tab's memory knows the key
    find("open-form").addEventListener("submit", (event) => this.#openById(event));
    find("open-id").addEventListener("input", (event) => event.target.setCustomValidity(""));
    document.addEventListener("keydown", (event) => this.#shortcut(event));
    setInterval(() => this.#showAge(), 1000);
  }

  #openById(event) {
    event.preventDefault();
    const field = find("open-id");
    const id = field.value.trim().toLowerCase();
    field.setCustomValidity(isTaskId(id) ? "" : "A task's id looks like 3f2b8c1e-0d4a-4c6b-9a57-1c2d3e4f5a6b.");
    if (!field.reportValidity()) return;
    field.value = "";
    goTo({ view: "tasks", shard: shardOf(id), task: id, page: "0" });
  }

  #shortcut(event) {
    if (event.key === "Escape" && this.detail.open && !event.target.closest("dialog")) this.#closeDetail();
    const typing = event.target.closest("input, select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      find("open-id").focus();
    }
    if (event.key === "r") this.live.now();
    if (event.key === "p") this.live.setPaused(!this.live.paused);
  }

  #showLive() {
    const { paused, busy } = this.live;
    document.body.dataset.live = paused ? "paused" : "on";
    find("pause").setAttribute("aria-pressed", String(paused));
    find("pause").setAttribute("aria-label", paused ? "Go on with the refresh" : "Pause the refresh");
    find("pause").title = paused ? "Go on with the refresh (p)" : "Pause the refresh (p)";
    find("refresh").classList.toggle("busy", busy);
    this.#showAge();
  }

  #showAge() {
    const { lastAt, paused } = this.live;
    const age = lastAt === null ? "…" : relative((lastAt - Date.now()) / 1000);
    setText(find("age"), paused ? `Paused, read ${age}` : `Read ${age}`);
  }
}

function listenForTheme() {
  find("theme").addEventListener("click", () => {
    const { dataset } = document.documentElement;
    dataset.theme = THEMES[(THEMES.indexOf(dataset.theme) + 1) % THEMES.length];
    const label = `Colours: ${dataset.theme}`;
    find("theme").setAttribute("aria-label", label);
    find("theme").title = label;
  });
}

document.title = spec.title;
for (const place of document.querySelectorAll(".title")) setText(place, spec.title);
listenForTheme();
askForBucket((bucket) => {
  find("connect").remove();
  find("app").hidden = false;
  find("live").insertBefore(find("theme"), find("leave"));
  find("main").focus({ preventScroll: true });
  new App(bucket);
});
