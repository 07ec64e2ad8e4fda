// The time of the store, learned from the Date headers of its answers, so that a wrong clock of this computer harms nothing.

const SECOND = 1000;

export class Clock {
  // A Date header has whole seconds, and the answer took a while: each answer bounds the offset from both sides,
  // and the bounds of several answers together are far tighter than a second.
  #low = -Infinity;
  #high = Infinity;

  constructor(local = () => Date.now()) {
    this.local = local;
  }

  /** Whether the time of the store is known from a response. */
  get known() {
    return this.#high < Infinity;
  }

  /** How far the store's clock is ahead of this computer's, in milliseconds. */
  get offset() {
    return this.known ? (this.#low + this.#high) / 2 : 0;
  }

  /** Milliseconds since the epoch, as the store counts them. */
  now() {
    return this.local() + this.offset;
  }

  /** Takes note of a Date header of an answer to a request that was sent at `sent`, by this computer's clock. */
  learn(header, sent, received = this.local()) {
    const date = header ? Date.parse(header) : NaN;
    if (Number.isNaN(date)) return;
    const low = date - received;
    const high = date + SECOND - sent;
    const bothLow = Math.max(low, this.#low);
    const bothHigh = Math.min(high, this.#high);
    // Bounds that no longer meet mean that one of the clocks was set anew.
    [this.#low, this.#high] = bothLow <= bothHigh ? [bothLow, bothHigh] : [low, high];
  }
}
