/** Runs the searches of device.search.test.ts without a bound on states, as a part of `npm run search`. This takes about two minutes. */
import { isReplaceable, judgeDevice } from "../../../../../src/service/session/devices/binding.ts";
import { explore } from "../../rotation/rotation-search/explore.ts";
import { BROWSER, FAILOVER, MIXED, OFF, THIEF } from "./searches.ts";
import { type Assumptions, session } from "./world.ts";

const SEARCHES: readonly (readonly [name: string, Omit<Assumptions, "judge" | "isReplaceable">])[] = [
  ["no wrong logout, 1 refresh in flight", BROWSER],
  ["no wrong logout, 1 refresh in flight, keys taken away", { ...BROWSER, unbinds: true }],
  ["no wrong logout, 2 refreshes in flight", { ...BROWSER, inFlight: 2 }],
  ["no wrong logout, 1 refresh in flight, a failover", FAILOVER],
  ["no wrong logout, 1 refresh in flight, instances that differ in the switch", MIXED],
  ["a thief with a copied jar and a key of its own", THIEF],
  ["the same thief, instances that differ in the switch", { ...THIEF, off: OFF }],
];

for (const [name, assumptions] of SEARCHES) {
  const { states, depth, fixpoint, counterexample } = explore(
    session({ judge: judgeDevice, isReplaceable, ...assumptions }),
  );
  console.log(`${fixpoint ? "proved" : "COUNTEREXAMPLE"}  ${name}: ${states} states, ${depth} steps deep`);
  for (const line of counterexample) console.log(`    ${line}`);
  if (!fixpoint) process.exitCode = 1;
}
