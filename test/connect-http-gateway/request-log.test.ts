/** The log of the gateway is limited: what a client causes cannot fill a disk. */
import { expect, test } from "vitest";
import { type BudgetedLog, type WriteLog, withBudget } from "../../src/connect-http-gateway/request-log.ts";

type Line = Parameters<WriteLog>[0];

function open(requestsPerSecond: number): { log: BudgetedLog; lines: Line[]; tick(): void } {
  const lines: Line[] = [];
  let nowMs = 0;
  const log = withBudget(
    (line) => lines.push(line),
    requestsPerSecond,
    () => nowMs,
  );
  const tick = () => {
    nowMs += 1_000;
  };
  return { log, lines, tick };
}

const many = (count: number, act: () => void) => Array.from({ length: count }).forEach(act);

test("an event has ten lines a second, and the next one says how many were suppressed", () => {
  const { log, lines, tick } = open(1);
  many(25, () => log.write({ event: "upstream error", reason: "lost" }));
  expect(lines).toHaveLength(10);
  log.write({ event: "reloaded" });
  expect(lines.at(-1)).toEqual({ event: "reloaded" });
  tick();
  log.write({ event: "upstream error", reason: "lost" });
  expect(lines.at(-1)).toEqual({ event: "upstream error", reason: "lost", suppressed: 15 });
  log.end();
});

test("requests have a budget for each class of status, so that a flood of one hides no other", () => {
  const { log, lines } = open(100);
  let collected = 0;
  const request = (status: number) =>
    log.writeRequest(status, () => {
      collected++;
      return { event: "request", status };
    });
  many(150, () => request(404));
  request(500);
  expect(lines).toHaveLength(101);
  // Nothing is collected for a line that is suppressed.
  expect(collected).toBe(101);
  log.end();
  expect(lines.at(-1)).toEqual({ event: "log lines suppressed", kind: "request 4xx", lines: 50 });
});

test("no text of a client is longer than a kilobyte", () => {
  const { log, lines } = open(1);
  log.writeRequest(200, () => ({ event: "request", path: `/${"x".repeat(30_000)}` }));
  expect(String(lines[0]?.path)).toHaveLength(1_025);
  log.end();
});
