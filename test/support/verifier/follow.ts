import { onTestFinished } from "vitest";
import { createVerifier, type VerifierEvent, type VerifierOptions } from "../../../src/verifier/index.ts";
import { inTime } from "../until.ts";
import { ADMIN_TOKEN, AUDIENCE, ISSUER, type Issuer } from "./issuer.ts";

/** Starts a verifier that follows an issuer. Its events are recorded, and tests move its clocks. */
export function follow(issuer: Issuer, options: Partial<VerifierOptions> = {}) {
  const events: VerifierEvent[] = [];
  let wake = () => {};
  const moved = { wall: 0, monotonic: 0 };
  const verifier = createVerifier({
    adminUrl: issuer.adminUrl,
    adminToken: ADMIN_TOKEN,
    jwksUrl: issuer.jwksUrl,
    issuer: ISSUER,
    audience: AUDIENCE,
    clock: () => Date.now() + moved.wall,
    monotonic: () => performance.now() + moved.monotonic,
    report(event) {
      events.push(event);
      wake();
    },
    ...options,
  });
  onTestFinished(() => verifier.close());
  return {
    verifier,
    events,
    moved,
    /** Resolves at the next event with that name. */
    async next(name: VerifierEvent["event"]) {
      for (let from = events.length; ; from = events.length) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await inTime(() => `the event ${name}, after ${events.map(({ event }) => event).join(", ")}`, woken);
        const found = events.slice(from).find(({ event }) => event === name);
        if (found !== undefined) return found;
      }
    },
    /** Returns `ok`, or the reason of the rejection. */
    async verdictOf(token: string) {
      const verdict = await verifier.verify(token);
      return verdict.ok ? "ok" : verdict.reason;
    },
  };
}
