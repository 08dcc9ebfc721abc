/** The splitter finds the JSON texts in a stream of bytes, wherever the bytes are divided into chunks. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BadInput, BodyTooLarge } from "../../../src/connect-http-routes/codec/bad-input.ts";
import { LineSplitter, ValueSplitter } from "../../../src/connect-http-routes/codec/json-splitter.ts";

const FRAMINGS = ["json", "lines"] as const;
const SPLITTERS = { lines: LineSplitter, json: ValueSplitter };

/** Splits a text whose bytes arrive in chunks that end at these positions. */
function split(framing: keyof typeof SPLITTERS, text: string, ends: readonly number[] = [], limit = 100_000): string[] {
  const splitter = new SPLITTERS[framing](limit);
  const bytes = Buffer.from(text);
  const found: Uint8Array[] = [];
  let start = 0;
  for (const end of [...ends, bytes.byteLength].sort((a, b) => a - b)) {
    found.push(...splitter.push(bytes.subarray(start, end)));
    start = Math.max(start, end);
  }
  found.push(...splitter.end());
  return found.map((one) => Buffer.from(one).toString());
}

/** The text arrives byte by byte, so every possible boundary of pieces occurs. */
const everywhere = (text: string) => Array.from(Buffer.from(text), (_, at) => at + 1);

const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\r", "\t"), maxLength: 2 });
const values = fc.array(fc.tuple(fc.json({ maxDepth: 3 }), space, space), { maxLength: 6 });
const ends = fc.array(fc.nat(200), { maxLength: 12 });

describe("however the bytes arrive", () => {
  test("the elements of an array are its values", () => {
    fc.assert(
      fc.property(values, ends, space, (found, ends, outside) => {
        const elements = found.map(([json]) => json);
        const text = `${outside}[${found.map(([json, before, after]) => `${before}${json}${after}`).join(",")}]${outside}`;
        for (const arrival of [ends, everywhere(text)]) {
          expect(split("json", text, arrival).map((one) => one.trim())).toEqual(elements);
        }
      }),
    );
  });

  test("texts one after another are its values", () => {
    fc.assert(
      fc.property(values, ends, space, (found, ends, outside) => {
        // The first text is a number, because the splitter would take a stream that begins with `[` for one array of all messages.
        const texts = ["0", ...found.map(([json]) => json)];
        const text = `${outside}${texts.join("\n ")}${outside}`;
        expect(split("json", text, ends)).toEqual(texts);
        expect(split("json", text, everywhere(text))).toEqual(texts);
      }),
    );
  });

  test("lines are its values, without those that are blank", () => {
    fc.assert(
      fc.property(values, ends, fc.constantFrom("", "\n", " \r\n"), (found, ends, last) => {
        const lines = found.map(([json]) => json);
        const text = lines.join(" \r\n\n\t\n") + last;
        expect(split("lines", text, ends).map((one) => one.trim())).toEqual(lines);
        expect(split("lines", text, everywhere(text)).map((one) => one.trim())).toEqual(lines);
      }),
    );
  });

  test.each(["", " \n", "[]", " [ ] ", "[\r\n\t]"])("%j holds nothing", (text) => {
    expect([split("json", text), split("json", text, everywhere(text))]).toEqual([[], []]);
  });

  test.each([
    ...["[1 2]", "[,1]", "[1,]", "[1,,2]", "[1]x", "[1],", "[1]]", "]", ",", "1,2", "[1]2"],
    ...["[", "[1", "[1,", '["a', '["a\\"', "{", '{"a":[1]', "[[1]", '"a'],
  ])("%s is refused", (text) => {
    for (const ends of [[], everywhere(text)]) expect(() => split("json", text, ends)).toThrow(BadInput);
  });
});

describe("the limit", () => {
  const four = (framing: keyof typeof SPLITTERS) => (framing === "json" ? '["ab" ,1234,"cd"]' : '"ab"\n1234\n"cd"');

  test.each(FRAMINGS)("is that of one text, not of the stream (%s)", (framing) => {
    for (const ends of [[], everywhere(four(framing))]) {
      expect(split(framing, four(framing), ends, 4)).toEqual(['"ab"', "1234", '"cd"']);
      expect(() => split(framing, four(framing), ends, 3)).toThrow(BodyTooLarge);
    }
  });

  test.each(FRAMINGS)("holds before a text is complete (%s)", (framing) => {
    const splitter = new SPLITTERS[framing](4);
    splitter.push(Buffer.from('"abc'));
    expect(() => splitter.push(Buffer.from("d"))).toThrow(BodyTooLarge);
  });
});
