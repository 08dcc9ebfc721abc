import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HeaderMap } from "../../../src/connect-http-routes/call/header-map.ts";

const name = fc.constantFrom(
  "a",
  "A",
  "x-y",
  "Set-Cookie",
  "set-cookie",
  "cookie",
  "constructor",
  "__proto__",
  "bad name",
  "",
  "ü",
  "bad\n",
);
const value = fc.oneof(fc.constantFrom("1", " 2\t", "a, b", "", "ÿ", "bad\r\n", "€", "\0"), fc.string());
type Step = (headers: Headers) => unknown;
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(name, value).map(
    ([n, v]): Step =>
      (headers) =>
        headers.append(n, v),
  ),
  fc.tuple(name, value).map(
    ([n, v]): Step =>
      (headers) =>
        headers.set(n, v),
  ),
  name.map(
    (n): Step =>
      (headers) =>
        headers.delete(n),
  ),
  name.map(
    (n): Step =>
      (headers) =>
        headers.get(n),
  ),
  name.map(
    (n): Step =>
      (headers) =>
        headers.has(n),
  ),
  fc.constant<Step>((headers) => headers.getSetCookie()),
  fc.constant<Step>((headers) => [...headers]),
  fc.constant<Step>((headers) => [...headers.keys(), ...headers.values()]),
  fc.constant<Step>((headers) => {
    const listed: string[] = [];
    headers.forEach((v, n) => {
      listed.push(n, v);
    });
    return listed;
  }),
);

describe("a header map", () => {
  test("behaves like Headers", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const [ours, theirs] = [new HeaderMap(), new Headers()];
        for (const act of steps) expect(outcome(act, ours)).toEqual(outcome(act, theirs));
        expect([...ours]).toEqual([...theirs]);
      }),
      { numRuns: 500 },
    );
  });

  test("reads node's headers as connect-node does, before and after a change", () => {
    const source = { ":path": "/", host: "h", accept: "a, b", "set-cookie": ["a=1", "b=2"], cookie: "c; d" };
    const map = new HeaderMap(source);
    const expected = new Headers([
      ["host", "h"],
      ["accept", "a, b"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["cookie", "c; d"],
    ]);
    for (const key of ["host", "ACCEPT", "set-cookie", "cookie", "constructor", "tostring"])
      expect(map.get(key)).toBe(expected.get(key));
    expect([...map]).toEqual([...expected]);
    map.set("x", "1");
    expected.set("x", "1");
    for (const key of ["host", "accept", "set-cookie", "x", "constructor"])
      expect(map.get(key)).toBe(expected.get(key));
    expect(source).not.toHaveProperty("x");
  });

  test("is an instance of Headers", () => {
    const map = new HeaderMap({ a: "1" });
    expect(map).toBeInstanceOf(Headers);
    expect(inspect({ map })).toBe(inspect({ map: new Headers([["a", "1"]]) }));
    expect(String(map)).toBe(String(new Headers()));
    expect(JSON.stringify(map)).toBe(JSON.stringify(new Headers()));
    expect([...new Headers(map)]).toEqual([["a", "1"]]);
    expect([...new Response(null, { headers: map }).headers]).toEqual([["a", "1"]]);
  });
});

function outcome(act: Step, headers: Headers): unknown {
  try {
    return act(headers);
  } catch (error) {
    return error instanceof TypeError ? "TypeError" : error;
  }
}
