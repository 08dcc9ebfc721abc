import { describe, expect, test } from "vitest";
import { compareNewness } from "../../../../src/service/session/rotation/presented-cookie.ts";
import { decide, firstState } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { type Assumptions, browser } from "./rotation-search/browser.ts";
import { explore } from "./rotation-search/explore.ts";
import { logout } from "./rotation-search/logout.ts";
import { play, R } from "./rotation-search/play.ts";
import { DENSE, grid } from "./rotation-search/time.ts";

/** The result that is expected of a search: it visits every state that a browser can cause, and none ends as `reuse`. */
const proved = { fixpoint: true, counterexample: [] };
const search = (assumptions: Omit<Assumptions, "decide">) => explore(browser({ decide, ...assumptions }));

describe("no wrong logout: a browser whose requests take up to R/2 never gets `reuse`", () => {
  test("with two requests in flight, for every R and at any real times", () => {
    expect(search({ time: DENSE, inFlight: 2 })).toMatchObject(proved);
  });

  test("with four requests in flight, at multiples of R/2", () => {
    expect(search({ time: grid(1), inFlight: 4 })).toMatchObject(proved);
  });

  test("over any number of failovers that lose the request in flight", () => {
    expect(search({ time: grid(1), inFlight: 1, failover: "lost" })).toMatchObject(proved);
  });
});

describe("a late command", () => {
  test("does nothing, so that none of those given up logs a browser out", () => {
    expect(search({ time: grid(1), inFlight: 2, late: "does nothing" })).toMatchObject(proved);
    expect(search({ time: DENSE, inFlight: 1, late: "does nothing" })).toMatchObject(proved);
  });

  test("would end the session if it acted: one request that was given up is enough", () => {
    const { counterexample } = search({ time: grid(1), inFlight: 1, late: "acts" });
    expect(counterexample).toEqual([
      "a tab sends the child: rotate",
      "0.5 R",
      "the child arrives; just before, 1 left with the confirmed token",
      "0.5 R",
      "0.5 R; 1 lost, but the confirmed token is still on its way",
      "a tab sends the child: rotate",
      "a late command with a token 1 behind the confirmed one runs: reuse",
    ]);
  });
});

describe("a deployment that changes the scope of its cookie, or whose instances differ in it", () => {
  test("logs no browser out that sends two cookies: the newest token counts", () => {
    expect(search({ time: grid(1), inFlight: 2, scopes: compareNewness })).toMatchObject(proved);
    expect(search({ time: DENSE, inFlight: 1, scopes: compareNewness })).toMatchObject(proved);
    expect(search({ time: grid(1), inFlight: 1, late: "does nothing", scopes: compareNewness })).toMatchObject(proved);
  });

  test("would log it out if the oldest counted", () => {
    const { counterexample } = search({ time: grid(1), inFlight: 1, scopes: (a, b) => compareNewness(b, a) });
    expect(counterexample).toEqual([
      "a tab sends the child: rotate",
      "0.5 R",
      "the child arrives in the other scope",
      "4 × 0.5 R",
      "a tab sends the confirmed token: recover",
      "the child arrives in its scope",
      "a tab sends a sibling of the child: reuse",
    ]);
  });
});

describe("a clock of the day that is set while requests are in flight", () => {
  test("logs no user out, since the store's time continues unchanged", () => {
    expect(search({ time: grid(1), inFlight: 2, clockIsSet: "time goes on as before" })).toMatchObject(proved);
  });

  test("would end the session if the store's time followed it", () => {
    const { counterexample } = search({ time: grid(1), inFlight: 1, clockIsSet: "time follows" });
    expect(counterexample).toEqual([
      "a tab sends the child: rotate",
      "the child arrives; just before, 1 left with the confirmed token",
      "the clock is set forward by 3 R",
      "a request with the confirmed token runs: recover",
      "a response is lost",
      "a tab sends a sibling of the child: reuse",
    ]);
  });
});

describe("the limits of that", () => {
  test("R/2 is exact: requests that take ever so little longer may end the session", () => {
    // In dense time, one tick more than half of the reuse interval (R/2) represents any longer time, however small the difference is.
    const { counterexample } = search({ time: DENSE, flight: DENSE.half + 1, inFlight: 1 });
    expect(counterexample.at(-1)).toMatch(/reuse$/);
  });

  test("a request that goes on over a failover may end the session, if others race with it", () => {
    const { counterexample } = search({ time: grid(1), inFlight: 2, failover: "crossed" });
    expect(counterexample).toEqual([
      "a tab sends the child: rotate",
      "0.5 R",
      "0.5 R; 1 lost",
      "0.5 R",
      "the replica stops following",
      "a tab sends the confirmed token: recover",
      "the child arrives; just before, 1 left with the confirmed token",
      "FAILOVER to the replica",
      "a tab sends a sibling of the child: rotate",
      "a request with a token 1 behind the confirmed one runs: reuse",
    ]);
  });
});

describe("after a failover", () => {
  test("a token from ahead is not sent back to a child that is still young", () => {
    const young = { ...firstState("c"), generation: 4, childMintedAt: storeMs(1_000), childServedAt: storeMs(1_000) };
    const decision = decide(
      young,
      { generation: 6, nonce: "lost", issuedAt: storeMs(900) },
      "fresh",
      storeMs(1_001),
      10_000,
    );
    expect(decision).toMatchObject({ outcome: "heal", next: { generation: 6, nonce: "lost", childNonce: "fresh" } });
  });
});

describe("a clock that is set back", () => {
  test("by no more than R changes nothing", () => {
    expect(play(decide, "vs", 0, -R)).toEqual(["rotate", "repeat"]);
    expect(play(decide, "vv", 0, -R)).toEqual(["rotate", "repeat"]);
  });

  test("by more ends the time in which the child is young: nothing is repeated until the old time has come again", () => {
    expect(play(decide, "vs", 0, -R - 1)).toEqual(["rotate", "recover"]);
    expect(play(decide, "vv", 0, -30 * R)).toEqual(["rotate", "rotate"]);
  });

  test("logs out no browser that has nothing in flight, and keeps an attacker no longer", () => {
    for (const wait of [1, R / 2, 2 * R, 30 * R]) {
      expect(play(decide, "vvvvvv", wait, wait, -40 * R)).not.toContain("reuse");
      expect(play(decide, "vvvvs", 2 * R, 2 * R, -40 * R, 2 * R, R / 2).at(-1)).toBe("reuse");
    }
  });
});

describe("logout wins", () => {
  test("nothing is served after its acknowledgement, whatever is in flight and runs again", () => {
    expect(explore(logout(decide, "atomic"))).toMatchObject(proved);
  });

  test("a store that decides and writes in two steps would be noticed", () => {
    expect(explore(logout(decide, "in two steps")).counterexample).not.toEqual([]);
  });
});
