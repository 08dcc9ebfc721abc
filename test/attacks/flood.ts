/**
 * A thread that repeats one request at a given number of bytes per second, including the bytes that connections cost. It is a separate
 * thread so that its work does not delay honest clients in the same process.
 */
import { parentPort, workerData } from "node:worker_threads";
import { numbered } from "./requests.ts";
import type { FloodOptions } from "./worst-request.ts";
import { overHttp1, overHttp2 } from "./worst-request.ts";

const CONNECTIONS = 16;

const { url, address, protocol, candidate, bytesPerSecond } = workerData as FloodOptions;
const open = protocol === "HTTP/2" ? overHttp2 : overHttp1;
const senders = Array.from({ length: CONNECTIONS }, () => open(url, address));
const sentBytes = () => senders.reduce((all, sender) => all + sender.sentBytes(), 0);
const body = Buffer.from(candidate.body);
const started = performance.now();
let sent = 0;
let served = 0;
let isOver = false;
parentPort?.once("message", () => {
  isOver = true;
});
const floods = senders.map(async (sender) => {
  while (!isOver) {
    const dueBytes = ((performance.now() - started) / 1000) * bytesPerSecond;
    if (sentBytes() < dueBytes) {
      if ((await sender.send(numbered({ ...candidate, body }, sent++))) > 0) served++;
    } else await new Promise((resolve) => setTimeout(resolve, 1));
  }
});
await Promise.all(floods);
const seconds = (performance.now() - started) / 1000;
for (const sender of senders) sender.close();
parentPort?.postMessage({ sent, served, bytesPerSecond: sentBytes() / seconds });
