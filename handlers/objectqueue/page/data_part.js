// The input or the output of a task as a tree. Large data lies in an object of its own, which the task refers to.

import { copyButton, h } from "./dom.js";
import { explained } from "./explain.js";
import { jsonText, parseJson, prettyJson } from "./json.js";
import { notice } from "./notices.js";
import { dataPlace, titled } from "./tasks.js";
import { setOpen, tree } from "./tree.js";

const READ_AT_ONCE = 2 * 1024 * 1024;

export class DataPart {
  #shown = null;

  constructor(bucket, field, refField) {
    this.bucket = bucket;
    this.field = field;
    this.refField = refField;
    this.body = h("div", { class: "tree" });
    this.tools = h("div", { class: "tools" });
    this.element = h("section", { id: `detail-${field}`, class: "data" }, h("header", {}, h("h3", {}, titled(field)), this.tools), this.body);
  }

  /** Shows the data of a task; what is open in the tree stays open as long as the data stays the same. */
  show(task) {
    const ref = task.fields.get(this.refField) ?? null;
    const value = task.fields.get(this.field) ?? null;
    const mark = `${task.id} ${jsonText(ref ?? value)}`;
    if (mark === this.#shown) return;
    this.#shown = mark;
    if (ref !== null) this.#follow(ref, mark);
    else this.#showValue(value);
  }

  #showValue(value) {
    const shown = tree(value);
    const open = (word, state) => h("button", { class: "link", type: "button", on: { click: () => setOpen(shown, state) } }, word);
    const branches = shown.matches("details") ? [open("Expand", true), open("Collapse", false)] : [];
    this.tools.replaceChildren(...branches, copyButton(prettyJson(value), `Copy the ${this.field}`));
    this.body.replaceChildren(shown);
  }

  async #follow(ref, mark, most = READ_AT_ONCE) {
    const { key, version } = dataPlace(ref);
    this.tools.replaceChildren();
    this.body.replaceChildren(h("p", { class: "faint" }, `Reading ${key} …`));
    const done = (...elements) => mark === this.#shown && this.body.replaceChildren(...elements);
    try {
      const found = await this.bucket.get(key, { version, most });
      if (!found) done(notice({ title: "The data is gone", text: `The task refers to “${key}”, and there is no such object.` }));
      else if (found.text === null) done(this.#offer(ref, mark, found.size));
      else if (mark === this.#shown) {
        this.#showValue(parseJson(found.text));
        this.body.append(h("p", { class: "faint" }, `From ${key}`));
      }
    } catch (error) {
      done(notice(explained(error, `read the ${this.field}`)));
    }
  }

  #offer(ref, mark, size) {
    const read = () => this.#follow(ref, mark, Infinity);
    const megabytes = (size / 1024 / 1024).toFixed(1);
    return h("p", {}, `This ${this.field} has ${megabytes} MB. `, h("button", { class: "link", type: "button", on: { click: read } }, "Read it anyway"));
  }
}
