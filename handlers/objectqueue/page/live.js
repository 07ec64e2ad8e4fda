// The automatic refresh: one at a time, paused by the reader or while the page is hidden.

export class Live {
  #timer = null;
  #running = null;
  #again = false;

  /** `work()` brings everything up to date; `changed()` is called when the state of the refresh changes. */
  constructor(work, changed) {
    this.work = work;
    this.changed = changed;
    this.paused = false;
    this.seconds = 5;
    this.busy = false;
    this.lastAt = null;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.#due()) this.now();
    });
  }

  /** Refreshes at once, or right after the refresh that is under way. */
  now() {
    clearTimeout(this.#timer);
    if (this.#running) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#run();
    return this.#running;
  }

  setPaused(paused) {
    this.paused = paused;
    this.#plan();
    this.changed();
    if (!paused && this.#due()) this.now();
  }

  setSeconds(seconds) {
    this.seconds = seconds;
    this.#plan();
    this.changed();
  }

  async #run() {
    this.busy = true;
    this.changed();
    do {
      this.#again = false;
      if (await this.work()) this.lastAt = Date.now();
    } while (this.#again);
    this.busy = false;
    this.#running = null;
    this.#plan();
    this.changed();
  }

  #due() {
    return !this.paused && Date.now() - (this.lastAt ?? 0) >= this.seconds * 1000;
  }

  #plan() {
    clearTimeout(this.#timer);
    if (this.paused || this.#running) return;
    this.#timer = setTimeout(() => (document.hidden ? this.#plan() : this.now()), this.seconds * 1000);
  }
}
