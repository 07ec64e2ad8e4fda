// The way in: the bucket's address and short-lived credentials. They stay in the memory of this tab and are gone on reload.

import { Clock } from "./clock.js";
import { find } from "./dom.js";
import { explained } from "./explain.js";
import { notice } from "./notices.js";
import { Bucket } from "./s3.js";
import { shardPrefix, rules, SHARDS } from "./tasks.js";

// What people have in their clipboard: lines for a shell, or the JSON that a token service answers with.
const PASTED = {
  key: /(?:AWS_ACCESS_KEY_ID|AccessKeyId|aws_access_key_id)["']?\s*[=:]\s*["']?([^\s"',;]+)/,
  secret: /(?:AWS_SECRET_ACCESS_KEY|SecretAccessKey|aws_secret_access_key)["']?\s*[=:]\s*["']?([^\s"',;]+)/,
  token: /(?:AWS_SESSION_TOKEN|SessionToken|aws_session_token)["']?\s*[=:]\s*["']?([^\s"',;]+)/,
  region: /(?:S3_REGION|AWS_REGION)["']?\s*[=:]\s*["']?([^\s"',;]+)/,
  queue: /QO_QUEUE["']?\s*[=:]\s*["']?([^\s"',;]+)/,
};

/** Asks for the way in until it works, then calls `entered(bucket)`. */
export function askForBucket(entered) {
  const form = find("connect-form");
  for (const [name, value] of Object.entries(guessed())) form.elements[name].value = value;
  form.addEventListener("paste", (event) => takePasted(form, event));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const submit = find("connect-button");
    submit.disabled = true;
    try {
      const bucket = bucketOf(form);
      await bucket.list(shardPrefix(rules.object, SHARDS[0]), { most: 1 });
      allowOnly(bucket.base.origin);
      form.reset();
      entered(bucket);
    } catch (error) {
      find("connect-problem").replaceChildren(notice(explained(error, "open the bucket")));
    } finally {
      submit.disabled = false;
    }
  });
  find(form.elements.address.value ? "field-key" : "field-address").focus();
  form.dataset.ready = "yes";
}

// The page usually lies in the bucket that it shows: everything before /ui/ is the bucket's address.
function guessed() {
  const asked = new URLSearchParams(location.search);
  const place = /^(.*)\/ui\/[^/]*$/.exec(location.pathname);
  const inName = /(?:^|\.)s3[.-]([a-z]{2}(?:-[a-z]+)+-\d)\./.exec(location.hostname);
  return {
    address: place && location.protocol.startsWith("http") ? location.origin + place[1] : "",
    region: asked.get("region") ?? inName?.[1] ?? "us-east-1",
    queue: asked.get("queue") ?? "",
  };
}

function bucketOf(form) {
  const value = (name) => form.elements[name].value.trim();
  let address;
  try {
    address = new URL(value("address"));
  } catch {
    throw new Error("The bucket address must be a URL such as https://s3.example.com/my-bucket.");
  }
  const who = { key: value("key"), secret: value("secret"), token: value("token") };
  return new Bucket({ address, region: value("region"), queue: value("queue"), who, clock: new Clock() });
}

function takePasted(form, event) {
  const text = event.clipboardData.getData("text");
  const found = Object.entries(PASTED).map(([name, pattern]) => [name, pattern.exec(text)?.[1]]);
  if (!found.some(([, value]) => value)) return;
  event.preventDefault();
  for (const [name, value] of found) if (value) form.elements[name].value = value;
  if (form.elements.token.value) find("token-part").open = true;
  find("connect-button").focus();
}

// From here on the page can talk to that one place only: a second policy can only make the first one stricter.
function allowOnly(origin) {
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = `connect-src ${origin}`;
  document.head.append(policy);
}
