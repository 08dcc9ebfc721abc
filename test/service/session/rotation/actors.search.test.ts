/** Every interleaving of the creation of a session that ends with its actor's, the end of that, refreshes, and the deaths of instances. */
import { describe, expect, test } from "vitest";
import { decide } from "../../../../src/service/session/rotation/rotation.ts";
import { actors, type Order } from "./rotation-search/actors.ts";
import { explore } from "./rotation-search/explore.ts";

const search = (order: Order) => explore(actors(decide, order));

describe("a session whose actor's session has ended", () => {
  test("is never live without a note that says it has to end, whichever instance dies", () => {
    const result = search("of the service");
    expect(result).toMatchObject({ fixpoint: true, counterexample: [] });
    expect(result.states).toBeGreaterThan(300);
  });

  test("would be forgotten if its tokens were delivered before it is attached", () => {
    expect(search("tokens first").counterexample).toEqual(["it is created", "the actor's session ends"]);
  });

  test("would be forgotten if it were attached in another step than the one that looks whether the actor's is live", () => {
    const { counterexample } = search("attached in two steps");
    expect(counterexample).toEqual([
      ...["it is created", "the actor's is live", "the actor's session ends", "it is attached"],
      "its tokens are delivered",
    ]);
  });

  test("would be forgotten if the note were removed before it has ended", () => {
    expect(search("the note goes first").counterexample).toContain("the note is removed");
  });
});
