/** Log lines on a terminal. */
import { expect, test } from "vitest";
import { readable } from "../../../src/service/observability/readable.ts";

const line = (fields: object) => `${JSON.stringify({ level: "info", time: "2026-11-22T13:15:11.042Z", ...fields })}\n`;
/** Returns the log as a terminal displays it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters set the colors
const shown = (fields: object) => readable(line(fields)).replace(/\x1b\[\d+m/g, "");

test("a line has its time, level and message, and then its fields", () => {
  const fields = { event: "stopping", signal: "SIGTERM", count: 3, names: ["a", "b"], msg: "stopping" };
  expect(shown(fields)).toBe('13:15:11.042 INFO  stopping signal=SIGTERM count=3 names=["a","b"]\n');
});

test("an event is shown where the message does not say it", () => {
  expect(shown({ event: "config_warning", msg: "ISSUER is not set" })).toBe(
    "13:15:11.042 INFO  ISSUER is not set event=config_warning\n",
  );
});

test("an error is shown with its stack, a line for each frame", () => {
  const err = { type: "Error", message: "no", stack: "Error: no\n    at run (main.ts:1)" };
  expect(shown({ level: "error", event: "bug", msg: "bug", err })).toBe(
    "13:15:11.042 ERROR bug\n    Error: no\n        at run (main.ts:1)\n",
  );
});

test("an error without a stack is shown by its fields", () => {
  expect(shown({ event: "bug", msg: "bug", err: { type: "string" } })).toBe(
    '13:15:11.042 INFO  bug\n    {"type":"string"}\n',
  );
});

test("a level has its color, and an unknown one has none", () => {
  expect(readable(line({ level: "warn" }))).toContain("\x1b[33mWARN \x1b[0m");
  expect(readable(line({ level: "trace" }))).toContain("\x1b[0mTRACE\x1b[0m");
});
