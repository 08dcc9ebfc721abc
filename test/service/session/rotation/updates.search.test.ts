/** Every interleaving of refreshes, updates, marks and the end of a session: no token that is out of date is accepted, and none is refused that is not. */
import { describe, expect, test } from "vitest";
import { decide } from "../../../../src/service/session/rotation/rotation.ts";
import { countVersion, isStale } from "../../../../src/service/session/version.ts";
import { explore } from "./rotation-search/explore.ts";
import { type UpdatingStore, updates } from "./rotation-search/updates.ts";

const search = (store: UpdatingStore) => explore(updates(decide, store));

describe("a refresh that races an update", () => {
  test("gets the old claims, and is stale, or the new ones, and is not", () => {
    expect(search("atomic")).toMatchObject({ fixpoint: true, counterexample: [] });
  });

  test("would slip through if its claims were read before the step that rotates", () => {
    expect(search("claims are read before").counterexample).toEqual([
      ...["a refresh is sent", "a refresh reads"],
      ...["an update to 1 is sent", "an update to 1 with refresh runs"],
      ...["a refresh runs: repeat", "the update to 1 is acknowledged"],
    ]);
  });

  test("would slip through if the version were read after that step", () => {
    expect(search("the version is read later").counterexample).toEqual([
      ...["a refresh is sent", "a refresh runs: repeat"],
      ...["an update to 1 is sent", "an update to 1 with refresh runs"],
      ...["a token is signed by the version of now", "the update to 1 is acknowledged"],
    ]);
  });

  test("would slip through at services that follow the log, if an update were acknowledged before its mark", () => {
    expect(search("marks come later").counterexample).toEqual([
      ...["an update to 1 is sent", "an update to 1 with refresh runs", "the update to 1 is acknowledged"],
    ]);
  });
});

test("an unchanged session that says what it is to say needs no version and no mark", () => {
  expect(countVersion({}, false, true)).toEqual({ session: {}, needsMark: false });
  expect(isStale({}, {})).toBe(false);
});
