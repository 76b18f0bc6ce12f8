// fauxqs on 127.0.0.1, with what the benchmark needs in the path of each call: a count by queue and
// action, an added latency, a gate that keeps a queue's messages back while it is being filled, and
// senders that are answered late, with 503, or never.
// In the server itself, because a proxy in front of it would share the cores with what is measured.

import { setTimeout as sleep } from "node:timers/promises";
import { buildApp } from "fauxqs";

const EMPTY_POLL_MS = 100;
const SLOW_MS = 1000;

const [port, region] = process.argv.slice(2);
const app = buildApp({ logger: false, defaultRegion: region });
let latencyMs = 0;
let health = "healthy";
let counts = {};
const closed = new Set();

app.addHook("preHandler", async (request, reply) => {
  const target = request.headers["x-amz-target"];
  if (!target) return;
  const action = target.slice(target.lastIndexOf(".") + 1);
  const queue = (request.body?.QueueUrl ?? "").split("/").pop();
  const calls = (counts[queue] ??= {});
  calls[action] = (calls[action] ?? 0) + 1;
  if (latencyMs) await sleep(latencyMs);
  if (action.startsWith("SendMessage")) {
    if (health === "slow") await sleep(SLOW_MS);
    if (health === "hanging") await new Promise(() => {});
    if (health === "refusing")
      return reply.code(503).type("application/x-amz-json-1.0")
        .send(`{"__type":"com.amazonaws.sqs#ServiceUnavailable","message":"told to refuse"}`);
  }
  if (action === "ReceiveMessage" && closed.has(queue)) {
    await sleep(EMPTY_POLL_MS);
    return reply.type("application/x-amz-json-1.0").send("{}");
  }
});

app.get("/_bench/counts/:queue", async (request) => counts[request.params.queue] ?? {});
app.delete("/_bench/counts/:queue", async (request) => {
  delete counts[request.params.queue];
  return {};
});
app.put("/_bench/latency/:ms", async (request) => {
  latencyMs = Number(request.params.ms);
  return {};
});
app.put("/_bench/health/:health", async (request) => {
  health = request.params.health;
  return {};
});
app.put("/_bench/gate/:queue", async (request) => {
  closed.add(request.params.queue);
  return {};
});
app.delete("/_bench/gate/:queue", async (request) => {
  closed.delete(request.params.queue);
  return {};
});

await app.listen({ port: Number(port), host: "127.0.0.1" });
