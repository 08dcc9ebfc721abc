/**
 * How long the built package takes from its command to its ready line, on the embedded store, and how much memory it holds
 * at rest: `npm run bench:start`. Needs a machine with nothing else to do.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildPackages } from "../../deploy/packages/build.ts";
import { residentMemory } from "./refresh/proc.ts";

const STARTS = 11;
/** How long after the ready line a service is at rest, ms. */
const REST_MS = 5_000;
const COMMAND = join(import.meta.dirname, "../../dist/packages/service/bin/session-service.cjs");

const directory = mkdtempSync(join(tmpdir(), "bench-start-"));
const env = { PATH: process.env.PATH, PORT: "0", ADMIN_PORT: "0", DATA_DIR: join(directory, "data") };

async function start(): Promise<{ readonly service: ChildProcess; readonly tookMs: number }> {
  const startedAt = performance.now();
  const service = spawn(process.execPath, [COMMAND], { env, stdio: ["ignore", "pipe", "ignore"] });
  await once(service.stdout, "data");
  return { service, tookMs: performance.now() - startedAt };
}

async function stop(service: ChildProcess): Promise<void> {
  const exited = once(service, "exit");
  service.kill("SIGINT");
  await exited;
}

buildPackages(["service"]);
const first = await start();
await stop(first.service);
const later: number[] = [];
while (later.length < STARTS) {
  const { service, tookMs } = await start();
  later.push(tookMs);
  await stop(service);
}
const { service } = await start();
await sleep(REST_MS);
const atRest = residentMemory(service.pid ?? 0);
await stop(service);
rmSync(directory, { recursive: true });

later.sort((a, b) => a - b);
const median = later[Math.floor(STARTS / 2)] ?? Number.NaN;
console.log(
  `first start ${first.tookMs.toFixed(0)} ms (compiles, makes keys and token); later ones ${median.toFixed(0)} ms ` +
    `(median of ${STARTS}); at rest ${atRest?.toFixed(0)} MiB; load ${loadavg()[0]?.toFixed(1)}`,
);
