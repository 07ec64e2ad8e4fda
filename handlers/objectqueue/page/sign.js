// AWS Signature Version 4: the headers that prove who asks.

import { hex, hmac, sha256 } from "./sha256.js";

const ALGORITHM = "AWS4-HMAC-SHA256";
const encoder = new TextEncoder();

/**
 * The headers of a signed request, `given` ones included.
 * `who` = {key, secret, token}; `at` is a Date; `body` is a text.
 */
export async function signed({ method, url, headers: given = {}, body = "", who, region, at }) {
  const stamp = at.toISOString().replace(/[-:]|\.\d{3}/g, "");
  const day = stamp.slice(0, 8);
  const digest = hex(await sha256(encoder.encode(body)));
  const headers = { ...lowered(given), "x-amz-content-sha256": digest, "x-amz-date": stamp };
  if (who.token) headers["x-amz-security-token"] = who.token;
  const covered = { ...headers, host: url.host };
  const names = Object.keys(covered).sort();
  const request = [
    method,
    url.pathname,
    canonicalQuery(url.searchParams),
    ...names.map((name) => `${name}:${String(covered[name]).trim().replace(/\s+/g, " ")}`),
    "",
    names.join(";"),
    digest,
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = [ALGORITHM, stamp, scope, hex(await sha256(encoder.encode(request)))].join("\n");
  const signature = hex(await hmac(await signingKey(who.secret, day, region), encoder.encode(text)));
  headers.authorization = `${ALGORITHM} Credential=${who.key}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return headers;
}

/** As S3 wants paths and queries: everything but the unreserved characters of RFC 3986 is escaped. */
export function escaped(text) {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

export function escapedPath(key) {
  return key.split("/").map(escaped).join("/");
}

function canonicalQuery(parameters) {
  return Array.from(parameters, ([name, value]) => [escaped(name), escaped(value)])
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map((pair) => pair.join("="))
    .join("&");
}

async function signingKey(secret, day, region) {
  let key = encoder.encode(`AWS4${secret}`);
  for (const part of [day, region, "s3", "aws4_request"]) key = await hmac(key, encoder.encode(part));
  return key;
}

function lowered(headers) {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
