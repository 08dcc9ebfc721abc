import { describe, expect, test } from "vitest";
import { isReplaceable, judgeDevice } from "../../../../src/service/session/devices/binding.ts";
import { explore } from "../rotation/rotation-search/explore.ts";
import { DEVICE_MUTANTS, type DeviceMutant, mutatedRules, type Rules } from "./device-search/mutants.ts";
import { BROWSER, FAILOVER, MIXED, OFF, THIEF } from "./device-search/searches.ts";
import { type Assumptions, type OffInstance, session } from "./device-search/world.ts";

const RULES: Rules = { judge: judgeDevice, isReplaceable };

const search = (assumptions: Omit<Assumptions, keyof Rules>, bound?: number, rules = RULES) =>
  explore(session({ ...rules, ...assumptions }), bound);

/** The result that is expected of a search: it visits every reachable state, and none breaks the property. */
const proved = { fixpoint: true, counterexample: [] };

/** The number of states after which the test stops, so that it takes only seconds. `npm run search` has no such bound. */
const BOUND = 60_000;

describe("binding logs no browser out", () => {
  test("whatever becomes of its registrations, renewals and refreshes", () => {
    expect(search(BROWSER)).toMatchObject(proved);
  });

  test("and neither does support staff that takes keys away", () => {
    expect(search({ ...BROWSER, unbinds: true })).toMatchObject(proved);
  });

  test("with two refreshes in flight, as far as this goes", () => {
    expect(search({ ...BROWSER, inFlight: 2 }, BOUND).counterexample).toEqual([]);
  });

  test("nor does a store that falls back to what it knew before, as far as this goes", () => {
    expect(search(FAILOVER, BOUND).counterexample).toEqual([]);
  });
});

test("a thief is served for one life of a device cookie, accuses nobody, and is detected if it binds first, as far as this goes", () => {
  expect(search(THIEF, BOUND).counterexample).toEqual([]);
});

describe("instances that differ in the switch", () => {
  test("log no browser out", () => {
    expect(search(MIXED)).toMatchObject(proved);
  });

  test("serve a thief no longer than those that do not, as far as this goes", () => {
    expect(search({ ...THIEF, off: OFF }, BOUND).counterexample).toEqual([]);
  });

  test.each<[string, OffInstance]>([
    ["asks for nothing", { ...OFF, judge: () => "unproven" }],
    ["takes keys away", { ...OFF, renews: "by taking the key away" }],
  ])("serve one for good where the switched off one %s", (_, off) => {
    expect(search({ ...THIEF, off }, BOUND).counterexample).not.toEqual([]);
  });
});

describe("the searches can fail", () => {
  const SEARCHES: Record<DeviceMutant["noticedBy"], (rules: Rules) => readonly string[]> = {
    browser: (rules) => search(BROWSER, undefined, rules).counterexample,
    "two tabs": (rules) => search({ ...BROWSER, inFlight: 2 }, 3 * BOUND, rules).counterexample,
    thief: (rules) => search(THIEF, BOUND, rules).counterexample,
    "exact thief": (rules) => search({ ...THIEF, exact: true }, 5 * BOUND, rules).counterexample,
  };

  test.each(DEVICE_MUTANTS)("$name: noticed by $noticedBy", async (mutant) => {
    expect(SEARCHES[mutant.noticedBy](await mutatedRules(mutant))).not.toEqual([]);
  });
});
