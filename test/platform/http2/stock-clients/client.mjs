/** A stock grpc-js client with its defaults: one connection, a steady rate of calls. Prints how many succeeded and failed. */
import { setTimeout as sleep } from "node:timers/promises";
import { Client, credentials } from "@grpc/grpc-js";

const [address = "", method = "", rate = "", seconds = ""] = process.argv.slice(2);
const client = new Client(address, credentials.createInsecure());
const bytes = (value) => value;
const result = { succeeded: 0, failed: 0, first: "" };
let open = 0;
let wake = () => {};

function call() {
  open++;
  client.makeUnaryRequest(method, bytes, bytes, Buffer.alloc(0), (error) => {
    open--;
    if (error === null) result.succeeded++;
    else {
      result.failed++;
      result.first ||= error.message;
    }
    wake();
  });
}

const begunMs = performance.now();
for (let i = 0; i < Number(rate) * Number(seconds); i++) {
  const earlyMs = begunMs + (i * 1000) / Number(rate) - performance.now();
  if (earlyMs > 1) await sleep(earlyMs);
  while (open >= 200) {
    await new Promise((resolve) => {
      wake = resolve;
    });
  }
  call();
}
while (open > 0) {
  await new Promise((resolve) => {
    wake = resolve;
  });
}
client.close();
process.stdout.write(`${JSON.stringify(result)}\n`);
