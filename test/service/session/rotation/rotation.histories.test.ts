import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decide,
  firstState,
  type RotationState,
  type TokenFields,
} from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../src/service/session/time.ts";

/**
 * Long random histories of a session, with times in ms. Unlike the models of the searches, they are not simplified, and they have more
 * requests in flight. Times are drawn both near the limits in the rules and between them.
 */
const intervals = fc.constantFrom(2, 3, 10, 1_000, 10_000);
const fractions = [0, 0, 0, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 40];
const wait = fc.record({ of: fc.constantFrom(...fractions), off: fc.constantFrom(-1, 0, 0, 1) });
const lasts = ({ of, off }: { of: number; off: number }, R: number) => Math.max(0, Math.floor(of * R) + off);

const childOf = ({ generation, childNonce, childMintedAt }: RotationState): TokenFields => ({
  generation: generation + 1,
  nonce: childNonce,
  issuedAt: childMintedAt,
});

describe("a browser with eight requests in flight, none longer than R/2", () => {
  type Request = { token: TokenFields; nonce: string; sentAt: number; responses: TokenFields[] };
  const event = fc.record({
    what: fc.constantFrom("send", "run", "run", "arrive", "wait", "wait"),
    which: fc.nat(),
    wait,
  });

  test("never ends as `reuse`, and its session mints at most once in R", () => {
    fc.assert(
      fc.property(intervals, fc.array(event, { minLength: 50, maxLength: 400, size: "max" }), (R, events) => {
        let state = firstState("first");
        let jar = childOf(state);
        let flying: Request[] = [];
        let now = 1e9;
        let mintedAt = 0;
        for (const [at, { what, which, wait }] of events.entries()) {
          const request = flying[which % Math.max(1, flying.length)];
          if (what === "wait") {
            now += lasts(wait, R);
            flying = flying.filter(({ sentAt }) => now - sentAt <= R / 2);
          } else if (what === "send") {
            flying = [...flying.slice(-7), { token: jar, nonce: `n${at}`, sentAt: now, responses: [] }];
          } else if (what === "run" && request !== undefined) {
            const decision = decide(state, request.token, request.nonce, storeMs(now), R);
            if (decision.outcome === "reuse") return false;
            if (decision.outcome !== "repeat" && now - mintedAt <= R) return false;
            if (decision.outcome !== "repeat") mintedAt = now;
            state = decision.next;
            request.responses.push(childOf(state));
          } else if (what === "arrive" && request !== undefined) {
            jar = request.responses[which % Math.max(1, request.responses.length)] ?? jar;
            flying = flying.filter((other) => other !== request);
          }
        }
        return true;
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("an attacker that keeps every token it ever had, more than R from every other presentation", () => {
  const presentation = fc.record({ thief: fc.boolean(), which: fc.nat(), wait });

  test("ends the session after at most three changes of hands", () => {
    fc.assert(
      fc.property(fc.nat(10_000), fc.array(presentation, { minLength: 8, maxLength: 60 }), (R, presentations) => {
        let state = firstState("first");
        let held = childOf(state);
        const hoard = [held];
        let now = 1e9;
        let last: boolean | undefined;
        let changes = 0;
        for (const [at, { thief, which, wait }] of presentations.entries()) {
          now += R + 1 + lasts(wait, R);
          const token = thief ? (hoard[hoard.length - 1 - (which % Math.min(4, hoard.length))] ?? held) : held;
          const decision = decide(state, token, `n${at}`, storeMs(now), R);
          if (decision.outcome === "reuse") break;
          state = decision.next;
          changes += Number(last !== undefined && last !== thief);
          last = thief;
          if (thief) hoard.push(childOf(state));
          else held = childOf(state);
        }
        expect(changes).toBeLessThanOrEqual(3);
      }),
      { numRuns: 2_000 },
    );
  });
});
