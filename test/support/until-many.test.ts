/** Many waits at the same time, as of a test that signs in hundreds of users. */
import { expect, test, vi } from "vitest";
import { slowness } from "./slowness.ts";
import { inTime } from "./until.ts";

const WAITS = 100;

vi.mock("./slowness.ts", { spy: true });

test("many waits share the measurements of the machine's slowness, which take CPU time", async () => {
  const waits = Array.from({ length: WAITS }, () => inTime("nothing", new Promise(() => {}), 20));
  const ends = await Promise.allSettled(waits);
  expect(ends.filter(({ status }) => status === "rejected")).toHaveLength(WAITS);
  expect(vi.mocked(slowness)).toHaveBeenCalled();
  expect(vi.mocked(slowness).mock.calls.length).toBeLessThan(WAITS / 2);
});
