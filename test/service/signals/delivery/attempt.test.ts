/** What one attempt to send a signal makes of the response (docs/tasks/signals.md, "Delivery"). */
import { describe, expect, test } from "vitest";
import { wallMs } from "../../../../src/service/session/time.ts";
import { type AttemptDeps, attempt, isPushed } from "../../../../src/service/signals/delivery/attempt.ts";
import type { PushKind } from "../../../../src/service/signals/kinds/request.ts";
import type { KnownSubscription } from "../../../../src/service/signals/model.ts";
import type { OutgoingRequest, SendResult } from "../../../../src/service/signals/send/sender.ts";
import { someSignal } from "../world.ts";

const endpoint = "https://receiver.example/events";

/** Attempts to send a signal to a subscription of a kind, whose receiver responds as the test says. */
async function attempted(kind: PushKind, result: SendResult, more: Partial<KnownSubscription & AttemptDeps> = {}) {
  const sent: OutgoingRequest[] = [];
  const failures: unknown[] = [];
  const deps: AttemptDeps = {
    issuer: "https://auth.example",
    signClaims: (typ, claims, alg) => JSON.stringify({ typ, alg, ...claims }),
    openSecret: (sealed) => sealed.replace("sealed ", ""),
    wallClock: () => wallMs(7_900),
    events: { onFailure: (error) => void failures.push(error) },
    ...more,
    sender: {
      async send(request) {
        sent.push(request);
        return result;
      },
      close() {},
    },
  };
  const subscription = { id: "one", kind, endpoint, filter: {}, audience: ["app"], state: "active", ...more } as const;
  return { result: await attempt(deps, subscription as Parameters<typeof attempt>[1], someSignal()), sent, failures };
}
const status = (code: number) => ({ ok: true, status: code }) as const;
const sealedSecret = `sealed whsec_${"A".repeat(32)}`;

test("a signal is sent with the opened secret and signed by the subscription's algorithm", async () => {
  const more = { sealedSecret: "sealed Bearer x", signingAlg: "RS256" };
  const { result, sent, failures } = await attempted("ssf_push", status(202), more);
  expect([result.error, result.because, failures]).toEqual([undefined, undefined, []]);
  expect(sent).toMatchObject([{ url: endpoint, headers: { authorization: "Bearer x" } }]);
  expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject({
    ...{ typ: "secevent+jwt", alg: "RS256", iss: "https://auth.example", iat: 7, jti: someSignal().id },
  });
});

test("without a secret none is opened", async () => {
  const openSecret = () => {
    throw new Error("nothing to open");
  };
  const { result, sent } = await attempted("ssf_push", status(202), { openSecret });
  expect(result.error).toBeUndefined();
  expect(sent[0]?.headers).not.toHaveProperty("authorization");
});

describe("a response", () => {
  test("of 410 pauses a webhook as its receiver wants, and no other kind", async () => {
    expect((await attempted("webhook", status(410), { sealedSecret })).result).toEqual({
      ...{ error: "refused", because: "receiver" },
    });
    for (const kind of ["backchannel", "ssf_push"] as const) {
      const { error, because } = (await attempted(kind, status(410))).result;
      expect([error, because]).toEqual(["refused", undefined]);
    }
  });

  test("of another status is an error of the kind, and pauses nothing", async () => {
    for (const [code, error] of [
      [204, undefined],
      [404, "refused"],
      [500, "server_error"],
    ] as const) {
      const { result } = await attempted("webhook", status(code), { sealedSecret });
      expect([result.error, result.because]).toEqual([error, undefined]);
    }
  });

  test("that did not come is the error of the sender", async () => {
    const { result } = await attempted("webhook", { ok: false, error: "tls" }, { sealedSecret });
    expect(result).toEqual({ error: "tls" });
  });
});

test("a signal that cannot be signed, or whose secret cannot be opened, is reported and counts as refused", async () => {
  const fault = () => {
    throw new Error("no key");
  };
  for (const more of [{ signClaims: fault }, { openSecret: fault, sealedSecret }]) {
    const { result, sent, failures } = await attempted("ssf_push", status(202), more);
    expect([result, sent, failures]).toEqual([{ error: "refused" }, [], [new Error("no key")]]);
  }
});

test("signals are pushed to all but those that poll", () => {
  const one = { id: "one", filter: {}, audience: [], state: "active" } as const;
  expect(isPushed({ ...one, kind: "webhook", endpoint })).toBe(true);
  expect(isPushed({ ...one, kind: "ssf_poll" })).toBe(false);
});
