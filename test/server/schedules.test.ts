/**
 * Random schedules of navigations in many tabs. Two processes with the real kit render the pages, and the service is simulated by the
 * rules of rotation in virtual time. Requests, the service and responses are late; responses are lost and out of order; a logout comes at
 * any time, and so do changes of the session, which make its access tokens stale.
 *
 * It checks that no page is `ended` before the logout, and that no page requested after the logout is `active`.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { createServerSessions, type ServerSessions } from "../../src/server/index.ts";
import {
  decide,
  firstState,
  type RotationState,
  type TokenFields,
} from "../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../src/service/session/time.ts";
import { Jar } from "./world.ts";

const R = 10_000;
const RUNS = Number(process.env.SCHEDULES ?? 300);
const START_MS = 1e9;

type Step =
  /** The delays `up` of the request and `down` of its response are fractions of the longest delay of each. */
  | {
      readonly do: "navigate";
      readonly process: number;
      readonly up: number;
      readonly down: number;
      readonly lost: boolean;
    }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "logout" | "change" };

const part = fc.constantFrom(0, 0, 0.1, 0.5, 0.9, 1);
const navigate: fc.Arbitrary<Step> = fc.record({
  do: fc.constant("navigate" as const),
  process: fc.nat(1),
  up: part,
  down: part,
  lost: fc.constantFrom(false, false, false, true),
});
const pass: fc.Arbitrary<Step> = fc.record({
  do: fc.constant("pass" as const),
  ms: fc.constantFrom(0, 1, 500, R / 8, R / 4 + 1, R / 2, R, R + 1, 2 * R + 1, 60_000),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: navigate },
  { weight: 6, arbitrary: pass },
  {
    weight: 1,
    arbitrary: fc.constantFrom({ do: "logout" as const }, { do: "change" as const }, { do: "change" as const }),
  },
);

const encoded = (token: TokenFields) => btoa(JSON.stringify(token));
const decoded = (text: string) => JSON.parse(atob(text)) as TokenFields;

class World {
  nowMs = START_MS;
  readonly jar = new Jar();
  readonly faults: string[] = [];
  #state: RotationState | undefined = firstState("first");
  #loggedOutAtMs: number | undefined;
  #reused = false;
  #nonces = 0;
  /** How often what the session says has changed. */
  #version = 0;
  readonly #events: { readonly atMs: number; readonly run: () => void }[] = [];
  readonly #longestMs: number;
  readonly #delays: readonly number[];
  #calls = 0;
  readonly #processes = [this.#server(), this.#server()];

  /**
   * @param longestMs how long a request, the service and the response take together at most; the service takes up to half of it
   * @param delays the delays of the service's responses, one after the other, as fractions of the longest time
   */
  constructor(longestMs: number, delays: readonly number[]) {
    this.#longestMs = longestMs;
    this.#delays = delays;
    this.jar.take([`refresh_token=${encoded({ generation: 1, nonce: "first", issuedAt: storeMs(0) })}; Path=/`]);
  }

  #server() {
    return createServerSessions({
      service: "http://service.example",
      verifier: {
        // The verifier learns of the logout at once, as if by the feed.
        verify: async (token) => {
          if (!this.#state) return { ok: false, reason: "revoked" };
          const sv = Number(token.split(".")[1]);
          return sv < this.#version
            ? { ok: false, reason: "stale" }
            : { ok: true, claims: { sub: "alice", sid: "s", exp: 0, sv } };
        },
      },
      fetch: (_, init) => {
        const response = this.#refresh(new Headers(init?.headers).get("cookie") ?? "");
        const delay = this.#delays[this.#calls++ % this.#delays.length] ?? 0;
        return new Promise((resolve) => this.#later((delay * this.#longestMs) / 2, () => resolve(response)));
      },
      clock: () => this.nowMs,
      reuseIntervalMs: R,
    });
  }

  #refresh(cookie: string): Response {
    const [, text = ""] = /refresh_token=([^;]+)/.exec(cookie) ?? [];
    const ended = () => Response.json({ error: { code: "E001_AUTH_FAILURE" } }, { status: 401 });
    if (!this.#state) return ended();
    const decision = decide(this.#state, decoded(text), `n${this.#nonces++}`, storeMs(this.nowMs), R);
    if (decision.outcome === "reuse") {
      this.#reused = true;
      this.#state = undefined;
      return ended();
    }
    const { generation, childNonce: nonce, childMintedAt: issuedAt } = decision.next;
    this.#state = decision.next;
    const headers = new Headers();
    headers.append("set-cookie", `refresh_token=${encoded({ generation: generation + 1, nonce, issuedAt })}; Path=/`);
    const accessToken = `a${this.#nonces}.${this.#version}`;
    headers.append("set-cookie", `access_token=${accessToken}; Path=/`);
    return Response.json({ data: { accessToken } }, { headers });
  }

  #later(delayMs: number, run: () => void): void {
    this.#events.push({ atMs: this.nowMs + delayMs, run });
  }

  #navigate({ process, up, down, lost }: Extract<Step, { readonly do: "navigate" }>): void {
    const request = this.jar.request();
    const requestedAtMs = this.nowMs;
    const upMs = (up * this.#longestMs) / 4;
    this.#later(upMs, async () => {
      const { user, setCookies } = await (this.#processes[process] as ServerSessions).authenticate(request);
      const isOut = this.#loggedOutAtMs !== undefined;
      if (user.state === "ended" && (!isOut || this.#reused)) this.faults.push(`ended at ${this.nowMs - START_MS}`);
      const requestedAfter = isOut && requestedAtMs >= (this.#loggedOutAtMs as number);
      if (user.state !== "ended" && requestedAfter) this.faults.push(`${user.state} at ${this.nowMs - START_MS}`);
      if (!lost) this.#later((down * this.#longestMs) / 4, () => this.jar.take(setCookies));
    });
  }

  async run(one: Step): Promise<void> {
    if (one.do === "navigate") this.#navigate(one);
    else if (one.do === "pass") await this.pass(one.ms);
    else if (one.do === "change") this.#version++;
    else {
      this.#loggedOutAtMs ??= this.nowMs;
      this.#state = undefined;
    }
  }

  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    for (;;) {
      this.#events.sort((one, other) => one.atMs - other.atMs);
      const next = this.#events[0];
      if (next === undefined || next.atMs > endMs) break;
      this.#events.shift();
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
    this.nowMs = endMs;
  }
}

async function faultsOf(longestMs: number, steps: readonly Step[], delays: readonly number[]) {
  const world = new World(longestMs, delays);
  for (const one of steps) await world.run(one);
  await world.pass(3 * R);
  await world.run({ do: "navigate", process: 0, up: 0, down: 0, lost: false });
  await world.pass(longestMs);
  return world.faults;
}

const schedules = fc.array(step, { minLength: 3, maxLength: 40 });
const serviceDelays = fc.array(part, { minLength: 1, maxLength: 8 });

/** @param longest the longest time of a request as a fraction of the reuse interval R */
const holds = (longest: number) =>
  fc.asyncProperty(schedules, serviceDelays, async (steps, delays) => {
    expect(await faultsOf(longest * R, steps, delays)).toEqual([]);
  });

test.each([0.25, 0.5])(
  "with navigations of up to %d R nobody is logged out by mistake, and a logout is final",
  (longest) => fc.assert(holds(longest), { numRuns: RUNS }),
  600_000,
);

test("the schedules can tell: navigations of three times R log users out", async () => {
  const { failed } = await fc.check(holds(3), { numRuns: 20_000 });
  expect(failed).toBe(true);
}, 600_000);
