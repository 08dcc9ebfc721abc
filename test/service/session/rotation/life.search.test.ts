/** Every interleaving of rotation, updates, stale tokens, a limit, a logout, and a session that ends with its actor's. */
import { describe, expect, test } from "vitest";
import type { WhenExceeded } from "../../../../src/service/session/admin/limit.ts";
import { decide } from "../../../../src/service/session/rotation/rotation.ts";
import { explore } from "./rotation-search/explore.ts";
import { type LivingStore, life } from "./rotation-search/life.ts";

const search = (store: LivingStore, whenExceeded: WhenExceeded) => explore(life(decide, store, whenExceeded));

describe("all that changes a session's life, in every order", () => {
  test.each(["end_least_recently_used", "end_oldest", "refuse"] as const)(
    "holds with the limit `%s`",
    (whenExceeded) => {
      const result = search("atomic", whenExceeded);
      expect(result).toMatchObject({ fixpoint: true, counterexample: [] });
      expect(result.states).toBeGreaterThan(1_000);
      console.log(`${whenExceeded}: ${result.states} states, depth ${result.depth}`);
    },
  );

  test("would put out the session that was used last, if a login looked before it creates", () => {
    const { counterexample } = search("a login looks before it creates", "end_least_recently_used");
    expect(counterexample).toContain("a login looks");
    expect(counterexample.at(-1)).toMatch(/^a login ends/);
  });

  test("would leave a session that outlives its actor's, if a limit ended that without a note", () => {
    expect(search("a limit ends without a note", "end_oldest").counterexample).toEqual(["a login ends own"]);
  });
});
