import { expect, test } from "vitest";
import { createSingleFlight } from "../../../../src/service/session/migration/single-flight.ts";

const KEEP = 1_000;

function world() {
  let now = 0;
  const work: { readonly key: string; resolve(result: string): void; reject(error: Error): void }[] = [];
  const once = createSingleFlight<string>({
    isKept: (result) => result.startsWith("no"),
    keepMs: KEEP,
    maxKept: 2,
    maxUnderWay: 2,
    busy: () => "busy",
    clock: () => now,
  });
  const run = (key: string) =>
    once(key, () => new Promise((resolve, reject) => void work.push({ key, resolve, reject })));
  const advance = (ms: number) => {
    now += ms;
  };
  return { run, work, advance };
}

test("calls for one key share the work that is under way, its result and its failure", async () => {
  const { run, work } = world();
  const calls = [run("a"), run("a"), run("b")];
  expect(work.map(({ key }) => key)).toEqual(["a", "b"]);
  work[0]?.resolve("yes");
  work[1]?.resolve("yes, too");
  expect(await Promise.all(calls)).toEqual(["yes", "yes", "yes, too"]);
  const failing = [run("a"), run("a")];
  work[2]?.reject(new Error("away"));
  for (const call of failing) await expect(call).rejects.toThrow("away");
  void run("a");
  expect(work).toHaveLength(4);
});

test("a refusal is kept for a while, and no other result is", async () => {
  const { run, work, advance } = world();
  const [no, yes] = [run("a"), run("b")];
  work[0]?.resolve("no");
  work[1]?.resolve("yes");
  await Promise.all([no, yes]);
  advance(KEEP - 1);
  expect(await run("a")).toBe("no");
  void run("b");
  expect(work).toHaveLength(3);
  advance(1);
  void run("a");
  expect(work).toHaveLength(4);
});

test("what is kept and what is under way are bounded", async () => {
  const { run, work } = world();
  for (const [at, key] of ["a", "b", "c"].entries()) {
    const call = run(key);
    work[at]?.resolve("no");
    await call;
  }
  expect([await run("b"), await run("c")]).toEqual(["no", "no"]);
  void run("a");
  expect(work).toHaveLength(4);
  void run("d");
  expect(await run("e")).toBe("busy");
});
