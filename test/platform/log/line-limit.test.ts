import { expect, test } from "vitest";
import { createLineLimit, LINES_PER_SECOND } from "../../../src/platform/log/line-limit.ts";
import { UNLIMITED_EVENTS } from "../../../src/service/observability/logger.ts";

function limitAt(start: number) {
  let now = start;
  const limit = createLineLimit(() => now, LINES_PER_SECOND, UNLIMITED_EVENTS);
  const at = (time: number) => {
    now = time;
  };
  return { ...limit, at };
}

test("a flood leaves ten lines a second, and the next line has the count of suppressed ones", () => {
  const { admit, at } = limitAt(0);
  const passed = Array.from({ length: 50 }, () => admit("bug", "bug")).filter((count) => count !== undefined);
  expect(passed).toEqual(Array.from({ length: LINES_PER_SECOND }, () => 0));
  at(999);
  expect(admit("bug", "bug")).toBeUndefined();
  at(1000);
  expect([admit("bug", "bug"), admit("bug", "bug")]).toEqual([41, 0]);
});

test("one kind of line does not use up the budget of another", () => {
  const { admit } = limitAt(0);
  for (let line = 0; line < 100; line++) admit("authn_failed", "debug authn_failed expired");
  expect(admit("authn_failed", "warn authn_failed forged")).toBe(0);
});

test("what was suppressed is reported once, when no later line does", () => {
  const { admit, takeSuppressed } = limitAt(0);
  for (let line = 0; line < 13; line++) admit("bug", "error bug");
  expect(takeSuppressed()).toEqual([{ kind: "error bug", lines: 3 }]);
  expect(takeSuppressed()).toEqual([]);
});

test("facts of the audit trail are never suppressed", () => {
  const { admit } = limitAt(0);
  for (const event of [
    "session_created",
    "session_ended",
    "session_elevated",
    "all_sessions_ended",
    "subject_forgotten",
    "subject_exported",
    "authn_token_reuse",
  ]) {
    for (let line = 0; line < 100; line++) expect(admit(event, event)).toBe(0);
  }
});

test("kinds without end share one budget", () => {
  const { admit, takeSuppressed } = limitAt(0);
  for (let kind = 0; kind < 100_000; kind++) admit("message", `kind ${kind}`);
  expect(takeSuppressed()).toEqual([{ kind: "other", lines: 100_000 - 256 - LINES_PER_SECOND }]);
});

test("a line may be suppressed before it is made, and counts as any other", () => {
  const { admit, suppress, takeSuppressed, at } = limitAt(0);
  expect(suppress("bug", "bug")).toBe(false);
  for (let line = 0; line < LINES_PER_SECOND; line++) admit("bug", "bug");
  expect([suppress("bug", "bug"), suppress("bug", "bug"), suppress("bug", "other bug")]).toEqual([true, true, false]);
  expect(takeSuppressed()).toEqual([{ kind: "bug", lines: 2 }]);
  at(1000);
  expect(suppress("bug", "bug")).toBe(false);
  for (let line = 0; line < LINES_PER_SECOND; line++) admit("session_ended", "session_ended");
  expect(suppress("session_ended", "session_ended")).toBe(false);
});
