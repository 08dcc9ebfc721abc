/** The steps of the kit's state machine, one by one, and what a tab learns from a message. machine.test.ts searches every order of them. */
import { describe, expect, test } from "vitest";
import * as machine from "../../../src/browser/machine.ts";
import { hear, messageOf, type TabMessage } from "../../../src/browser/messages.ts";
import type { Realm } from "../../../src/browser/realm.ts";
import type { HeldToken } from "../../../src/browser/token.ts";

const NOW_MS = 1_800_000_000_000;
const LIFE_S = 300;
const realm = { performance: { now: () => 0 }, Date: { now: () => NOW_MS }, Math: { random: () => 0.5 } } as Realm;

const textOf = (sid: string, iat: number) =>
  `e30.${Buffer.from(JSON.stringify({ sid, iat, exp: iat + LIFE_S })).toString("base64url")}.c2ln`;

const held = (sid: string, iat = 100, leftMs = 100_000): HeldToken => ({
  text: textOf(sid, iat),
  claims: { sid, iat, exp: iat + LIFE_S },
  atMs: NOW_MS,
  lifeMs: LIFE_S * 1000,
  reserveMs: 20_000,
  leftMs: () => leftMs,
});
const active = (...token: Parameters<typeof held>) => machine.receive(machine.BEGINNING, held(...token));
const offline = machine.fail(machine.BEGINNING, 1_000);
const ended = machine.end(active("s1"));

describe("the state machine", () => {
  test.each([
    ["a sign-in", machine.begin],
    ["the end of the session", machine.end],
    ["a token of the service", (known: machine.Known) => machine.receive(known, held("s1", 200))],
    ["a token of another tab", (known: machine.Known) => machine.take(known, held("s1", 200), undefined)],
  ])("counts %s, which makes responses under way outdated, and ends the backoff", (_, step) => {
    const known = machine.fail(active("s1"), 1_000);
    expect(step(known)).toMatchObject({ version: known.version + 1, failures: 0, waitMs: 0 });
  });

  test("after a sign-in the state is in doubt, so that even a hidden tab checks it", () => {
    expect(machine.begin(ended)).toMatchObject({ state: "unknown", doubtful: true, token: undefined });
    expect(active("s1").doubtful).toBe(false);
  });

  test("a token of a session that has ended is not taken from another tab, and one of the next session is", () => {
    expect(machine.take(ended, held("s1", 500), undefined)).toBe(ended);
    expect(machine.take(ended, held("s2"), undefined)).toMatchObject({
      state: "active",
      token: { claims: { sid: "s2" } },
    });
  });

  test("a token whose session has ended while it was under way is dropped once; the service is asked again", () => {
    const heard = machine.hearEnd(machine.BEGINNING, { sid: "s1" });
    const dropped = machine.receive(heard, held("s1"));
    expect(dropped).toEqual({ ...machine.BEGINNING, endedSid: undefined });
    expect(machine.receive(dropped, held("s1")).state).toBe("active");
    expect(machine.receive(heard, held("s2")).state).toBe("active");
  });

  test("an older token of the same session is not taken, and one of another session is, whatever its age", () => {
    const known = active("s1", 200);
    expect(machine.take(known, held("s1", 100), undefined)).toBe(known);
    expect(machine.take(known, held("s2", 100), undefined).token?.claims.sid).toBe("s2");
    expect(machine.take(known, held("s1", 300), undefined).token?.claims.iat).toBe(300);
    expect(machine.take(machine.BEGINNING, held("s1", 100), undefined).state).toBe("active");
  });

  test("a token that the hint cookie contradicts is neither taken nor kept", () => {
    const known = active("s1");
    expect(machine.take(known, held("s2"), "s1")).toBe(known);
    expect(machine.look(known, "s1", "s1")).toBe(known);
    expect(machine.look(known, "s2", "s2").state).toBe("unknown");
  });

  test("after an end, the hint cookie counts once it has changed", () => {
    const known = machine.end(active("s1"));
    expect(machine.look(known, "s1", "s1")).toBe(known);
    expect(machine.look(known, undefined, "s1")).toBe(known);
    expect(machine.look(known, "s2", "s1").state).toBe("unknown");
    expect(machine.look(machine.BEGINNING, "s2", "s1")).toBe(machine.BEGINNING);
  });

  test("the end of another session changes nothing, one that nobody names causes a check, and the own one ends it", () => {
    const known = active("s1");
    expect(machine.hearEnd(known, { sid: "s2" })).toBe(known);
    expect(machine.hearEnd(known, { sid: undefined })).toEqual({ ...known, doubtful: true });
    expect(machine.hearEnd(known, { sid: "s1" })).toMatchObject({ state: "ended", endedSid: "s1", token: undefined });
  });

  test("a tab without a token remembers which session ended last", () => {
    expect(machine.hearEnd(ended, { sid: undefined }).endedSid).toBe("s1");
    expect(machine.hearEnd(ended, { sid: "s2" }).endedSid).toBe("s2");
    expect(machine.end(ended).endedSid).toBe("s1");
  });

  test("a failure counts, keeps the token, and leaves an ended session ended", () => {
    expect(machine.fail(offline, 2_000)).toMatchObject({ state: "offline", failures: 2, waitMs: 2_000 });
    expect(machine.fail(active("s1"), 1_000)).toMatchObject({ state: "offline", token: { claims: { sid: "s1" } } });
    expect(machine.fail(ended, 1_000).state).toBe("ended");
    expect(machine.fail(offline, 1e12).waitMs).toBe(600_000);
  });
});

describe("a message of another tab", () => {
  const heard = (known: machine.Known, message: TabMessage) => hear(known, message, realm, undefined);

  test("that it failed delays a tab that needs a token, for what is left of the time", () => {
    const failed = { type: "failed", waitMs: 5_000, atMs: NOW_MS - 2_000 } as const;
    expect(heard(machine.BEGINNING, failed)).toMatchObject({ state: "offline", failures: 1, waitMs: 3_000 });
    expect(heard(active("s1", 100, 20_000), failed)).toMatchObject({ state: "offline", waitMs: 3_000 });
  });

  test.each([
    ["arrives when its time is over", machine.BEGINNING, 5_000],
    ["arrives later than that", machine.BEGINNING, 6_000],
    ["reaches a tab whose token is fresh", active("s1"), 0],
  ])("that it failed changes nothing if it %s", (_, known, agoMs) => {
    expect(heard(known, { type: "failed", waitMs: 5_000, atMs: NOW_MS - agoMs })).toBe(known);
  });

  test("with a token is taken while the token is valid", () => {
    const sent = (agoMs: number, text = textOf("s1", 100)) =>
      heard(machine.BEGINNING, { type: "token", text, atMs: NOW_MS - agoMs });
    expect(sent(LIFE_S * 1000 - 1)).toMatchObject({ state: "active", token: { claims: { sid: "s1" } } });
    expect(sent(LIFE_S * 1000)).toBe(machine.BEGINNING);
    expect(sent(LIFE_S * 1000 + 1)).toBe(machine.BEGINNING);
    expect(sent(0, "no token")).toBe(machine.BEGINNING);
  });

  test("with a token has the age of that token", () => {
    const { token } = heard(machine.BEGINNING, messageOf(held("s1", 100, 100_000), realm));
    expect(token?.leftMs()).toBe(100_000);
  });

  test("of a sign-in or of an end is the step of that name", () => {
    expect(heard(active("s1"), { type: "began" })).toEqual(machine.begin(active("s1")));
    expect(heard(ended, { type: "ended", sid: "s2" })).toEqual(machine.hearEnd(ended, { sid: "s2" }));
  });
});
