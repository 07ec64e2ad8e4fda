// Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
export const spec = {
  "system": "objectqueue",
  "title": "Task queue in object storage",
  "doc": "A bucket of any S3 store is the whole queue: every task is one object that is changed by conditional writes, its versions are its history, and small objects hint at what waits and what is leased. There is no server: workers, the monitor, the command line and the page in the browser all work on the bucket itself.",
  "principal": "page",
  "task": {
    "key": "id",
    "state": "status",
    "created": "created_at",
    "updated": "updated_at",
    "ended": "completed_at",
    "failure": "last_error",
    "retries": {
      "count": "retry_count",
      "limit": "max_retries"
    },
    "object": "tasks/{shard}/{id}.json",
    "revision": "rev",
    "shard": {
      "field": "shard",
      "digits": 1
    },
    "schema": {
      "field": "schema_version",
      "value": 1
    },
    "states": [
      {
        "name": "PENDING",
        "word": "Pending",
        "doc": "It waits for a worker, and perhaps for its time to come.",
        "initial": true,
        "final": false
      },
      {
        "name": "RUNNING",
        "word": "Running",
        "doc": "A worker has taken it.",
        "initial": false,
        "final": false
      },
      {
        "name": "COMPLETED",
        "word": "Completed",
        "doc": "It was done.",
        "initial": false,
        "final": false
      },
      {
        "name": "FAILED",
        "word": "Failed",
        "doc": "It failed for good, or too often. It is tried again only when someone wants it.",
        "initial": false,
        "final": false
      },
      {
        "name": "ARCHIVED",
        "word": "Archived",
        "doc": "It has ended and was put out of sight; the bucket may remove it.",
        "initial": false,
        "final": false
      }
    ],
    "indexes": {
      "ready": {
        "key": "ready/{shard}/{available_at}/{id}",
        "time": "available_at",
        "in": [
          "PENDING"
        ]
      },
      "leases": {
        "key": "leases/{shard}/{lease_expires_at}/{id}",
        "time": "lease_expires_at",
        "in": [
          "RUNNING"
        ]
      }
    },
    "hint": [
      "attempt",
      "retry_count",
      "rev"
    ],
    "lease": {
      "state": "RUNNING",
      "owner": "worker_id",
      "expires": "lease_expires_at",
      "fence": "attempt",
      "seconds": "timeout_seconds",
      "oldest_by": "available_at",
      "token": "lease_id",
      "only": "task_type"
    },
    "refs": {
      "input": "input_ref",
      "output": "output_ref"
    },
    "retires": {
      "tag": "qo-status",
      "value": "archived",
      "in": [
        "ARCHIVED"
      ],
      "from": "archived_from"
    },
    "edges": [
      {
        "name": "claim",
        "doc": "A worker takes the task when its time has come.",
        "from": [
          "PENDING"
        ],
        "to": "RUNNING",
        "by": [
          "worker"
        ],
        "where": null,
        "stamps": [
          "updated_at"
        ],
        "sets": {},
        "clear": [
          "progress"
        ],
        "increment": []
      },
      {
        "name": "complete",
        "doc": "The handler did it.",
        "from": [
          "RUNNING"
        ],
        "to": "COMPLETED",
        "by": [
          "worker"
        ],
        "where": null,
        "stamps": [
          "completed_at",
          "updated_at"
        ],
        "sets": {},
        "clear": [
          "lease_expires_at",
          "lease_id"
        ],
        "increment": []
      },
      {
        "name": "retry",
        "doc": "The handler failed in a way that may pass, took too long, or its worker was not heard of before the lease ended.",
        "from": [
          "RUNNING"
        ],
        "to": "PENDING",
        "by": [
          "worker",
          "monitor"
        ],
        "where": null,
        "stamps": [
          "updated_at"
        ],
        "sets": {},
        "clear": [
          "lease_expires_at",
          "lease_id",
          "worker_id"
        ],
        "increment": [
          "retry_count"
        ]
      },
      {
        "name": "release",
        "doc": "The worker is told to stop and gives back what it has not done. That is no failure.",
        "from": [
          "RUNNING"
        ],
        "to": "PENDING",
        "by": [
          "worker"
        ],
        "where": null,
        "stamps": [
          "available_at",
          "updated_at"
        ],
        "sets": {
          "last_error": "shutdown"
        },
        "clear": [
          "lease_expires_at",
          "lease_id",
          "worker_id"
        ],
        "increment": []
      },
      {
        "name": "fail",
        "doc": "The handler says that it never works, or it has failed as often as it may.",
        "from": [
          "RUNNING"
        ],
        "to": "FAILED",
        "by": [
          "worker",
          "monitor"
        ],
        "where": null,
        "stamps": [
          "completed_at",
          "updated_at"
        ],
        "sets": {},
        "clear": [
          "lease_expires_at",
          "lease_id"
        ],
        "increment": []
      },
      {
        "name": "cancel",
        "doc": "Nobody wants it any more.",
        "from": [
          "PENDING"
        ],
        "to": "FAILED",
        "by": [
          "client",
          "page"
        ],
        "where": null,
        "stamps": [
          "completed_at",
          "updated_at"
        ],
        "sets": {
          "last_error": "cancelled"
        },
        "clear": [],
        "increment": []
      },
      {
        "name": "cancel_running",
        "doc": "Nobody wants it any more; its worker finds out when it next writes.",
        "from": [
          "RUNNING"
        ],
        "to": "FAILED",
        "by": [
          "client",
          "page"
        ],
        "where": null,
        "stamps": [
          "completed_at",
          "updated_at"
        ],
        "sets": {
          "last_error": "cancelled"
        },
        "clear": [
          "lease_expires_at",
          "lease_id"
        ],
        "increment": []
      },
      {
        "name": "replay",
        "doc": "Someone wants it to be tried again, with all its retries.",
        "from": [
          "FAILED"
        ],
        "to": "PENDING",
        "by": [
          "client",
          "page"
        ],
        "where": null,
        "stamps": [
          "available_at",
          "updated_at"
        ],
        "sets": {
          "retry_count": 0
        },
        "clear": [
          "completed_at",
          "worker_id"
        ],
        "increment": []
      },
      {
        "name": "archive_completed",
        "doc": "Someone puts it out of sight.",
        "from": [
          "COMPLETED"
        ],
        "to": "ARCHIVED",
        "by": [
          "client",
          "page"
        ],
        "where": null,
        "stamps": [
          "updated_at"
        ],
        "sets": {
          "archived_from": "Completed"
        },
        "clear": [],
        "increment": []
      },
      {
        "name": "archive_failed",
        "doc": "Someone puts it out of sight.",
        "from": [
          "FAILED"
        ],
        "to": "ARCHIVED",
        "by": [
          "client",
          "page"
        ],
        "where": null,
        "stamps": [
          "updated_at"
        ],
        "sets": {
          "archived_from": "Failed"
        },
        "clear": [],
        "increment": []
      },
      {
        "name": "unarchive_completed",
        "doc": "Someone wants to see it again.",
        "from": [
          "ARCHIVED"
        ],
        "to": "COMPLETED",
        "by": [
          "client",
          "page"
        ],
        "where": {
          "archived_from": "Completed"
        },
        "stamps": [
          "updated_at"
        ],
        "sets": {},
        "clear": [
          "archived_from"
        ],
        "increment": []
      },
      {
        "name": "unarchive_failed",
        "doc": "Someone wants to see it again.",
        "from": [
          "ARCHIVED"
        ],
        "to": "FAILED",
        "by": [
          "client",
          "page"
        ],
        "where": {
          "archived_from": "Failed"
        },
        "stamps": [
          "updated_at"
        ],
        "sets": {},
        "clear": [
          "archived_from"
        ],
        "increment": []
      },
      {
        "name": "replay_archived",
        "doc": "Someone wants a failed one to be tried again that was put out of sight.",
        "from": [
          "ARCHIVED"
        ],
        "to": "PENDING",
        "by": [
          "client",
          "page"
        ],
        "where": {
          "archived_from": "Failed"
        },
        "stamps": [
          "available_at",
          "updated_at"
        ],
        "sets": {
          "retry_count": 0
        },
        "clear": [
          "archived_from",
          "completed_at",
          "worker_id"
        ],
        "increment": []
      }
    ],
    "updates": [
      {
        "name": "advance",
        "doc": "The handler says how far it is.",
        "in": [
          "RUNNING"
        ],
        "from_request": [
          "progress"
        ]
      }
    ],
    "fields": [
      {
        "name": "id",
        "type": "uuid",
        "optional": false,
        "doc": ""
      },
      {
        "name": "schema_version",
        "type": "uint32",
        "optional": false,
        "doc": "By which layout it was written."
      },
      {
        "name": "rev",
        "type": "uint64",
        "optional": false,
        "doc": "How often it was written, so that no two versions are alike."
      },
      {
        "name": "task_type",
        "type": "string",
        "optional": false,
        "doc": "Which handler does it."
      },
      {
        "name": "shard",
        "type": "string",
        "optional": false,
        "doc": "The first hex digit of its id."
      },
      {
        "name": "status",
        "type": "TaskStatus",
        "optional": false,
        "doc": ""
      },
      {
        "name": "archived_from",
        "type": "TaskStatus",
        "optional": true,
        "doc": "What it was before it was archived."
      },
      {
        "name": "available_at",
        "type": "timestamp",
        "optional": false,
        "doc": "It is not taken before."
      },
      {
        "name": "lease_expires_at",
        "type": "timestamp",
        "optional": true,
        "doc": ""
      },
      {
        "name": "input",
        "type": "json",
        "optional": false,
        "doc": "What its handler gets."
      },
      {
        "name": "input_ref",
        "type": "DataRef",
        "optional": true,
        "doc": "Where its input is if it is long."
      },
      {
        "name": "output",
        "type": "json",
        "optional": true,
        "doc": "What its handler gave."
      },
      {
        "name": "output_ref",
        "type": "DataRef",
        "optional": true,
        "doc": "Where its output is if it is long."
      },
      {
        "name": "progress",
        "type": "json",
        "optional": true,
        "doc": "What its handler said last of how far it is."
      },
      {
        "name": "timeout_seconds",
        "type": "uint32",
        "optional": false,
        "doc": "How long an attempt may take."
      },
      {
        "name": "max_retries",
        "type": "uint32",
        "optional": false,
        "doc": ""
      },
      {
        "name": "retry_count",
        "type": "uint32",
        "optional": false,
        "doc": "How often it failed and was put back."
      },
      {
        "name": "retry_policy",
        "type": "RetryPolicy",
        "optional": false,
        "doc": ""
      },
      {
        "name": "created_at",
        "type": "timestamp",
        "optional": false,
        "doc": ""
      },
      {
        "name": "updated_at",
        "type": "timestamp",
        "optional": false,
        "doc": ""
      },
      {
        "name": "completed_at",
        "type": "timestamp",
        "optional": true,
        "doc": "When it was completed, or failed for good."
      },
      {
        "name": "worker_id",
        "type": "string",
        "optional": true,
        "doc": "Who works on it, or did last."
      },
      {
        "name": "lease_id",
        "type": "string",
        "optional": true,
        "doc": "Tells one taking from every other."
      },
      {
        "name": "attempt",
        "type": "uint32",
        "optional": false,
        "doc": "How often it was taken."
      },
      {
        "name": "last_error",
        "type": "string",
        "optional": true,
        "doc": ""
      },
      {
        "name": "idempotency_key",
        "type": "string",
        "optional": true,
        "doc": ""
      }
    ]
  },
  "worker": {
    "key": "worker_id",
    "state": "status",
    "created": "started_at",
    "updated": "last_heartbeat",
    "ended": null,
    "failure": null,
    "retries": null,
    "object": "workers/{worker_id}.json",
    "revision": "rev",
    "shard": null,
    "schema": {
      "field": "schema_version",
      "value": 1
    },
    "states": [
      {
        "name": "ACTIVE",
        "word": "Active",
        "doc": "It works. One that is not heard of any more says so for ever.",
        "initial": true,
        "final": false
      }
    ],
    "indexes": {},
    "hint": [],
    "lease": null,
    "refs": {},
    "retires": null,
    "edges": [],
    "updates": [
      {
        "name": "beat",
        "doc": "The worker says that it lives and what it does.",
        "in": [
          "ACTIVE"
        ],
        "from_request": [
          "current_task",
          "current_tasks",
          "tasks_completed",
          "tasks_failed",
          "leases_lost"
        ]
      }
    ],
    "fields": [
      {
        "name": "worker_id",
        "type": "string",
        "optional": false,
        "doc": ""
      },
      {
        "name": "schema_version",
        "type": "uint32",
        "optional": false,
        "doc": ""
      },
      {
        "name": "rev",
        "type": "uint64",
        "optional": false,
        "doc": ""
      },
      {
        "name": "status",
        "type": "WorkerStatus",
        "optional": false,
        "doc": ""
      },
      {
        "name": "started_at",
        "type": "timestamp",
        "optional": false,
        "doc": ""
      },
      {
        "name": "last_heartbeat",
        "type": "timestamp",
        "optional": false,
        "doc": ""
      },
      {
        "name": "shards",
        "type": "repeated string",
        "optional": false,
        "doc": "Where it looks for tasks."
      },
      {
        "name": "task_types",
        "type": "repeated string",
        "optional": false,
        "doc": "What it has handlers for."
      },
      {
        "name": "current_task",
        "type": "string",
        "optional": true,
        "doc": "The task that it has had longest."
      },
      {
        "name": "current_tasks",
        "type": "repeated string",
        "optional": false,
        "doc": ""
      },
      {
        "name": "tasks_completed",
        "type": "uint64",
        "optional": false,
        "doc": "Since it started."
      },
      {
        "name": "tasks_failed",
        "type": "uint64",
        "optional": false,
        "doc": "Attempts that failed since it started, also those that are tried again."
      },
      {
        "name": "leases_lost",
        "type": "uint64",
        "optional": false,
        "doc": "Attempts whose outcome counted for nothing."
      },
      {
        "name": "instance",
        "type": "string",
        "optional": true,
        "doc": "Tells one start of a worker from every other of the same name; whoever has the name writes its own."
      },
      {
        "name": "process",
        "type": "string",
        "optional": true,
        "doc": "Machine, process namespace, number and start time of its process, where they are known."
      }
    ],
    "heartbeat": "last_heartbeat",
    "stale_after_seconds": 60
  }
};
