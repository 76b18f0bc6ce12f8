// fauxqs on 127.0.0.1, with what the benchmark needs in the path of each call: a count by queue and
// action, an added latency, and a gate that keeps a queue's messages back while it is being filled.
// In the server itself, because a proxy in front of it would share the cores with what is measured.

import { setTimeout as sleep } from "node:timers/promises";
import { buildApp } from "fauxqs";

const EMPTY_POLL_MS = 100;

const [port, region] = process.argv.slice(2);
const app = buildApp({ logger: false, defaultRegion: region });
let latencyMs = 0;
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
app.put("/_bench/gate/:queue", async (request) => {
  closed.add(request.params.queue);
  return {};
});
app.delete("/_bench/gate/:queue", async (request) => {
  closed.delete(request.params.queue);
  return {};
});

await app.listen({ port: Number(port), host: "127.0.0.1" });
