// Compares the route matcher of the HTTP layer with find-my-way (the router of Fastify), on the same routes and paths, in one process.
//
//     npm run bench:http [-- --json] [--baseline DIRECTORY]
//
// `--baseline` adds the matcher of another checkout to the comparison.

import { join } from "node:path";
import FindMyWay from "find-my-way";
import {
  createMatcher,
  type Matcher,
  parseTemplate,
  type Route,
  type RouteTable,
} from "../../src/connect-http-routes/index.ts";
import { RichService } from "../connect-http-routes/gen/rich/v1/rich_pb.ts";
import { median } from "../support/median.ts";

interface Row {
  readonly what: string;
  /** Nanoseconds per match, the median of batches. */
  readonly ours: number;
  /** Nanoseconds per match for find-my-way; undefined if the path has a custom verb, which that router does not support. */
  readonly findMyWay: number | undefined;
  readonly baseline: number | undefined;
}

// Batches are shorter than a time slice, so that interrupted batches do not affect the median.
const rounds = 1_001;
const batch = 250;
/** How much slower than find-my-way our matcher may be, as a factor. */
const LIMIT = 1.2;

const at = process.argv.indexOf("--baseline");
const other = at === -1 ? undefined : (process.argv[at + 1] as string);
const baselineModule =
  other &&
  ((await import(join(process.cwd(), other, "src/connect-http-routes/index.ts"))) as {
    createMatcher: typeof createMatcher;
  });

const kindOf = (i: number, count: number) => (i * 7919) % count;
const list = (count: number, template: (i: number) => string) => Array.from({ length: count }, (_, i) => template(i));
const two = (count: number) => list(count, (i) => `/v1/service${i % 50}/kind${i}/{a}/items/{b}`);
const pathOfTwo = (count: number) => (i: number) => {
  const kind = kindOf(i, count);
  return `/v1/service${kind % 50}/kind${kind}/x${i}/items/y${i}`;
};
const statics = list(1_000, (i) => `/v1/static${i % 10}/path${i}/end`);
const rows: Row[] = [
  compare("unmatched, 1,000 routes", two(1_000), (i) => `/v1/service${i % 50}/kind${i}/nothing`, false),
  compare("1,000 static routes", statics, (i) => statics[i % statics.length] ?? ""),
  compare(
    "1,000 routes with one variable",
    list(1_000, (i) => `/v1/kind${i}/{a}`),
    (i) => `/v1/kind${kindOf(i, 1_000)}/x${i}`,
  ),
  compare("1,000 routes with two variables", two(1_000), pathOfTwo(1_000)),
  compare("13,000 routes with two variables", two(13_000), pathOfTwo(13_000)),
  compare(
    "1,000 routes with a verb",
    list(1_000, (i) => `/v1/kind${i}/{a}:run${i % 7}`),
    (i) => `/v1/kind${kindOf(i, 1_000)}/x${i}:run${kindOf(i, 1_000) % 7}`,
  ),
];

if (process.argv.includes("--json")) {
  console.log(JSON.stringify({ unit: "ns at the median", rows }));
} else {
  console.log("nanoseconds for one match, median of batches");
  for (const { what, ours, findMyWay, baseline } of rows) {
    const against = (name: string, ns: number | undefined) =>
      ns === undefined ? "" : `   ${name} ${ns.toFixed(0).padStart(6)} (ours / it ${(ours / ns).toFixed(2)})`;
    console.log(
      `${what.padEnd(34)} ours ${ours.toFixed(0).padStart(6)}${against("find-my-way", findMyWay)}${against("baseline", baseline)}`,
    );
  }
}
for (const { what, ours, findMyWay } of rows) {
  if (findMyWay === undefined || ours <= LIMIT * findMyWay) continue;
  console.error(`${what}: ${(ours / findMyWay).toFixed(2)} of find-my-way, the limit is ${LIMIT}`);
  process.exitCode = 1;
}

function compare(what: string, templates: readonly string[], path: (i: number) => string, matches = true): Row {
  const routes = templates.map(
    (template): Route => ({
      rpc: "echo",
      method: "GET",
      template,
      ...parseTemplate(template),
      body: "",
      responseBody: "",
    }),
  );
  const table: RouteTable = { service: RichService, routes };
  const hasVerbs = templates.some((template) => template.includes("}:"));
  const router = hasVerbs ? undefined : FindMyWay();
  for (const template of templates) router?.on("GET", template.replace(/\{(\w+)\}/g, ":$1"), () => {});
  const paths = Array.from({ length: batch }, (_, i) => path(i));
  let sink = 0;
  const search = (matcher: Matcher) => () => {
    for (const p of paths) if (matcher.match("GET", p).kind === "route") sink++;
  };
  const contenders: [name: string, act: () => void][] = [["ours", search(createMatcher([table]))]];
  if (baselineModule) contenders.push(["baseline", search(baselineModule.createMatcher([table]))]);
  if (router) {
    const act = () => {
      for (const p of paths) if (router.find("GET", p) !== null) sink++;
    };
    contenders.push(["findMyWay", act]);
  }
  const times = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    // The first contender in a round pays for loading the paths into the CPU's cache, so the contenders take turns in being first.
    for (let turn = 0; turn < contenders.length; turn++) {
      const [name, act] = contenders[(round + turn) % contenders.length] as (typeof contenders)[number];
      const own = times.get(name) ?? [];
      times.set(name, own);
      own.push(timed(act));
    }
  }
  if (sink !== (matches ? times.size * rounds * batch : 0)) throw new Error(`${what}: wrong number of matches`);
  const medianOf = (name: string) => {
    const own = times.get(name);
    return own && median(own);
  };
  return {
    what,
    ours: medianOf("ours") ?? Number.NaN,
    findMyWay: medianOf("findMyWay"),
    baseline: medianOf("baseline"),
  };
}

/** Returns the nanoseconds per call in a batch. */
function timed(act: () => void): number {
  const start = process.hrtime.bigint();
  act();
  return Number(process.hrtime.bigint() - start) / batch;
}
