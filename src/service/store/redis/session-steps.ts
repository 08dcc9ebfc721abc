/** The operations on one session that do not end it by themselves. Each runs one script on the session's partition. */
import { type SessionId, seenBy } from "../../session/model.ts";
import { type RotateOutcome, type SessionStore, StoreUnavailable } from "../../session/ports.ts";
import { encodeAuthentication, lastSeenText } from "./blocks.ts";
import { keyKind } from "./device-record.ts";
import type { Link } from "./link.ts";
import { tagOfSession } from "./partitions.ts";
import { claimsText, deviceArguments, encodeAudience, nonceWords } from "./record.ts";
import type { Acknowledge } from "./replicas.ts";
import {
  decodeFound,
  elevateOutcome,
  registerKeyOutcome,
  rotateOutcome,
  unbindOutcome,
  updateOutcome,
} from "./replies.ts";
import type { Verb } from "./scripts.ts";
import type { Argument } from "./send.ts";

type Deps = {
  readonly link: Pick<Link, "run">;
  readonly acknowledge: Acknowledge;
  /** The reuse interval of refresh tokens (`R` in session/rotation/rotation.ts), in ms. */
  readonly reuseIntervalMs: number;
  /** How long an ended session is remembered, in ms. */
  readonly markerLifeMs: number;
};

type SessionSteps = Pick<SessionStore, "find" | "rotate" | "registerKey" | "unbind" | "elevate" | "update">;

export function createSessionSteps({ link, acknowledge, reuseIntervalMs, markerLifeMs }: Deps): SessionSteps {
  const change = async <Outcome extends { readonly ok: boolean }>(
    verb: Verb,
    sid: SessionId,
    args: readonly Argument[],
    decode: (sid: SessionId, reply: unknown) => Outcome,
  ): Promise<Outcome> => {
    const tag = tagOfSession(sid);
    const outcome = decode(sid, await link.run(verb, [tag], [sid, ...args]));
    if (outcome.ok) await acknowledge(tag, [`s${sid}`, `m${sid}`]);
    return outcome;
  };
  return {
    async find(sid) {
      return decodeFound(sid, await link.run("find", [tagOfSession(sid)], [sid]));
    },

    async rotate(sid, token, freshNonce, device, lastSeen) {
      const tag = tagOfSession(sid);
      const [n1, n2] = nonceWords(token.nonce);
      const [f1, f2] = nonceWords(freshNonce);
      const life = lastSeen === undefined ? markerLifeMs : `${markerLifeMs} ${lastSeenText(lastSeen)}`;
      const args: Argument[] = [sid, token.generation, n1, n2, token.issuedAt, f1, f2, reuseIntervalMs, life];
      if (device !== undefined) args.push(...deviceArguments(device));
      const outcome = rotateOutcome(sid, await link.run("rotate", [tag], args));
      if (!outcome.ok && "subject" in outcome) await acknowledge(tag, [`m${sid}`]); // With a subject, the outcome is an ending.
      return lastSeen === undefined && outcome.ok && outcome.session.lastSeen ? forgetLastSeen(link, outcome) : outcome;
    },

    async registerKey(sid, { generation }, key) {
      const { bytes, thumbprint } = key;
      const args = [generation, Buffer.from(bytes), Buffer.from(thumbprint), keyKind(key), reuseIntervalMs];
      return change("register_key", sid, args, registerKeyOutcome);
    },

    unbind: (sid) => change("unbind", sid, [], unbindOutcome),

    async elevate(sid, authentication, refresh = false) {
      const args = [authentication.time, encodeAuthentication(authentication), refresh ? markerLifeMs : ""];
      return change("elevate", sid, args, elevateOutcome);
    },

    async update(sid, { claims, audience, ifVersion, refresh }) {
      const audiences = audience === undefined ? "" : encodeAudience(audience);
      const replaced = claims === undefined ? "" : `=${claimsText(claims)}`;
      const args = [ifVersion ?? "", audiences, replaced, refresh ? markerLifeMs : ""];
      return change("update", sid, args, updateOutcome);
    },
  };
}

/**
 * Removes what a session has kept since such data was kept (LAST_SEEN). A script of its own does that, so that a refresh which keeps
 * nothing need not look for it. If it fails, the next rotation tries again.
 */
async function forgetLastSeen(link: Pick<Link, "run">, rotated: Extract<RotateOutcome, { readonly ok: true }>) {
  const { outcome, session } = rotated;
  if (outcome === "repeat") return rotated;
  await link.run("forget_last_seen", [tagOfSession(session.sid)], [session.sid]).catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error;
  });
  return { ...rotated, session: seenBy(session, undefined) };
}
