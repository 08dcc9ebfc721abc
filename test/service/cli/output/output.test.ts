/** Texts, tables, times and progress as the commands print them. */
import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createProgress } from "../../../../src/service/cli/output/progress.ts";
import { escapeInvisible, fields, printable, table } from "../../../../src/service/cli/output/text.ts";
import { moment, relative, span } from "../../../../src/service/cli/output/times.ts";
import { command, commandHere } from "../command.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test.each([
  [-1, "0s"],
  [999, "0s"],
  [119_999, "119s"],
  [2 * MINUTE, "2m"],
  [2 * HOUR - 1, "119m"],
  [2 * HOUR, "2h"],
  [2 * DAY - 1, "47h"],
  [2 * DAY, "2d"],
  [14.9 * DAY, "14d"],
])("%d ms are %s", (ms, text) => {
  expect(span(ms)).toBe(text);
});

test("what is ahead is rounded, what has passed is not", () => {
  const now = Date.UTC(2027, 0, 31, 12);
  expect(relative(now + 14 * DAY - 10, now)).toBe("in 14d");
  expect(relative(now + 3.5 * HOUR, now)).toBe("in 4h");
  expect(relative(now + 150_000, now)).toBe("in 3m");
  expect(relative(now - 14 * DAY + 10, now)).toBe("13d ago");
  expect(relative(now, now)).toBe("0s ago");
  expect(moment(now + 123, now + 5_123)).toBe("2027-01-31T12:00:00Z (5s ago)");
});

test("columns are as wide as their widest cell, the last one as it is", () => {
  const text = table([
    ["id", "subject", "seen"],
    ["1", "alice@example.com", "now"],
    ["12345", "b\u202eob", ""],
  ]);
  expect(stripVTControlCharacters(text).split("\n")).toEqual([
    "id     subject            seen",
    "1      alice@example.com  now",
    "12345  b\\u{202e}ob",
  ]);
  expect(table([["a"]]).split("\n")).toHaveLength(1);
});

test("fields without a value are left out", () => {
  const text = stripVTControlCharacters(
    fields([
      ["id", "1"],
      ["display name", ""],
      ["subject", "al\nice"],
    ]),
  );
  expect(text.split("\n")).toEqual(["id       1", "subject  al\\u{a}ice"]);
});

test("what controls a terminal, reorders or hides text is visible", () => {
  expect(printable("\u001b[31m\u007f\u200b\u2028\u2029\ud800é😀")).toBe(
    "\\u{1b}[31m\\u{7f}\\u{200b}\\u{2028}\\u{2029}\\u{d800}é😀",
  );
});

test("every line of a command shows what would control a terminal or turn its text around, but keeps colours", () => {
  expect(escapeInvisible("\u001b[1mbold\u001b[0m\ta\nb\u001b]0;title\u0007\u202e\u2066\u200f\u{e0001}\u0085é😀")).toBe(
    "\u001b[1mbold\u001b[0m\ta\nb\\u001b]0;title\\u0007\\u202e\\u2066\\u200f\\udb40\\udc01\\u0085é😀",
  );
});

test("JSON shows direction marks by its own escapes, and means the same", async () => {
  const claims = { sub: "al\u202eice\u2069", name: "a\u200fb" };
  const segment = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = `${segment({ alg: "none" })}.${segment(claims)}.xw`;
  const { out, err } = await command(["token", "inspect", "--json"], { input: token });
  expect(err).toBe("");
  expect(out).toContain("al\\u202eice\\u2069");
  expect(out).not.toMatch(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
  expect(JSON.parse(out).claims).toEqual(claims);
});

test("the messages of errors show them, too", async () => {
  const { err } = await commandHere(["no\u202ething"]);
  expect(err).toContain("no\\u202ething");
});

describe("progress", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  function terminal(isTTY: boolean) {
    const drawn: string[] = [];
    const stream = { isTTY, write: (text: string) => drawn.push(stripVTControlCharacters(text).trim()) };
    return { drawn, stream: stream as unknown as NodeJS.WriteStream };
  }

  test("is drawn at once, then ten times a second, and when it is complete", () => {
    const { drawn, stream } = terminal(true);
    const progress = createProgress("ending", 200, stream);
    progress.update(0);
    progress.update(1);
    vi.advanceTimersByTime(99);
    progress.update(2);
    vi.advanceTimersByTime(1);
    progress.update(101);
    progress.update(200);
    progress.end();
    expect(drawn).toEqual([
      `ending [${".".repeat(30)}] 0%`,
      `ending [${"#".repeat(15)}${".".repeat(15)}] 50%`,
      `ending [${"#".repeat(30)}] 100%`,
      "",
    ]);
  });

  test("of work that grows stays complete, and without a total it is a count", () => {
    const { drawn, stream } = terminal(true);
    createProgress("ending", 2, stream).update(3);
    createProgress("reading", 0, stream).update(7);
    expect(drawn).toEqual([`ending [${"#".repeat(30)}] 100%`, "reading 7"]);
  });

  test("is for a terminal alone", () => {
    const { drawn, stream } = terminal(false);
    const progress = createProgress("ending", 2, stream);
    progress.update(1);
    progress.end();
    expect(drawn).toEqual([]);
  });
});
