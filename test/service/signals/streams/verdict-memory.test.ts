/** Concurrent polls of one stream: what one of them acknowledges is remembered, and the others no longer return it. */
import { expect, test } from "vitest";
import type { Verdicts } from "../../../../src/service/signals/streams/poll-pass.ts";
import { VerdictMemory } from "../../../../src/service/signals/streams/verdict-memory.ts";

const accepted = (...ids: string[]): Verdicts => new Map(ids.map((id) => [id, "accepted"]));

/** Returns a simulated pass over the log, which lasts until the test ends it. */
function heldPass() {
  const given = Promise.withResolvers<Verdicts>();
  const result = Promise.withResolvers<{ readonly open: Verdicts }>();
  const held = { hasBegun: false };
  const pass = (verdicts: Verdicts) => {
    held.hasBegun = true;
    given.resolve(verdicts);
    return result.promise;
  };
  return { held, pass, given: given.promise, end: (open: Verdicts) => result.resolve({ open }), fail: result.reject };
}

test("what comes while a pass runs is remembered, and what the pass has settled is not", async () => {
  const memory = new VerdictMemory();
  memory.add("stream", accepted("a", "b"));
  const first = heldPass();
  const passing = memory.settle("stream", first.pass);
  expect([...(await first.given).keys()]).toEqual(["a", "b"]);
  memory.add("stream", accepted("c"));
  first.end(accepted("b"));
  await passing;
  expect(["a", "b", "c"].map((id) => memory.has("stream", id))).toEqual([false, true, true]);
});

test("the passes of a stream follow each other, also after one that fails, and those of another stream do not wait", async () => {
  const memory = new VerdictMemory();
  memory.add("stream", accepted("a"));
  const [first, second, other] = [heldPass(), heldPass(), heldPass()];
  const failing = memory.settle("stream", first.pass);
  await first.given;
  memory.add("stream", accepted("b"));
  const following = memory.settle("stream", second.pass);
  const beside = memory.settle("other", other.pass);
  expect(await other.given).toEqual(new Map());
  expect(second.held.hasBegun).toBe(false);
  first.fail(new Error("the store does not respond"));
  await expect(failing).rejects.toThrow("the store");
  expect([...(await second.given).keys()]).toEqual(["a", "b"]);
  second.end(new Map());
  other.end(new Map());
  await Promise.all([following, beside]);
  expect(memory.has("stream", "a")).toBe(false);
});

test("the first verdict on a signal stands, and no more than 4,096 are remembered", async () => {
  const memory = new VerdictMemory();
  memory.add("stream", new Map([["a", "refused"]]));
  memory.add("stream", accepted("a"));
  const pass = heldPass();
  const passing = memory.settle("stream", pass.pass);
  expect((await pass.given).get("a")).toBe("refused");
  pass.end(accepted(...Array.from({ length: 5_000 }, (_, at) => `s${at}`)));
  await passing;
  expect([memory.has("stream", "s903"), memory.has("stream", "s904")]).toEqual([false, true]);
});

test("as many streams as can exist are remembered, and one more forgets the one that was polled longest ago", () => {
  const memory = new VerdictMemory();
  const has = (at: number) => memory.has(`stream ${at}`, "a");
  for (let at = 0; at < 256; at++) memory.add(`stream ${at}`, accepted("a"));
  // A poll without verdicts takes no place.
  memory.add("another", accepted());
  expect([has(0), has(255)]).toEqual([true, true]);
  memory.add("stream 0", accepted("b"));
  memory.add("one more", accepted("a"));
  expect([has(0), has(1), has(2), memory.has("one more", "a")]).toEqual([true, false, true, true]);
});
