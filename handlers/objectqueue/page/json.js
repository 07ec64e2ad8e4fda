// JSON without loss: a rewritten task must keep every number and the order of every key as its author wrote them.
// Objects become Maps, and a number that JavaScript would change becomes an ExactNumber.

export class ExactNumber {
  constructor(text) {
    this.text = text;
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
const WORDS = [["true", true], ["false", false], ["null", null]];

/** The value of a text; a SyntaxError says where it is no JSON. */
export function parseJson(text) {
  const reader = new Reader(text);
  const value = reader.value();
  reader.end();
  return value;
}

/** The text of a value, on one line. */
export function jsonText(value) {
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonText).join(", ")}]`;
  if (value instanceof Map) {
    return `{${Array.from(value, ([key, item]) => `${JSON.stringify(key)}: ${jsonText(item)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

/** The text of a value, indented for people. */
export function prettyJson(value, indent = "") {
  const deeper = `${indent}  `;
  if (Array.isArray(value) && value.length) {
    return `[\n${value.map((item) => deeper + prettyJson(item, deeper)).join(",\n")}\n${indent}]`;
  }
  if (value instanceof Map && value.size) {
    const members = Array.from(value, ([key, item]) => `${deeper}${JSON.stringify(key)}: ${prettyJson(item, deeper)}`);
    return `{\n${members.join(",\n")}\n${indent}}`;
  }
  return jsonText(value);
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  value() {
    this.#skipSpace();
    const first = this.text[this.at];
    let value;
    if (first === "{") value = this.#object();
    else if (first === "[") value = this.#array();
    else if (first === '"') value = this.#string();
    else value = this.#numberOrWord();
    this.#skipSpace();
    return value;
  }

  end() {
    if (this.at < this.text.length) this.#fail();
  }

  #object() {
    const members = new Map();
    this.at += 1;
    this.#skipSpace();
    if (this.#take("}")) return members;
    do {
      this.#skipSpace();
      const key = this.#string();
      this.#skipSpace();
      if (!this.#take(":")) this.#fail();
      members.set(key, this.value());
    } while (this.#take(","));
    if (!this.#take("}")) this.#fail();
    return members;
  }

  #array() {
    const items = [];
    this.at += 1;
    this.#skipSpace();
    if (this.#take("]")) return items;
    do items.push(this.value());
    while (this.#take(","));
    if (!this.#take("]")) this.#fail();
    return items;
  }

  #string() {
    if (this.text[this.at] !== '"') this.#fail();
    let end = this.at;
    do {
      end = this.text.indexOf('"', end + 1);
      if (end < 0) this.#fail();
    } while (this.#backslashesBefore(end) % 2);
    const start = this.at;
    this.at = end + 1;
    try {
      return JSON.parse(this.text.slice(start, this.at));
    } catch {
      this.at = start;
      return this.#fail();
    }
  }

  #numberOrWord() {
    const source = this.#match(NUMBER);
    if (source !== null) return String(Number(source)) === source ? Number(source) : new ExactNumber(source);
    for (const [word, value] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.#fail();
  }

  #backslashesBefore(place) {
    let first = place;
    while (this.text[first - 1] === "\\") first -= 1;
    return place - first;
  }

  #take(sign) {
    if (this.text[this.at] !== sign) return false;
    this.at += 1;
    return true;
  }

  #match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  #skipSpace() {
    this.#match(SPACE);
  }

  #fail() {
    throw new SyntaxError(`no JSON at character ${this.at + 1}`);
  }
}
