// The npm package sqs-consumer on one queue: node consumer.mjs CONSUMERS
//
// Each consumer takes ten at a time and deletes them in one call, which is the fastest that it can.

import { openSync, writeSync } from "node:fs";
import { SQSClient } from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const marks = openSync(process.env.BENCH_MARKS, "a", 0o600);
const sqs = new SQSClient({
  endpoint: process.env.BENCH_ENDPOINT_URL,
  region: process.env.AWS_REGION,
});

for (let number = 0; number < Number(process.argv[2]); number++) {
  const consumer = Consumer.create({
    queueUrl: process.env.BENCH_QUEUE_URL,
    sqs,
    batchSize: 10,
    waitTimeSeconds: 15,
    handleMessageBatch: async (messages) => {
      for (const message of messages) {
        const { event_id } = JSON.parse(message.Body);
        // The same clock as Python's time.monotonic_ns().
        writeSync(marks, `${process.hrtime.bigint()} ${event_id}\n`);
      }
      return messages;
    },
  });
  consumer.on("error", (error) => console.error(error.message));
  consumer.on("processing_error", (error) => console.error(error.message));
  consumer.start();
}
