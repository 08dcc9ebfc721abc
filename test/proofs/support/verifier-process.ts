/** A process of several verifiers, each on a connection of its own. */
import { setTimeout as pause } from "node:timers/promises";
import { createVerifier, type Verifier } from "../../../src/verifier/index.ts";
import { now, type Order, type Refusal, type Report } from "./verifier-messages.ts";

/** The pause between two checks of a token, in ms. Measured times may be too long by this much. */
const PAUSE_MS = 1;

const verifiers: Verifier[] = [];
const watched = new Map<string, { readonly verifier: Verifier; refusedAt: number; lastAcceptedAt: number }[]>();
let checking = false;

const send = (report: Report) => process.send?.(report);

async function reasonOf(verifier: Verifier, token: string): Promise<string> {
  const verdict = await verifier.verify(token);
  return verdict.ok ? "accepted" : verdict.reason;
}

async function start({ count, adminUrls, adminToken, issuer }: Extract<Order, { do: "start" }>): Promise<void> {
  for (let i = 0; i < count; i++) {
    const adminUrl = adminUrls[i % adminUrls.length] ?? "";
    // The verifier does not introspect, so its verdicts come from the feed alone.
    verifiers.push(createVerifier({ adminUrl, adminToken, issuer, audience: issuer, policy: "refuse" }));
  }
  await Promise.all(verifiers.map(({ ready }) => ready));
  send({ did: "start" });
}

/** Returns the verdict of a verifier as soon as it is connected. */
async function settledReason(verifier: Verifier, token: string): Promise<string> {
  for (;;) {
    const reason = await reasonOf(verifier, token);
    if (reason !== "unavailable") return reason;
    await pause(PAUSE_MS);
  }
}

async function watch(token: string): Promise<void> {
  for (const verifier of verifiers) {
    const reason = await settledReason(verifier, token);
    if (reason !== "accepted") throw new Error(`a good token is refused: ${reason}`);
  }
  watched.set(
    token,
    verifiers.map((verifier) => ({ verifier, refusedAt: 0, lastAcceptedAt: 0 })),
  );
  send({ did: "watch", token });
  if (!checking) void checkAll();
}

async function checkAll(): Promise<void> {
  checking = true;
  while (watched.size > 0) {
    for (const [token, pairs] of watched) {
      for (const pair of pairs) {
        if (pair.refusedAt > 0) continue;
        const reason = await reasonOf(pair.verifier, token);
        if (reason === "accepted") pair.lastAcceptedAt = now();
        else if (reason === "revoked") pair.refusedAt = now();
      }
      if (pairs.some(({ refusedAt }) => refusedAt === 0)) continue;
      watched.delete(token);
      const refusals = pairs.map(({ refusedAt, lastAcceptedAt }): Refusal => ({ refusedAt, lastAcceptedAt }));
      send({ did: "refuse", token, refusals });
    }
    await pause(PAUSE_MS);
  }
  checking = false;
}

async function check({ dead, live }: Extract<Order, { do: "check" }>): Promise<void> {
  const wrong: string[] = [];
  for (const verifier of verifiers) {
    for (const token of dead) {
      const reason = await settledReason(verifier, token);
      if (reason !== "revoked") wrong.push(`a dead token: ${reason}`);
    }
    for (const token of live) {
      const reason = await settledReason(verifier, token);
      if (reason !== "accepted") wrong.push(`a live token: ${reason}`);
    }
  }
  send({ did: "check", wrong });
}

process.on("message", (order: Order) => {
  if (order.do === "start") void start(order);
  else if (order.do === "watch") void watch(order.token);
  else void check(order);
});
process.on("disconnect", () => process.exit());
