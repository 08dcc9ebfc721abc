/** The promise `ready` of a verifier always settles, and leaves no timer or listener behind. */
import { expect, test } from "vitest";
import { VerifierClosedError } from "../../src/verifier/index.ts";
import { holdProcess } from "../../src/verifier/ready.ts";
import { follow } from "../support/verifier/follow.ts";
import { startIssuer } from "../support/verifier/issuer.ts";

test("nothing is left of a verifier that became ready, however often that was awaited", async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const refused = Promise.reject(new Error("refused"));
  for (const ready of [Promise.resolve(), refused]) for (let times = 0; times < 20; times++) holdProcess(ready);
  expect(timers()).toBe(before + 40);
  await refused.catch(() => {});
  await new Promise(setImmediate);
  expect(timers()).toBeLessThanOrEqual(before);
});

test.each([
  ["follows the feed", {}],
  ["polls", { pollIntervalMs: 1000 }],
])("a verifier that %s and is closed before it was ready says so", async (_, options) => {
  const issuer = await startIssuer();
  const { verifier } = follow(issuer, { jwksUrl: "http://127.0.0.1:1/jwks.json", ...options });
  const ready = expect(verifier.ready).rejects.toThrow(VerifierClosedError);
  verifier.close();
  await ready;
  await expect(verifier.ready).rejects.toThrow("the verifier was closed before keys and revocations were known");
});
