import { describe, expect, test } from "vitest";
import { explore } from "../rotation/rotation-search/explore.ts";
import { mutatedRules, PROOF_MUTANTS, type ProofMutant } from "./proof-search/mutants.ts";
import {
  CREATED_BOUND,
  CREATED_BOUND_FAILOVER,
  FIRST_PROOF,
  FIRST_PROOF_THIEF,
  NO_KEY_THIEF,
  RULES,
} from "./proof-search/searches.ts";
import { type Assumptions, type Rules, session } from "./proof-search/world.ts";

const search = (assumptions: Omit<Assumptions, keyof Rules>, bound?: number, rules = RULES) =>
  explore(session({ ...rules, ...assumptions }), bound);

/** The result that is expected of a search: it visits every reachable state, and none breaks the property. */
const proved = { fixpoint: true, counterexample: [] };

/** The number of states after which the test stops, so that it takes only seconds. `npm run search` has no such bound. */
const BOUND = 10_000;

describe("a session that was created with its key", () => {
  test("serves its client at any time, and its thief never", () => {
    expect(search(CREATED_BOUND)).toMatchObject(proved);
  });

  test("does so when its store falls back to earlier states, as far as this goes", () => {
    expect(search(CREATED_BOUND_FAILOVER, BOUND).counterexample).toEqual([]);
  });
});

describe("a session that is bound by the first proof", () => {
  test("serves its client at any time", () => {
    expect(search(FIRST_PROOF)).toMatchObject(proved);
  });

  test("detects a thief that has bound it first, and serves none after its client has", () => {
    expect(search(FIRST_PROOF_THIEF)).toMatchObject(proved);
  });

  test("detects the thief by a client that has no key, too", () => {
    expect(search(NO_KEY_THIEF)).toMatchObject(proved);
  });
});

describe("the searches can fail", () => {
  /** Mutants may depend on facts that the service's rules never use, so these searches keep all facts. */
  const exact = { forgets: false } as const;
  const SEARCHES: Record<ProofMutant["noticedBy"], (rules: Rules) => readonly string[]> = {
    "created bound": (rules) => search({ ...CREATED_BOUND, ...exact }, 3 * BOUND, rules).counterexample,
    failover: (rules) => search({ ...CREATED_BOUND_FAILOVER, ...exact }, 3 * BOUND, rules).counterexample,
    "first proof": (rules) => search({ ...FIRST_PROOF, ...exact }, 3 * BOUND, rules).counterexample,
    "first proof, thief": (rules) => search({ ...FIRST_PROOF_THIEF, ...exact }, 3 * BOUND, rules).counterexample,
    "no key": (rules) => search({ ...NO_KEY_THIEF, ...exact }, 3 * BOUND, rules).counterexample,
  };

  test.each(PROOF_MUTANTS)("$name: noticed by $noticedBy", async (mutant) => {
    expect(SEARCHES[mutant.noticedBy](await mutatedRules(mutant))).not.toEqual([]);
  });
});
