// BullMQ as its documentation has it. `worker` drains; otherwise it produces as bench/peers/apps/producer.py does:
// `node bullmq_app.cjs <address> <kind> <count> <width>` prints one line of JSON.
const { createRequire } = require("node:module");
const fs = require("node:fs");
const { Queue, Worker } = createRequire(`${process.env.BENCH_NODE_MODULES}/`)("bullmq");

const NAME = "bench";
const WARM_UP = 3;

function connection(address) {
  const place = new URL(address);
  return {
    host: place.hostname,
    port: Number(place.port),
    password: decodeURIComponent(place.password),
    db: Number(place.pathname.slice(1) || 0),
    maxRetriesPerRequest: null,
  };
}

function work() {
  const runs = process.env.BENCH_RUNS && fs.openSync(process.env.BENCH_RUNS, "a");
  const starts = process.env.BENCH_STARTS && fs.openSync(process.env.BENCH_STARTS, "a");
  const worker = new Worker(
    NAME,
    async (job) => {
      if (job.name === "pickup") fs.writeSync(starts, `${(Date.now() / 1000 - job.data.sent).toFixed(6)}\n`);
      else fs.writeSync(runs, ".");
    },
    { connection: connection(process.env.REDIS_URL), concurrency: Number(process.env.BENCH_SLOTS || 1) },
  );
  process.on("SIGTERM", () => worker.close(true).finally(() => process.exit(0)));
}

async function singly(queue, count, inFlight) {
  let next = 0;
  const oneAfterTheOther = async () => {
    while (next < count) await queue.add("noop", { n: next++ });
  };
  await Promise.all(Array.from({ length: inFlight }, oneAfterTheOther));
}

async function inBulk(queue, count, width) {
  for (let first = 0; first < count; first += width) {
    const size = Math.min(width, count - first);
    await queue.addBulk(Array.from({ length: size }, (_, place) => ({ name: "noop", data: { n: first + place } })));
  }
}

async function nowAndThen(queue, count) {
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  for (let number = 0; number < count; number++) {
    await pause(20 + ((number * 37) % 50));
    await queue.add("pickup", { sent: Date.now() / 1000 });
  }
  await pause(200);
}

async function produce(address, kind, count, width) {
  const queue = new Queue(NAME, { connection: connection(address) });
  await queue.waitUntilReady();
  const found = { count };
  if (kind === "pickup") {
    await nowAndThen(queue, count);
  } else {
    if (kind === "single") await singly(queue, WARM_UP * width, width);
    else await inBulk(queue, width, width);
    const started = process.hrtime.bigint();
    const spent = process.cpuUsage();
    if (kind === "single") await singly(queue, count, width);
    else await inBulk(queue, count, width);
    const used = process.cpuUsage(spent);
    found.seconds = Number(process.hrtime.bigint() - started) / 1e9;
    found.cpu_s = (used.user + used.system) / 1e6;
  }
  await queue.close();
  console.log(JSON.stringify(found));
}

const [first, kind, count, width] = process.argv.slice(2);
if (first === "worker") work();
else produce(first, kind, Number(count), Number(width));
