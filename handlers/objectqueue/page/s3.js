// The bucket, as far as the page needs it: read, list, list versions, write on a condition. It never deletes.

import { escaped, escapedPath, signed } from "./sign.js";
import { parseXml } from "./xml.js";

const TRIES = 3;
const PAUSE_MS = 200;

/** The store answered with an error. */
export class S3Error extends Error {
  constructor({ status, code, message, request }) {
    super(message || code);
    this.status = status;
    this.code = code;
    this.request = request;
  }
}

/** No answer that the browser lets us see: the store is away, or its CORS rules do not allow this page. */
export class NoAnswer extends Error {
  constructor(request, cause) {
    super("no answer", { cause });
    this.request = request;
  }
}

export class Bucket {
  /** `address` is the URL that keys are appended to; `queue` is a prefix of all keys, or "". */
  constructor({ address, region, queue = "", who, clock }) {
    this.base = new URL(address);
    this.path = this.base.pathname.replace(/\/+$/, "");
    this.region = region;
    this.prefix = queue ? `${queue.replace(/^\/+|\/+$/g, "")}/` : "";
    this.who = who;
    this.clock = clock;
  }

  /**
   * The object {text, etag, version, size}; null where there is none; "same" where `etag` still is its ETag.
   * With `most`, an object of more bytes is not read: its text is null.
   */
  async get(key, { etag, version, most = Infinity } = {}) {
    const query = version ? { versionId: version } : {};
    const headers = etag ? { "if-none-match": etag } : {};
    const answer = await this.#read("GET", key, query, headers);
    if (answer.status === 304) return "same";
    if (answer.status === 404) return null;
    const size = Number(answer.headers.get("content-length") ?? NaN);
    const found = { etag: answer.headers.get("etag"), version: answer.headers.get("x-amz-version-id"), size };
    if (size > most) {
      await answer.body.cancel();
      return { ...found, text: null };
    }
    return { ...found, text: await answer.text() };
  }

  /** One page of keys below a prefix: {entries: [{key, etag, modified, size}], more}. */
  async list(prefix, { after = "", most = 1000 } = {}) {
    const query = { "list-type": "2", "encoding-type": "url", "max-keys": String(most), prefix: this.prefix + prefix };
    if (after) query["start-after"] = this.prefix + after;
    const root = parseXml(await (await this.#read("LIST", "", query)).text());
    const entries = root.all("Contents").map((entry) => ({
      key: this.#relative(entry.text("Key")),
      etag: entry.text("ETag"),
      modified: Date.parse(entry.text("LastModified")),
      size: Number(entry.text("Size")),
    }));
    return { entries, more: root.text("IsTruncated") === "true" };
  }

  /** All versions of exactly that key, newest first, without delete markers: [{version, etag, modified, latest}]. */
  async versions(key) {
    const found = [];
    let markers = {};
    for (;;) {
      const query = { versions: "", "encoding-type": "url", prefix: this.prefix + key, ...markers };
      const root = parseXml(await (await this.#read("LIST", "", query)).text());
      for (const entry of root.all("Version")) {
        if (this.#relative(entry.text("Key")) !== key) continue;
        found.push({
          version: entry.text("VersionId"),
          etag: entry.text("ETag"),
          modified: Date.parse(entry.text("LastModified")),
          latest: entry.text("IsLatest") === "true",
        });
      }
      const next = root.text("NextKeyMarker");
      if (root.text("IsTruncated") !== "true" || decoded(next) !== this.prefix + key) return found;
      markers = { "key-marker": decoded(next), "version-id-marker": root.text("NextVersionIdMarker") };
    }
  }

  /** Writes an object, if it still has the ETag `etag` where one is given. Never tries twice: the first may have won. */
  async put(key, text, { etag, tags } = {}) {
    const headers = { "content-type": "application/json" };
    if (etag) headers["if-match"] = etag;
    if (tags) headers["x-amz-tagging"] = new URLSearchParams(tags).toString();
    const answer = await this.#send("PUT", key, {}, headers, text);
    if (!answer.ok) throw await this.#error(answer, { kind: "PUT", key, tags });
    return { etag: answer.headers.get("etag"), version: answer.headers.get("x-amz-version-id") };
  }

  /** Gives an object these tags and no others; one that is gone needs none. */
  async tag(key, tags, version) {
    const query = version ? { tagging: "", versionId: version } : { tagging: "" };
    const set = Object.entries(tags ?? {}).map(([name, value]) => `<Tag><Key>${name}</Key><Value>${value}</Value></Tag>`);
    const body = `<Tagging><TagSet>${set.join("")}</TagSet></Tagging>`;
    const answer = await this.#send("PUT", key, query, { "content-type": "application/xml" }, body);
    if (!answer.ok && answer.status !== 404) throw await this.#error(answer, { kind: "PUT", key, tags: tags ?? {} });
  }

  async #read(kind, key, query, headers = {}) {
    const request = { kind, key: key || query.prefix, versions: "versions" in query || "versionId" in query };
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt === TRIES;
      let answer;
      try {
        answer = await this.#send(kind, key, query, headers);
      } catch (error) {
        if (last || !(error instanceof NoAnswer)) throw error;
      }
      if (answer) {
        if (answer.ok || answer.status === 304) return answer;
        const error = await this.#error(answer, request);
        if (answer.status === 404 && kind === "GET" && error.code !== "NoSuchBucket") return answer;
        if (last || !(this.#learned(error) || answer.status >= 500)) throw error;
      }
      await pause(PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random()));
    }
  }

  async #send(kind, key, query, headers, body) {
    const method = kind === "LIST" ? "GET" : kind;
    const url = new URL(this.base);
    url.pathname = `${this.path}/${escapedPath(key ? this.prefix + key : "")}`;
    url.search = Object.entries(query).map(([name, value]) => `${escaped(name)}=${escaped(value)}`).join("&");
    const at = new Date(this.clock.now());
    const all = await signed({ method, url, headers, body, who: this.who, region: this.region, at });
    const sent = this.clock.local();
    let answer;
    try {
      answer = await fetch(url, { method, headers: all, body, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" });
    } catch (error) {
      throw new NoAnswer({ kind, key: key || query.prefix }, error);
    }
    this.clock.learn(answer.headers.get("date"), sent);
    return answer;
  }

  // Two refusals say what would have been right: a wrong clock (the answer had a Date) and a wrong region.
  #learned(error) {
    if (error.code === "RequestTimeTooSkewed") return true;
    if (!error.region || error.region === this.region) return false;
    this.region = error.region;
    return true;
  }

  async #error(answer, request) {
    const text = await answer.text().catch(() => "");
    let code = "";
    let message = "";
    let region = "";
    try {
      const root = parseXml(text);
      [code, message, region] = [root.text("Code"), root.text("Message"), root.text("Region")];
    } catch {
      message = text.slice(0, 300);
    }
    const error = new S3Error({ status: answer.status, code: code || `HTTP ${answer.status}`, message, request });
    error.region = region;
    return error;
  }

  #relative(encodedKey) {
    return decoded(encodedKey).slice(this.prefix.length);
  }
}

function decoded(text) {
  return decodeURIComponent(text.replaceAll("+", "%20"));
}

function pause(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}
