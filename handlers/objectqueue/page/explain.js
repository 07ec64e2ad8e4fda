// What went wrong, in words that say what to do about it.

import { NoAnswer, S3Error } from "./s3.js";

const PERMISSIONS = { LIST: "s3:ListBucket", GET: "s3:GetObject", PUT: "s3:PutObject" };
const KINDS = { LIST: "list", GET: "read", PUT: "write" };

const ADVICE = {
  InvalidAccessKeyId: ["The access key is not known here", "Check the access key, and that the bucket address belongs to the same store."],
  SignatureDoesNotMatch: ["The secret key does not fit the access key", "Paste the secret again; a space at its end is enough to spoil it."],
  InvalidToken: ["The session token is not valid", "Get new short-lived credentials and paste all three parts of them."],
  ExpiredToken: ["The credentials have expired", "Get new short-lived credentials and connect again."],
  TokenRefreshRequired: ["The credentials have expired", "Get new short-lived credentials and connect again."],
  NoSuchBucket: ["There is no such bucket", "Check the bucket address; `qo init` makes the bucket."],
  SlowDown: ["The store asks to slow down", "The page goes on with its next refresh."],
  RequestTimeTooSkewed: ["The store's clock and this one differ too much", "Let this computer set its clock; the store's Date header could not be read."],
};

/** {title, text} for an error; `doing` says what was tried, such as "list the tasks". */
export function explained(error, doing) {
  if (error instanceof NoAnswer) {
    return {
      title: `Could not ${doing}: no answer`,
      text:
        "The store is away, or it does not let this page ask (CORS). If the page comes from another address than the " +
        "bucket, the bucket's CORS rules must allow GET, PUT and HEAD and all headers, and expose ETag, x-amz-version-id and " +
        "Date; `qo init` writes them.",
    };
  }
  if (!(error instanceof S3Error)) return { title: `Could not ${doing}`, text: String(error?.message ?? error) };
  if (ADVICE[error.code]) {
    const [title, text] = ADVICE[error.code];
    return { title, text };
  }
  if (error.status === 403 || error.status === 401) return denied(error, doing);
  if (error.status >= 500) {
    return { title: `Could not ${doing}: the store has trouble`, text: `It answered ${error.status} ${error.code}. The page tries again by itself.` };
  }
  return { title: `Could not ${doing}`, text: `The store answered ${error.status} ${error.code}: ${error.message}` };
}

function denied(error, doing) {
  const { kind, key } = error.request;
  return {
    title: `Not allowed to ${doing}`,
    text:
      `These credentials may not ${KINDS[kind]} ${key ? `“${key}”` : "this bucket"} (${error.code}). ` +
      `They need the permission ${permission(error.request)}.`,
  };
}

function permission({ kind, versions, tags }) {
  if (versions) return "s3:ListBucketVersions and s3:GetObjectVersion";
  return tags ? "s3:PutObject and s3:PutObjectTagging" : PERMISSIONS[kind];
}
