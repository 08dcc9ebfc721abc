/** A key is revoked, or a session changes, while a verdict waits. Every verifier then refuses the token. */
import { setTimeout as delay } from "node:timers/promises";
import { createConnectTransport } from "@connectrpc/connect-node";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { createVerifier, type VerifierOptions } from "../../src/verifier/index.ts";
import { createVerifier as createWebVerifier } from "../../src/verifier/web/index.ts";
import { untilTrue } from "../support/until.ts";
import { LANGUAGES, startFollower } from "../support/verifier/languages.ts";
import { startScriptedAdmin } from "../support/verifier/scripted-admin.ts";
import { SID } from "../vectors/format.ts";
import { EDWARDS, MAIN, NEXT } from "../vectors/keys.ts";

let commands: readonly (readonly [string, ...string[]])[] = [];
beforeAll(async () => {
  commands = await Promise.all(LANGUAGES.map(({ build }) => build()));
});

type Followed = Pick<VerifierOptions, "policy" | "maxStalenessMs">;
type VerdictOf = (token: string) => Promise<string>;

/** Starts every verifier on a simulated admin API. Returns functions that return the verdicts of all of them. */
async function followAll(options: Followed) {
  const admin = await startScriptedAdmin();
  const { adminUrl, adminToken, issuer, audience } = admin;
  const given = { adminUrl, adminToken, issuer, audience, ...options };
  const verdicts: VerdictOf[] = [];
  for (const command of commands) {
    const follower = startFollower(command, given);
    onTestFinished(() => follower.stop());
    await follower.reported("ready");
    verdicts.push(follower.verdictOf);
  }
  const transport = createConnectTransport({ httpVersion: "1.1", baseUrl: adminUrl });
  for (const verifier of [createVerifier({ ...given, transport }), createWebVerifier(given)]) {
    onTestFinished(() => verifier.close());
    await verifier.ready;
    verdicts.push(async (token) => {
      const verdict = await verifier.verify(token);
      return verdict.ok ? "accepted" : verdict.reason;
    });
  }
  return { admin, verdictsOf: (token: string) => Promise.all(verdicts.map((verdictOf) => verdictOf(token))) };
}

test.each([
  ["a key is revoked", "revoked_key", { revokedKeyIds: [MAIN.kid] }],
  ["a session changes", "stale", { staleTokens: [{ sessionId: SID, minVersion: 1 }] }],
])("%s while the token is introspected", async (_, reason, batch) => {
  const { admin, verdictsOf } = await followAll({ policy: "introspect", maxStalenessMs: 0 });
  const [token, other] = [admin.issue(MAIN, "1"), admin.issue(MAIN, "2")];
  const changed = Promise.withResolvers<void>();
  admin.onIntrospect(async (presented) => {
    if (presented === token) await changed.promise;
    return true;
  });
  const start = performance.now();
  const found = verdictsOf(token);
  const count = LANGUAGES.length + 2;
  await untilTrue(() => admin.introspected.filter((presented) => presented === token).length === count);
  admin.send({ ...batch, caughtUp: true });
  await untilTrue(async () => (await verdictsOf(other)).every((verdict) => verdict === reason));
  changed.resolve();
  const all = await found;
  // A verifier waits for an introspection for only a second, which may be too short on a busy machine.
  const isLate = performance.now() - start > 1_000;
  const verdicts = all.filter((verdict) => !isLate || verdict !== "unavailable");
  expect(verdicts).toEqual(Array(isLate ? verdicts.length : count).fill(reason));
});

test("while batches are read that had arrived", async () => {
  const { admin, verdictsOf } = await followAll({ policy: "refuse", maxStalenessMs: 100 });
  for (const key of [MAIN, NEXT, EDWARDS]) {
    const token = admin.issue(key, key.kid);
    const found: Promise<string[]>[] = [];
    // While batches are incomplete, a verdict waits for further ones until the feed is stale.
    for (let batches = 0; batches < 60; batches++) {
      admin.send({ caughtUp: false });
      await delay(5);
      if (batches >= 40) found.push(verdictsOf(token));
    }
    admin.send({ revokedKeyIds: [key.kid], caughtUp: true });
    for (const verdicts of found) for (const verdict of await verdicts) expect(verdict).not.toBe("accepted");
  }
});
