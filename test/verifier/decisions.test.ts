/** What a verifier decides about tokens that it knows, and when it asks the issuer again. */
import { describe, expect, onTestFinished, test } from "vitest";
import { createIntrospection } from "../../src/verifier/admin/introspection.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { REFUSAL_VERDICTS, type Verdict } from "../../src/verifier/verdict.ts";
import { createVerifier as createWebVerifier } from "../../src/verifier/web/index.ts";
import { AUDIENCE, createForge, ISSUER, NOW_MS } from "../vectors/format.ts";
import { createSign, JWKS } from "../vectors/keys.ts";

const { token } = createForge(createSign([]));
const EXPIRES_S = NOW_MS / 1000 + 10;

describe.each([
  ["Node", createVerifier],
  ["WebCrypto", createWebVerifier],
])("with %s", (_, create) => {
  /** Starts a verifier with the keys of the vectors, and clocks that the test moves. */
  async function open() {
    const now = { wall: NOW_MS, monotonic: 1_000_000 };
    const read = { keys: 0 };
    const fetch = async () => {
      read.keys++;
      return Response.json(JWKS, { headers: { "cache-control": "max-age=300" } });
    };
    const verifier = create({
      ...{ issuer: ISSUER, audience: AUDIENCE, jwksUrl: "http://127.0.0.1/jwks", fetch },
      ...{ clock: () => now.wall, monotonic: () => now.monotonic },
    });
    onTestFinished(() => verifier.close());
    await verifier.ready;
    return { verifier, now, read };
  }

  test("a known token is refused from the millisecond in which it expires", async () => {
    const { verifier, now } = await open();
    const known = token({}, { exp: EXPIRES_S });
    for (now.wall of [NOW_MS, EXPIRES_S * 1000 - 1]) expect(await verifier.verify(known)).toMatchObject({ ok: true });
    now.wall += 1;
    expect(await verifier.verify(known)).toEqual({ ok: false, reason: "expired" });
  });

  test.each([
    [true, true],
    [false, false],
    ["true", false],
    [undefined, false],
  ])("a token with device_bound %j is bound to a device: %j", async (device_bound, deviceBound) => {
    const { verifier } = await open();
    expect(await verifier.verify(token({}, { device_bound }))).toMatchObject({ ok: true, deviceBound });
  });

  test("only an unknown key causes a read of the keys", async () => {
    const { verifier, now, read } = await open();
    now.monotonic += 2_000;
    expect(await verifier.verify(token({}, { iss: "https://other.example" }))).toMatchObject({
      reason: "wrong_issuer",
    });
    expect(read.keys).toBe(1);
    expect(await verifier.verify(token({ kid: "unknown" }))).toMatchObject({ reason: "unknown_key" });
    expect(read.keys).toBe(2);
  });
});

describe("introspection", () => {
  const accepted = Promise.resolve({ ok: true } as Verdict);

  /** Returns introspection by calls that the test ends, with what they were given. */
  function open(shareMs: number) {
    const calls: {
      signal: AbortSignal;
      timeoutMs: number;
      end: (active: boolean) => void;
      fail: (why: Error) => void;
    }[] = [];
    const introspectToken = (_: unknown, options: { signal: AbortSignal; timeoutMs: number }) => {
      const { promise, resolve, reject } = Promise.withResolvers<{ active: boolean }>();
      calls.push({ ...options, end: (active) => resolve({ active }), fail: reject });
      return promise;
    };
    const introspect = createIntrospection({ client: { introspectToken } as never, shareMs, signal: undefined });
    return { calls, ask: (nowMs: number) => introspect("t", accepted, nowMs) };
  }

  test("accepts active tokens, refuses others, and cannot tell without the service", async () => {
    const { calls, ask } = open(-1);
    const verdicts = [ask(0), ask(0), ask(0)];
    calls[0]?.end(true);
    calls[1]?.end(false);
    calls[2]?.fail(new Error("away"));
    expect(await Promise.all(verdicts)).toEqual([
      await accepted,
      REFUSAL_VERDICTS.revoked,
      REFUSAL_VERDICTS.unavailable,
    ]);
    // A call has no time limit of the transport's, and releases what it holds at its end.
    expect(calls.map(({ signal, timeoutMs }) => [signal.aborted, timeoutMs])).toEqual(Array(3).fill([true, 0]));
  });

  test("shares a call that began at most so long ago, until it ends", async () => {
    const { calls, ask } = open(100);
    const first = ask(0);
    expect([ask(100) === first, calls.length]).toEqual([true, 1]);
    const second = ask(101);
    expect(calls.length).toBe(2);
    calls[0]?.end(true);
    await first;
    // The end of the older call does not end the sharing of the newer one.
    expect([ask(102) === second, calls.length]).toEqual([true, 2]);
    calls[1]?.end(true);
    await second;
    void ask(103);
    expect(calls.length).toBe(3);
    calls[2]?.end(true);
  });
});
