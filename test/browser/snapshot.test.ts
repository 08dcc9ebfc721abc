import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { createDisplay } from "../../src/browser/snapshot.ts";

test("changes leave nothing behind, however many there are", async () => {
  const { signal } = new AbortController();
  const display = createDisplay(globalThis, signal);
  const called = new Promise<void>((resolve) => {
    let count = 0;
    display.listen(() => ++count === 100 && resolve());
  });
  for (let iat = 0; iat < 100; iat++) display.show("active", { iat, exp: iat + 900 });
  await called;
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
