// The little XML that S3 answers with.

// Trusted types forbid every parser of markup but this one, and this one makes a document that is never shown.
const policy = globalThis.trustedTypes?.createPolicy("s3-xml", { createHTML: (text) => text });

/** The root element; a SyntaxError where the text is no XML. */
export function parseXml(text) {
  const parsed = new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "application/xml");
  if (parsed.querySelector("parsererror")) throw new SyntaxError("the answer is no XML");
  return new Node(parsed.documentElement);
}

class Node {
  constructor(element) {
    this.element = element;
  }

  /** The children of that name. */
  all(name) {
    return Array.from(this.element.children).filter((child) => child.localName === name).map((child) => new Node(child));
  }

  /** The text of the first child of that name, "" where there is none. */
  text(name) {
    const child = Array.from(this.element.children).find((candidate) => candidate.localName === name);
    return child ? child.textContent : "";
  }
}
