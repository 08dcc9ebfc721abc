/**
 * The operations on one session, but for those that are asked to end it. Each runs one script on the session's partition, a
 * refresh sometimes a second one (`forgetLastSeen`).
 */
import { NO_PRESENTATION } from "../../session/devices/binding.ts";
import { type SessionId, seenBy } from "../../session/model.ts";
import { type RotateOutcome, type SessionStore, StoreUnavailable } from "../../session/ports.ts";
import type { ArgumentsOf } from "./encoding/arguments.ts";
import { encodeAuthentication, lastSeenText } from "./encoding/blocks.ts";
import { encodePresentation, keyKind } from "./encoding/device-record.ts";
import { claimsText, encodeAudience, nonceWords } from "./encoding/record.ts";
import {
  decodeFound,
  elevateOutcome,
  registerKeyOutcome,
  rotateOutcome,
  unbindOutcome,
  updateOutcome,
} from "./encoding/replies.ts";
import { KEY } from "./keys.ts";
import { tagOfSession } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import type { ScriptRunner } from "./script-runner.ts";

type Deps = {
  readonly runner: Pick<ScriptRunner, "run">;
  readonly acknowledge: Acknowledge;
  /** The reuse interval of refresh tokens (`R` in session/rotation/rotation.ts), in ms. */
  readonly reuseIntervalMs: number;
  /** How long an ended session is remembered, in ms. */
  readonly markerLifeMs: number;
};

type Change = "register_key" | "unbind" | "elevate" | "update";
type SessionSteps = Pick<SessionStore, "find" | "rotate" | "registerKey" | "unbind" | "elevate" | "update">;

export function createSessionSteps({ runner, acknowledge, reuseIntervalMs, markerLifeMs }: Deps): SessionSteps {
  const change = async <V extends Change, Outcome extends { readonly ok: boolean }>(
    verb: V,
    args: ArgumentsOf<V>,
    decode: (sid: SessionId, reply: unknown) => Outcome,
  ): Promise<Outcome> => {
    const [sid] = args;
    const tag = tagOfSession(sid);
    const outcome = decode(sid, await runner.run(verb, [tag], args));
    if (outcome.ok) await acknowledge(tag, [KEY.session + sid, KEY.marker + sid]);
    return outcome;
  };
  return {
    async find(sid) {
      return decodeFound(sid, await runner.run("find", [tagOfSession(sid)], [sid]));
    },

    async rotate(sid, token, freshNonce, presentation = NO_PRESENTATION, lastSeen) {
      const tag = tagOfSession(sid);
      const { generation, issuedAt } = token;
      const [nonce1, nonce2] = nonceWords(token.nonce);
      const [fresh1, fresh2] = nonceWords(freshNonce);
      const seen = lastSeen === undefined ? "" : lastSeenText(lastSeen);
      const { lifeMs, cookie, proof, transport, skipped } = presentation;
      // Most requests present nothing but their token.
      const device = cookie || proof || transport || skipped ? encodePresentation(presentation) : "";
      const presented = [sid, generation, nonce1, nonce2, issuedAt] as const;
      const args = [...presented, fresh1, fresh2, reuseIntervalMs, markerLifeMs, seen, lifeMs, device] as const;
      const outcome = rotateOutcome(sid, await runner.run("rotate", [tag], args));
      if (!outcome.ok && "subject" in outcome) await acknowledge(tag, [KEY.marker + sid]); // With a subject, the outcome is an ending.
      return lastSeen === undefined && outcome.ok && outcome.session.lastSeen
        ? forgetLastSeen(runner, outcome)
        : outcome;
    },

    async registerKey(sid, { generation }, key) {
      const { bytes, thumbprint } = key;
      const [keyBytes, hash, kind] = [Buffer.from(bytes), Buffer.from(thumbprint), keyKind(key)];
      return change("register_key", [sid, generation, keyBytes, hash, kind, reuseIntervalMs], registerKeyOutcome);
    },

    unbind: (sid) => change("unbind", [sid], unbindOutcome),

    async elevate(sid, authentication, outdatesTokens = false) {
      const staleLifeMs = outdatesTokens ? markerLifeMs : "";
      const args = [sid, authentication.time, encodeAuthentication(authentication), staleLifeMs] as const;
      return change("elevate", args, elevateOutcome);
    },

    async update(sid, { claims, audience, ifVersion, outdatesTokens }) {
      const audiences = audience === undefined ? "" : encodeAudience(audience);
      const replaced = claims === undefined ? "" : `=${claimsText(claims)}`;
      const staleLifeMs = outdatesTokens ? markerLifeMs : "";
      return change("update", [sid, ifVersion ?? "", audiences, replaced, staleLifeMs], updateOutcome);
    },
  };
}

/**
 * Removes the address and user agent of the last refresh, which a session may have from the time when `LAST_SEEN` was on. A script of its
 * own does that, so that a refresh which keeps nothing need not look for it. If it fails, the next rotation tries again.
 */
async function forgetLastSeen(
  runner: Pick<ScriptRunner, "run">,
  rotated: Extract<RotateOutcome, { readonly ok: true }>,
) {
  const { outcome, session } = rotated;
  if (outcome === "repeat") return rotated;
  await runner.run("forget_last_seen", [tagOfSession(session.sid)], [session.sid]).catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error;
  });
  return { ...rotated, session: seenBy(session, undefined) };
}
