/** What a report gets: errors that a log in JSON shows. A report that fails changes nothing. */
import { expect, test } from "vitest";
import { toSafeReport, type VerifierEvent } from "../../../src/verifier/refusals/report.ts";

/** Returns an error with this many causes, which are named by their depth. */
const nested = (causes: number): Error => new Error(`${causes}`, causes === 0 ? {} : { cause: nested(causes - 1) });

test.each<[what: string, make: () => unknown, json: string]>([
  ["an error", () => new Error("lost"), '"lost"'],
  ["an error without a message", () => new TypeError(), '"TypeError"'],
  ["causes", () => new Error("a", { cause: new Error("b", { cause: "c" }) }), '"a: b"'],
  ["five messages", () => nested(4), '"4: 3: 2: 1: 0"'],
  ["no more than five messages", () => nested(5), '"5: 4: 3: 2: 1"'],
  ["an error with a form of its own", () => Object.assign(new Error("lost"), { toJSON: () => 7 }), "7"],
  ["a text", () => "lost", '"lost"'],
])("JSON shows %s", (_, make, json) => {
  const error = make();
  const events: VerifierEvent[] = [];
  const report = toSafeReport((event) => events.push(event));
  for (let time = 0; time < 2; time++) report({ event: "feed_lost", error });
  expect(events.map((event) => JSON.stringify(event))).toEqual(Array(2).fill(`{"event":"feed_lost","error":${json}}`));
});

test("the form that JSON shows can be replaced, and is no member of the error", () => {
  const error = new Error("lost");
  toSafeReport(() => {})({ event: "feed_lost", error });
  expect(Object.keys(error)).toEqual([]);
  expect(Reflect.deleteProperty(error, "toJSON")).toBe(true);
});

test("a report that throws or rejects changes nothing", async () => {
  const failing = () => {
    throw new Error("no log");
  };
  expect(() => toSafeReport(failing)({ event: "feed_following" })).not.toThrow();
  toSafeReport(async () => failing())({ event: "feed_following" });
  await Promise.resolve();
});
