/** Secrets of subscriptions are sealed again before the key that sealed them goes. */
import { expect, test } from "vitest";
import { createSubscription } from "../../../src/service/signals/manage.ts";
import { sealAnew } from "../../../src/service/signals/seal-anew.ts";
import { ENDPOINT, openSignals, operator } from "./managed-world.ts";

test("what an earlier key has sealed is sealed by the current one, and all else stays", async () => {
  const { deps } = openSignals();
  const { subscriptions } = deps;
  const wanted = { endpoint: ENDPOINT, filter: {}, audience: ["app"], signingAlg: "" };
  const create = async (secret: string, seal: (secret: string) => string) => {
    const one = await createSubscription({ ...deps, seal }, { kind: "ssf_push", ...wanted, secret }, operator);
    return one.subscription.id;
  };
  const old = await create("first", (secret) => `old ${secret}`);
  const current = await create("second", (secret) => `new ${secret}`);
  const gone = await create("third", () => "gone");
  const without = await create("", () => "");
  const later = await create("fourth", (secret) => `old ${secret}`);
  const writes: string[] = [];
  const before = await subscriptions.get(old);
  const define: typeof subscriptions.define = (id, ...change) => {
    writes.push(id);
    return subscriptions.define(id, ...change);
  };
  await sealAnew(
    { known: subscriptions.known, define },
    {
      seal: (secret) => `new ${secret}`,
      open(sealed) {
        if (sealed === "gone") throw new Error("its key is gone");
        return sealed.replace(/^\w+ /, "");
      },
      isOutdated: (sealed) => !sealed.startsWith("new "),
    },
  );
  const secretOf = async (id: string) => (await subscriptions.get(id))?.sealedSecret;
  expect(await Promise.all([old, current, gone, without, later].map(secretOf))).toEqual([
    ...["new first", "new second", "gone", undefined],
    "new fourth",
  ]);
  expect(writes.sort()).toEqual([old, later].sort());
  expect(await subscriptions.get(old)).toEqual({ ...before, sealedSecret: "new first" });
});
