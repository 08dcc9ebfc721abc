/** The operations on one session that do not end it by themselves. Each runs one script on the session's partition. */
import type { SessionStore } from "../../session/ports.ts";
import type { Link } from "./link.ts";
import { tagOfSession } from "./partitions.ts";
import { deviceArguments, encodeAuthentication, keyKind, nonceWords } from "./record.ts";
import type { Acknowledge } from "./replicas.ts";
import { decodeFound, elevateOutcome, registerKeyOutcome, rotateOutcome, unbindOutcome } from "./replies.ts";
import type { Argument } from "./script-call.ts";

type Deps = {
  readonly link: Pick<Link, "run">;
  readonly acknowledge: Acknowledge;
  /** The reuse interval of refresh tokens (`R` in session/rotation.ts), in ms. */
  readonly reuseIntervalMs: number;
  /** How long an ended session is remembered, in ms. */
  readonly markerLifeMs: number;
};

type SessionSteps = Pick<SessionStore, "find" | "rotate" | "registerKey" | "unbind" | "elevate">;

export function createSessionSteps({ link, acknowledge, reuseIntervalMs, markerLifeMs }: Deps): SessionSteps {
  return {
    async find(sid) {
      return decodeFound(sid, await link.run("find", [tagOfSession(sid)], [sid]));
    },

    async rotate(sid, token, freshNonce, device) {
      const tag = tagOfSession(sid);
      const [n1, n2] = nonceWords(token.nonce);
      const [f1, f2] = nonceWords(freshNonce);
      const args: Argument[] = [sid, token.generation, n1, n2, token.issuedAt, f1, f2, reuseIntervalMs, markerLifeMs];
      if (device !== undefined) args.push(...deviceArguments(device));
      const outcome = rotateOutcome(sid, await link.run("rotate", [tag], args));
      if (!outcome.ok && "subject" in outcome) await acknowledge(tag, [`m${sid}`]); // With a subject, the outcome is an ending.
      return outcome;
    },

    async registerKey(sid, { generation }, key) {
      const tag = tagOfSession(sid);
      const { bytes, thumbprint } = key;
      const args = [sid, generation, Buffer.from(bytes), Buffer.from(thumbprint), keyKind(key), reuseIntervalMs];
      const outcome = registerKeyOutcome(sid, await link.run("register_key", [tag], args));
      if (outcome.ok) await acknowledge(tag, [`s${sid}`, `m${sid}`]);
      return outcome;
    },

    async unbind(sid) {
      const tag = tagOfSession(sid);
      const outcome = unbindOutcome(sid, await link.run("unbind", [tag], [sid]));
      if (outcome.ok) await acknowledge(tag, [`s${sid}`, `m${sid}`]);
      return outcome;
    },

    async elevate(sid, authentication) {
      const tag = tagOfSession(sid);
      const args = [sid, authentication.time, encodeAuthentication(authentication)];
      const outcome = elevateOutcome(sid, await link.run("elevate", [tag], args));
      if (outcome.ok) await acknowledge(tag, [`s${sid}`, `m${sid}`]);
      return outcome;
    },
  };
}
