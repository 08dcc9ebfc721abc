import { expect, test } from "vitest";
import { MAX_FIELD_LENGTH, safeStack, safeText } from "../../../src/service/observability/text.ts";

const UNSAFE: [name: string, character: string][] = [
  ["NUL", "\0"],
  ["line feed", "\n"],
  ["carriage return", "\r"],
  ["escape", "\x1b"],
  ["DEL", "\x7f"],
  ["C1, next line", "\x85"],
  ["C1, control sequence introducer", "\x9b"],
  ["line separator", "\u2028"],
  ["paragraph separator", "\u2029"],
  ["right-to-left override", "\u202e"],
  ["right-to-left isolate", "\u2067"],
  ["left-to-right mark", "\u200e"],
  ["Arabic letter mark", "\u061c"],
  ["byte order mark", "\ufeff"],
  ["lone surrogate", "\ud800"],
];

test.each(UNSAFE)("%s does not reach the log", (_, character) => {
  expect(safeText(`a${character}b${character}`)).toBe("a\ufffdb\ufffd");
});

test("what people write stays", () => {
  const text = 'Zoë — 山田 👩‍👩‍👧 "quoted" \\ https://a.example/?b=c#d';
  expect(safeText(text)).toBe(text);
});

test("a text of the maximum length stays whole, a longer one is cut with a note of its length", () => {
  const longest = "x".repeat(MAX_FIELD_LENGTH);
  expect(safeText(longest)).toBe(longest);
  expect(safeText(`${longest}y`)).toBe(`${longest}… (${MAX_FIELD_LENGTH + 1} characters)`);
  expect(safeText("abcdef", 3)).toBe("abc… (6 characters)");
});

test("a stack keeps its first frames, and nothing of the message before them", () => {
  const frames = Array.from({ length: 20 }, (_, index) => `    at f${index} (file.ts:1:1)`);
  const lines = safeStack(["Error: forged", "line two\x1b[2J", ...frames].join("\n")).split("\n");
  expect(lines).toEqual(frames.slice(0, 16));
});
