// Route matching: this matcher and find-my-way (the router of Fastify), same routes, paths and process.
//
//     npm run bench:http [-- --json]

import FindMyWay from "find-my-way";
import { createMatcher, parseTemplate, type Route, type RouteTable } from "../../src/http/index.ts";
import { RichService } from "../http/gen/rich/v1/rich_pb.ts";

interface Row {
  readonly what: string;
  readonly ours: number;
  readonly findMyWay: number;
}

// Batches are shorter than a time slice, so that interrupted batches do not affect the median.
const rounds = 1_001;
const batch = 250;

const statics = Array.from({ length: 1_000 }, (_, i) => `/v1/static${i % 10}/path${i}/end`);
const variables = Array.from({ length: 1_000 }, (_, i) => `/v1/service${i % 50}/kind${i}/{a}/items/{b}`);
const rows: Row[] = [
  compare("1,000 static routes", statics, (i) => statics[i % statics.length] ?? ""),
  compare("1,000 routes with two variables", variables, (i) => {
    const kind = (i * 7919) % 1_000;
    return `/v1/service${kind % 50}/kind${kind}/x${i}/items/y${i}`;
  }),
];

if (process.argv.includes("--json")) {
  console.log(JSON.stringify({ unit: "ns at the median", rows }));
} else {
  console.log("nanoseconds for one match, median of batches");
  for (const { what, ours, findMyWay } of rows) {
    console.log(
      `${what.padEnd(34)} ours ${ours.toFixed(0).padStart(6)}   find-my-way ${findMyWay.toFixed(0).padStart(6)}   ratio ${(findMyWay / ours).toFixed(2)}`,
    );
  }
}
const slowest = Math.max(...rows.map((row) => row.ours));
if (slowest > 2_000) {
  console.error(`a match takes ${slowest.toFixed(0)} ns, more than the limit of 2,000`);
  process.exitCode = 1;
}

function compare(what: string, templates: readonly string[], path: (i: number) => string): Row {
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
  const matcher = createMatcher([table]);
  const router = FindMyWay();
  for (const template of templates) router.on("GET", template.replace(/\{(\w+)\}/g, ":$1"), () => {});
  const paths = Array.from({ length: batch }, (_, i) => path(i));
  let sink = 0;
  const ours = () => {
    for (const p of paths) if (matcher.match("GET", p).kind === "route") sink++;
  };
  const theirs = () => {
    for (const p of paths) if (router.find("GET", p) !== null) sink++;
  };
  const times: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
  for (let round = 0; round < rounds; round++) {
    times.ours.push(timed(ours));
    times.theirs.push(timed(theirs));
  }
  if (sink !== 2 * rounds * batch) throw new Error("a path matched no route");
  return { what, ours: median(times.ours), findMyWay: median(times.theirs) };
}

/** Nanoseconds per call in a batch. */
function timed(act: () => void): number {
  const start = process.hrtime.bigint();
  act();
  return Number(process.hrtime.bigint() - start) / batch;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
