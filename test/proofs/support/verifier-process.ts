/** A process with some verifiers in it, each on a connection of its own, as internal services would run them. */
import { setTimeout as pause } from "node:timers/promises";
import { createVerifier, type Verifier } from "../../../src/verifier/index.ts";
import { now, type Order, type Refusal, type Report } from "./verifier-messages.ts";

/** Between two looks at a token, ms: the times that are measured are too long by so much. */
const LOOK = 1;

const verifiers: Verifier[] = [];
const watched = new Map<string, { readonly verifier: Verifier; refusedAt: number; lastAcceptedAt: number }[]>();
let looking = false;

const tell = (report: Report) => process.send?.(report);

async function reasonOf(verifier: Verifier, token: string): Promise<string> {
  const verdict = await verifier.verify(token);
  return verdict.ok ? "accepted" : verdict.reason;
}

async function start({ count, adminUrls, adminToken, issuer }: Extract<Order, { do: "start" }>): Promise<void> {
  for (let i = 0; i < count; i++) {
    const adminUrl = adminUrls[i % adminUrls.length] ?? "";
    // Who cannot know refuses: a question to the service would tell of the service, not of the feed.
    verifiers.push(createVerifier({ adminUrl, adminToken, issuer, audience: issuer, policy: "refuse" }));
  }
  await Promise.all(verifiers.map(({ ready }) => ready));
  tell({ did: "start" });
}

/** What a verifier says that may have been cut off and not know for a while. */
async function reasonInTheEnd(verifier: Verifier, token: string): Promise<string> {
  for (;;) {
    const reason = await reasonOf(verifier, token);
    if (reason !== "unavailable") return reason;
    await pause(LOOK);
  }
}

async function watch(token: string): Promise<void> {
  for (const verifier of verifiers) {
    const reason = await reasonInTheEnd(verifier, token);
    if (reason !== "accepted") throw new Error(`a good token is refused: ${reason}`);
  }
  watched.set(
    token,
    verifiers.map((verifier) => ({ verifier, refusedAt: 0, lastAcceptedAt: 0 })),
  );
  tell({ did: "watch", token });
  if (!looking) void look();
}

async function look(): Promise<void> {
  looking = true;
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
      tell({ did: "refuse", token, refusals });
    }
    await pause(LOOK);
  }
  looking = false;
}

async function check({ dead, live }: Extract<Order, { do: "check" }>): Promise<void> {
  const wrong: string[] = [];
  for (const verifier of verifiers) {
    for (const token of dead) {
      const reason = await reasonInTheEnd(verifier, token);
      if (reason !== "revoked") wrong.push(`a dead token: ${reason}`);
    }
    for (const token of live) {
      const reason = await reasonInTheEnd(verifier, token);
      if (reason !== "accepted") wrong.push(`a live token: ${reason}`);
    }
  }
  tell({ did: "check", wrong });
}

process.on("message", (order: Order) => {
  if (order.do === "start") void start(order);
  else if (order.do === "watch") void watch(order.token);
  else void check(order);
});
process.on("disconnect", () => process.exit());
