/** Runs the searches of proof.search.test.ts with more tokens and requests and no bound on states, as a part of `npm run search`. */
import { explore } from "../../rotation/rotation-search/explore.ts";
import {
  CREATED_BOUND,
  CREATED_BOUND_FAILOVER,
  FIRST_PROOF,
  FIRST_PROOF_THIEF,
  NO_KEY_THIEF,
  RULES,
} from "./searches.ts";
import { type Assumptions, session } from "./world.ts";

const SEARCHES: readonly (readonly [name: string, Omit<Assumptions, keyof typeof RULES>])[] = [
  ["created with its key, 3 in flight, 3 stale tokens, a thief", { ...CREATED_BOUND, inFlight: 3, stale: 3 }],
  ["created with its key, 1 in flight, 1 stale token, a thief, failovers", CREATED_BOUND_FAILOVER],
  ["bound by the first proof, 3 in flight, 3 stale tokens", { ...FIRST_PROOF, inFlight: 3, stale: 3 }],
  ["bound by the first proof, 1 in flight, a thief", FIRST_PROOF_THIEF],
  ["bound by the first proof, 1 in flight, 1 stale token, a thief", { ...FIRST_PROOF_THIEF, stale: 1 }],
  ["a client without a key, 1 in flight, a thief with one", NO_KEY_THIEF],
];

for (const [name, assumptions] of SEARCHES) {
  const { states, depth, fixpoint, counterexample } = explore(session({ ...RULES, ...assumptions }));
  console.log(`${fixpoint ? "proved" : "COUNTEREXAMPLE"}  ${name}: ${states} states, ${depth} steps deep`);
  for (const line of counterexample) console.log(`    ${line}`);
  if (!fixpoint) process.exitCode = 1;
}
