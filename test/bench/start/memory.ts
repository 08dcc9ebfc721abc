/**
 * Measures the memory of the built package, with the settings of the image: at rest, after logins and while sessions are refreshed. Counts
 * what a refresh allocates, and the full garbage collections, which delay requests. Other load on the machine hardly changes these figures,
 * but for the CPU time.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { startLoad } from "../../support/load.ts";
import { table } from "../machine.ts";
import { cpuTime, residentMemory } from "../refresh/proc.ts";
import { ADMIN_HEADERS, type Contender, CREATE_SESSION, pairOf } from "./package.ts";

const LOGINS = 2_100;
const CONNECTIONS = 32;
const WARM_UP = 10_000;
const REFRESHES = 50_000;
/** How long a service rests before its memory is measured, in ms. It collects the garbage of its start meanwhile. */
const REST_MS = 45_000;
const SAMPLE_MS = 200;
/** The flag of deploy/container/Dockerfile, and those that make V8 report its collections. */
const FLAGS = ["--max-semi-space-size=8", "--trace-gc", "--trace-gc-nvp"];

/** A collection as V8 reports it. Sizes are bytes. */
type Collection = {
  readonly gc: string;
  readonly allocated: number;
  readonly end_object_size: number;
  readonly new_space_survived: number;
};

const COLUMNS = {
  rest: "at rest",
  logins: `after ${LOGINS.toLocaleString("en")} logins`,
  mean: "while refreshing, mean",
  most: "at most",
} as const;

/**
 * The least that serves HTTP. It is CommonJS: an ES module that imports `node:http` takes 15 MiB more, because the names that it could import
 * include some of Node's implementation of fetch.
 */
const BARE = `require("node:http").createServer((_, response) => response.end())
  .listen(0, "127.0.0.1", () => console.log("ready"));`;

/** Returns the table of docs/why/performance.md. */
export async function memoryTable(contenders: readonly Contender[]): Promise<string> {
  const title = [
    "store",
    ...Object.values(COLUMNS),
    "allocated",
    "left in the old generation",
    "full collections in 100,000",
  ];
  const rows: string[][] = [];
  for (const contender of contenders) rows.push(await measure(contender));
  rows.push(["bare `node:http`", await measureBare(), ...title.slice(2).map(() => "")]);
  return table(title, rows);
}

async function measureBare(): Promise<string> {
  const flags = [...FLAGS, "--input-type=commonjs"];
  const bare = spawn(process.execPath, [...flags, "-e", BARE], { stdio: ["ignore", "pipe", "ignore"] });
  bare.stdout.resume();
  await once(bare.stdout, "data");
  await sleep(REST_MS);
  const cell = inMib(residentMemory(bare.pid ?? 0) ?? Number.NaN);
  bare.kill("SIGTERM");
  await once(bare, "exit");
  return cell;
}

const inMib = (memory: number) => `${memory.toFixed(0)} MiB`;

async function measure({ name: store, command, env }: Contender): Promise<string[]> {
  const all = { ...env, REUSE_INTERVAL: "0", RATE_LIMIT_REFRESH: "1000000/1s" };
  const service = spawn(process.execPath, [...FLAGS, command], { env: all, stdio: ["ignore", "pipe", "ignore"] });
  const pid = service.pid ?? 0;
  const memory = () => residentMemory(pid) ?? Number.NaN;
  const urls = Promise.withResolvers<{ public: string; admin: string }>();
  const collections: Collection[] = [];
  let rest = "";
  service.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith('{"event":"ready"')) urls.resolve(JSON.parse(line));
      const [, report] = / GC: (\{.*\})$/.exec(line) ?? [];
      if (report !== undefined) collections.push(JSON.parse(report) as Collection);
    }
  });
  const { public: url, admin } = await urls.promise;
  const megabytes: Record<keyof typeof COLUMNS, number> = { rest: 0, logins: 0, mean: 0, most: 0 };
  await sleep(REST_MS);
  megabytes.rest = memory();
  const cookies: string[] = [];
  while (cookies.length < LOGINS) cookies.push(await logIn(admin, `subject-${cookies.length}`));
  megabytes.logins = memory();

  const load = startLoad(url, "keep-alive", cookies.slice(0, CONNECTIONS));
  while (load.requests() < WARM_UP) await sleep(SAMPLE_MS);
  const [first, seen, cpu] = [load.requests(), collections.length, cpuTime(pid) ?? Number.NaN];
  const samples: number[] = [];
  while (load.requests() < first + REFRESHES) {
    samples.push(memory());
    await sleep(SAMPLE_MS);
  }
  const [count, used] = [load.requests() - first, (cpuTime(pid) ?? Number.NaN) - cpu];
  await load.stop();
  if (load.failures.length > 0) throw new Error(load.failures[0]);
  megabytes.mean = samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
  megabytes.most = Math.max(...samples);
  const measured = collections.slice(seen);
  const young = measured.filter(({ gc }) => gc === "s");
  const full = measured.length - young.length;
  const allocated = young.reduce((sum, each) => sum + each.allocated, 0) / count;
  service.kill("SIGTERM");
  await once(service, "exit");
  console.error(`${store}: ${((used / count) * 1e6).toFixed(0)} µs of CPU per refresh, ${count} refreshes`);
  const cells = Object.keys(COLUMNS).map((name) => inMib(megabytes[name as keyof typeof COLUMNS]));
  const garbage = [`${(allocated / 1000).toFixed(1)} kB`, `${(grownBy(measured) / count).toFixed(0)} bytes`];
  return [store, ...cells, ...garbage, ((full / count) * 100_000).toFixed(0)];
}

/**
 * Returns by how many bytes the old generation grew between collections of the young one. What these promote is a part of it only: V8 makes
 * some objects in the old generation.
 */
function grownBy(collections: readonly Collection[]): number {
  const old = ({ end_object_size: all, new_space_survived: young }: Collection) => all - young;
  let grown = 0;
  for (const [i, after] of collections.entries()) {
    const before = collections[i - 1];
    if (before?.gc === "s" && after.gc === "s") grown += old(after) - old(before);
  }
  return grown;
}

/** Returns the cookie of a new session. */
async function logIn(admin: string, subject: string): Promise<string> {
  const body = JSON.stringify({ subject });
  const response = await fetch(admin + CREATE_SESSION, { method: "POST", headers: ADMIN_HEADERS, body });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`CreateSession: ${response.status} ${text}`);
  return pairOf((JSON.parse(text) as { setCookie: string }).setCookie);
}
