/**
 * `npm run search` runs the searches of rotation.search.test.ts with more requests in flight. With DEPTH=1 it takes seconds, and with
 * each further level ten times as long.
 */
import { compareNewness } from "../../../../../src/service/session/rotation/presented-cookie.ts";
import { decide } from "../../../../../src/service/session/rotation/rotation.ts";
import { type Assumptions, browser } from "./browser.ts";
import { explore } from "./explore.ts";
import { holders } from "./holders.ts";
import { pages } from "./pages.ts";
import { poller } from "./poller.ts";
import { DENSE, grid } from "./time.ts";

const depth = Number(process.env.DEPTH ?? 2);

type Search = Omit<Assumptions, "decide"> & { readonly name: string };
const SEARCHES: readonly (readonly Search[])[] = [
  [
    { name: "2 in flight, any times", time: DENSE, inFlight: 2 },
    { name: "4 in flight, multiples of R/2", time: grid(1), inFlight: 4 },
    { name: "1 in flight, multiples of R/2, failovers", time: grid(1), inFlight: 1, failover: "lost" },
    { name: "2 in flight, multiples of R/2, late commands", time: grid(1), inFlight: 2, late: "does nothing" },
    {
      name: "2 in flight, multiples of R/2, late commands, clock steps",
      time: grid(1),
      inFlight: 2,
      late: "does nothing",
      clockIsSet: "time goes on as before",
    },
    { name: "2 in flight, multiples of R/2, two scopes", time: grid(1), inFlight: 2, scopes: compareNewness },
  ],
  [
    { name: "3 in flight, any times", time: DENSE, inFlight: 3 },
    { name: "4 in flight, multiples of R/4", time: grid(2), inFlight: 4 },
    { name: "2 in flight, multiples of R/2, failovers", time: grid(1), inFlight: 2, failover: "lost" },
    { name: "2 in flight, any times, late commands", time: DENSE, inFlight: 2, late: "does nothing" },
    {
      name: "2 in flight, any times, late commands, clock steps",
      time: DENSE,
      inFlight: 2,
      late: "does nothing",
      clockIsSet: "time goes on as before",
    },
    { name: "2 in flight, any times, two scopes", time: DENSE, inFlight: 2, scopes: compareNewness },
  ],
  [
    { name: "4 in flight, any times", time: DENSE, inFlight: 4 },
    { name: "5 in flight, multiples of R/4", time: grid(2), inFlight: 5 },
    { name: "1 in flight, multiples of R/4, failovers", time: grid(2), inFlight: 1, failover: "lost" },
  ],
];

function report(name: string, run: () => ReturnType<typeof explore>): void {
  const began = performance.now();
  const { states, depth: steps, fixpoint, counterexample } = run();
  const seconds = ((performance.now() - began) / 1_000).toFixed(1);
  const verdict = fixpoint ? "proved" : "COUNTEREXAMPLE";
  console.log(`${verdict}  ${name}: ${states} states, ${steps} steps deep, ${seconds} s`);
  for (const line of counterexample) console.log(`    ${line}`);
  if (!fixpoint) process.exitCode = 1;
}

for (const searches of SEARCHES.slice(0, depth)) {
  for (const { name, ...assumptions } of searches) {
    report(`no wrong logout, ${name}`, () => explore(browser({ decide, ...assumptions })));
  }
}
const SHARED = { processes: 1, share: 1, cookiesFor: "the first" } as const;
report("no wrong logout, 2 in flight to pages and to servers that render them, multiples of R/4", () =>
  explore(pages({ decide, time: grid(2), inFlight: 2, ...SHARED })),
);
for (const hoards of [false, true]) {
  const allowed = hoards ? 3 : 2;
  const name = `theft is cut off after ${allowed} changes of hands, an attacker that ${hoards ? "keeps every token" : "moves on"}`;
  report(name, () => explore(holders({ decide, reuseIntervalMs: 10_000, hoards, allowed })));
}
for (const [ticks, hoard] of [
  [2, 2],
  [2, 3],
  [4, 2],
].slice(0, depth) as [number, number][]) {
  const name = `an attacker that presents as often as it likes, at multiples of R/${ticks}, keeping ${hoard} tokens`;
  report(`${name}, is cut off once it misses two refreshes`, () =>
    explore(poller({ decide, ticks, apart: ticks, hoard })),
  );
}
