/** The wait for replicas, with replies that the test makes up. */
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { createSharedWait } from "../../../../src/service/store/redis/shared-wait.ts";

/** Returns a wait for two replicas. `expiries` are the expiry times of the keys that show the write. */
function waitFor(acknowledged: number, expiries: Readonly<Record<string, number>>) {
  const send = async (_: unknown, command: string, [key]: readonly unknown[]) => {
    if (command === "pexpiretime") return expiries[String(key)] ?? -2;
    return command === "wait" ? acknowledged : "OK";
  };
  return createSharedWait({ redis: {} as Redis, send: send as never, waitReplicas: 2, commandTimeoutMs: 100 });
}

test("as many replicas as configured have to acknowledge", async () => {
  await expect(waitFor(2, {})("{00}", [])).resolves.toBeUndefined();
  await expect(waitFor(1, {})("{00}", [])).rejects.toThrow("1 of 2 replicas");
});

test("one of the keys shows that this node has the write", async () => {
  await expect(waitFor(2, { "{00}mb": 1 })("{00}", ["sb", "mb"])).resolves.toBeUndefined();
  await expect(waitFor(2, { "{00}mc": 1 })("{00}", ["sb", "mb"])).rejects.toThrow(StoreUnavailable);
});
