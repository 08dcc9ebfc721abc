/** The id of a signal, and which signals pass a filter (docs/tasks/signals.md, "Subscriptions"). */
import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { SessionId } from "../../../src/service/session/model.ts";
import { storeMs, wallMs } from "../../../src/service/session/time.ts";
import {
  definitionOf,
  eventOf,
  noticesOf,
  passes,
  type Signal,
  type SignalFilter,
  type Subscription,
  type SubscriptionDefinition,
  signalId,
} from "../../../src/service/signals/model.ts";

const ending: Signal = {
  ...{ id: "id", sessionId: "session" as SessionId, subject: "alice", clientId: "app" },
  ...{ reason: "logout", happenedAt: storeMs(1_000) },
};

describe("the id of a signal", () => {
  test("is the same for what happened once, and has 22 characters of base64url", () => {
    expect(signalId(ending)).toMatch(/^[\w-]{22}$/);
    expect(signalId({ ...ending, subject: "bob" })).toBe(signalId(ending));
  });

  test("stays the same over releases, because receivers know signals by it", () => {
    const idOf = (text: string) => hash("sha256", text, "base64url").slice(0, 22);
    expect(signalId(ending)).toBe(idOf("session logout 1000"));
    expect(signalId({ ...ending, reason: "updated", version: 7 })).toBe(idOf("session updated:7 1000"));
  });

  test("is another for another session, reason, version or time", () => {
    const others: Partial<Signal>[] = [
      {},
      { sessionId: "other" as SessionId },
      { reason: "reuse" },
      { reason: "updated", version: 1 },
      { reason: "updated", version: 2 },
      { reason: "updated" },
      { happenedAt: storeMs(1_001) },
    ];
    expect(new Set(others.map((other) => signalId({ ...ending, ...other }))).size).toBe(others.length);
  });
});

test("each notice is an event of its own, and all reasons are the end of a session", () => {
  expect(
    (["created", "new_device", "updated", "logout", "reuse"] as const).map((reason) => eventOf({ reason })),
  ).toEqual(["session.created", "session.new_device", "session.updated", "session.ended", "session.ended"]);
  expect(noticesOf({})).toEqual([]);
  expect(noticesOf({ events: ["session.updated", "session.ended", "session.created"] })).toEqual([
    "created",
    "updated",
  ]);
});

test.each<[SignalFilter, Partial<Signal>, boolean]>([
  // Without a choice, endings alone pass.
  [{}, {}, true],
  [{}, { reason: "created" }, false],
  [{ events: [] }, {}, false],
  [{ events: ["session.created"] }, {}, false],
  [{ events: ["session.created"] }, { reason: "created" }, true],
  [{ events: ["session.created"] }, { reason: "new_device" }, false],
  [{ events: ["session.ended", "session.created"] }, {}, true],
  [{ subject: "alice" }, {}, true],
  [{ subject: "bob" }, {}, false],
  [{ clientId: "app" }, {}, true],
  [{ clientId: "other" }, {}, false],
  [{ exceptSubjects: ["bob", "alice"] }, {}, false],
  [{ exceptSubjects: ["bob"] }, {}, true],
  [{ reasons: ["reuse", "logout"] }, {}, true],
  [{ reasons: ["reuse"] }, {}, false],
  [{ reasons: [] }, {}, false],
  // Reasons select among endings.
  [{ reasons: ["reuse"], events: ["session.created"] }, { reason: "created" }, true],
])("the filter %j and the signal with %j: %s", (filter, changes, expected) => {
  expect(passes({ ...ending, ...changes }, filter)).toBe(expected);
});

test("a signal whose session was lost has neither subject nor client, and only a filter for one leaves it out", () => {
  const { subject: _, clientId: _client, ...lost } = ending;
  const filters = [{}, { exceptSubjects: ["alice"] }, { subject: "alice" }, { clientId: "app" }];
  expect(filters.map((filter) => passes(lost, filter))).toEqual([true, true, false, false]);
});

test("the definition of a subscription is all but its status and its counters", () => {
  const definition: SubscriptionDefinition = {
    ...{ kind: "ssf_push", endpoint: "https://a.example/", sealedSecret: "sealed", filter: {}, audience: ["a"] },
    ...{ signingAlg: "RS256", stream: { owner: "receiver" } },
  };
  const subscription: Subscription = {
    ...{ id: "one", state: "paused", because: "operator", ...definition, createdAt: wallMs(1), failures: 2 },
    ...{ lastError: "tls", lastErrorAt: wallMs(2), delivered: 3, deadLetters: 4 },
  };
  expect(JSON.stringify(definitionOf(subscription))).toBe(JSON.stringify(definition));
});
