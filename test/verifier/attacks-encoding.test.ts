/** Attacks that change the signature of a token or the encoding of its parts. */
import { sign } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import { parseObject } from "../../src/platform/jws/strict-json.ts";
import type { Refusal } from "../../src/verifier/index.ts";
import { claims, head, json, privateKey, raw, signed, token } from "../support/verifier/forge.ts";
import { startTarget } from "../support/verifier/target.ts";

const target = await startTarget();
const { verdictOf } = target;
afterAll(() => target.close());

describe("every attack is rejected with a closed reason", () => {
  const payload = json(claims);
  const header = json(head);
  const good = signed(header, payload);
  const [, , goodSignature = ""] = good.split(".");

  test.each<[string, string, Refusal]>([
    ["the null signature", `${header}.${payload}.${raw(Buffer.alloc(64))}`, "forged"],
    [
      "r = s = n",
      `${header}.${payload}.${raw(Buffer.from("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551".repeat(2), "hex"))}`,
      "forged",
    ],
    [
      "r = 0",
      `${header}.${payload}.${raw(Buffer.concat([Buffer.alloc(32), Buffer.from(goodSignature, "base64url").subarray(32)]))}`,
      "forged",
    ],
    [
      "s = 0",
      `${header}.${payload}.${raw(Buffer.concat([Buffer.from(goodSignature, "base64url").subarray(0, 32), Buffer.alloc(32)]))}`,
      "forged",
    ],
    [
      "r > n",
      `${header}.${payload}.${raw(Buffer.concat([Buffer.alloc(32, 0xff), Buffer.from(goodSignature, "base64url").subarray(32)]))}`,
      "forged",
    ],
    [
      "a signature in DER",
      `${header}.${payload}.${sign("sha256", Buffer.from(`${header}.${payload}`), privateKey).toString("base64url")}`,
      "malformed",
    ],
    ["no signature", `${header}.${payload}.`, "malformed"],
    ["no dots", raw(good), "malformed"],
    ["two segments", `${header}.${payload}`, "malformed"],
    ["four segments", `${good}.${goodSignature}`, "malformed"],
    ["five segments, as if encrypted", `${header}..${payload}.${payload}.${goodSignature}`, "malformed"],
    ["the JSON serialization", JSON.stringify({ payload, protected: header, signature: goodSignature }), "malformed"],
    ["padding after the signature", `${good}==`, "malformed"],
    ["padding after the header", `${header}=.${payload}.${goodSignature}`, "malformed"],
    ["another alphabet", good.replaceAll("-", "+").replaceAll("_", "/").concat("+"), "malformed"],
    ["a space before", ` ${good}`, "malformed"],
    ["a line break after", `${good}\n`, "malformed"],
    ["a NUL after", `${good}\0`, "malformed"],
    ["letters that look alike", good.replace("e", "е"), "malformed"],
    [
      "a duplicate member of the header",
      signed(raw(`{"alg":"none",${JSON.stringify(head).slice(1)}`), payload),
      "malformed",
    ],
    [
      "a duplicate member, escaped",
      signed(raw(`{"\\u0061lg":"none",${JSON.stringify(head).slice(1)}`), payload),
      "malformed",
    ],
    ["a duplicate claim", signed(header, raw(`{"sub":"root",${JSON.stringify(claims).slice(1)}`)), "malformed"],
    [
      "a duplicate member deep in the claims",
      signed(header, raw(`{"a":[{"b":1,"b":2}],${JSON.stringify(claims).slice(1)}`)),
      "malformed",
    ],
    [
      "claims that are not UTF-8",
      signed(
        header,
        raw(Buffer.concat([Buffer.from(JSON.stringify(claims).slice(0, -1)), Buffer.from(',"x":"\xff"}', "latin1")])),
      ),
      "malformed",
    ],
    ["claims in UTF-16", signed(header, raw(Buffer.from(JSON.stringify(claims), "utf16le"))), "malformed"],
    ["claims after a byte order mark", signed(header, raw(`\ufeff${JSON.stringify(claims)}`)), "malformed"],
    ["claims that are a list", signed(header, json([claims])), "malformed"],
    ["claims that are null", signed(header, json(null)), "malformed"],
    ["claims that are not JSON", signed(header, raw("{sub:1}")), "malformed"],
    ["claims with a suffix", signed(header, raw(`${JSON.stringify(claims)}{}`)), "malformed"],
    ["a header that is a list", signed(json([head]), payload), "malformed"],
    ["a header that is a string", signed(json("at+jwt"), payload), "malformed"],
    ["a huge token", token({}, { pad: "x".repeat(100_000) }), "malformed"],
    ["a hugely nested token", signed(header, raw(`${"[".repeat(5000)}${"]".repeat(5000)}`)), "malformed"],
    ["nothing", "", "malformed"],
  ])("%s", async (_, attack, reason) => {
    expect(await verdictOf(attack)).toBe(reason);
  });

  test("a value that is not a string", async () => {
    for (const value of [undefined, null, 1, {}, [good], Buffer.from(good)]) {
      expect(await verdictOf(value as string)).toBe("malformed");
    }
  });

  test("every non-canonical encoding of a valid signature", async () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const last = alphabet.indexOf(good.at(-1) ?? "");
    for (let spare = 1; spare < 16; spare += 1)
      expect(await verdictOf(good.slice(0, -1) + alphabet[last + spare])).toBe("malformed");
    expect(await verdictOf(good)).toBe("ok");
  });

  test("a payload or header with spare bits set, even signed", async () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const odd = json({ ...claims, pad: "x".repeat((4 - (JSON.stringify(claims).length % 3)) % 3) });
    const spare =
      [odd, json({ ...claims, pad: "1" }), json({ ...claims, pad: "12" })].find((each) => each.length % 4 !== 0) ?? "";
    const twin = spare.slice(0, -1) + alphabet[alphabet.indexOf(spare.at(-1) ?? "") + 1];
    expect(Buffer.from(twin, "base64url")).toEqual(Buffer.from(spare, "base64url"));
    expect(await verdictOf(signed(header, spare))).toBe("ok");
    expect(await verdictOf(signed(header, twin))).toBe("malformed");
  });
});

describe("duplicate members", () => {
  const parse = parseObject;

  test("are detected at any depth and in any spelling", () => {
    for (const text of [
      '{"a":1,"a":1}',
      '{"a":{"b":[{"c":1,"c":2}]}}',
      '{"a":1,"\\u0061":1}',
      '{"__proto__":1,"__proto__":2}',
    ]) {
      expect(parse(text)).toBeUndefined();
    }
  });

  test("are not reported where there are none", () => {
    const value = { "a:b": 'x":"y\\', '"': ":", "": { "\\": [{}, [], { a: ":" }] }, "1": 1, é: "\u2028" };
    expect(parse(JSON.stringify(value))).toEqual(value);
    expect(parse(JSON.stringify(value, null, 2))).toEqual(value);
    expect(Object.keys(parse('{"__proto__":{"a":1}}') ?? {})).toEqual(["__proto__"]);
  });
});
