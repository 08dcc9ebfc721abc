/**
 * Finds the sessions that came from a login at an identity provider, and keeps notes of what it has said. Only the partitions of sessions
 * know their logins, so all partitions are asked.
 */
import { hash } from "node:crypto";
import type { UpstreamLogin } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import { hashOf } from "../provider-notes.ts";
import { buffers, sessionId, text } from "./encoding/replies.ts";
import { KEY } from "./keys.ts";
import { slicesOf, tagOfSubject } from "./partitions.ts";
import type { Acknowledge } from "./replicas.ts";
import type { ScriptRunner } from "./script-runner.ts";

/** The length of a name, in characters (UPSTREAM in lua/lib/sizes.lua). */
const NAME_LENGTH = 22;

/**
 * Returns the name of a login in keys: a hash, so that neither the provider's session nor its user can be read there. Scripts compute it,
 * too (`leave_logins` of lua/lib/logins.lua), and Redis has SHA-1 alone. An attacker that makes two logins with one name gains nothing: the
 * caller of `sessionsOf` checks each session.
 */
export function loginNameOf(login: UpstreamLogin): string {
  const { issuer } = login;
  const part = "sessionId" in login ? `sid:${login.sessionId}` : `sub:${login.subject}`;
  return hash("sha1", `${Buffer.byteLength(issuer)}:${issuer}${part}`).slice(0, NAME_LENGTH);
}

export function createUpstream(
  runner: Pick<ScriptRunner, "run" | "clustered">,
  acknowledge: Acknowledge,
): Pick<SessionStore, "sessionsOf" | "isNoted" | "note"> {
  return {
    async sessionsOf(login) {
      const slots = slicesOf(runner);
      const found = await Promise.all(slots.map((tags) => runner.run("upstream", tags, [loginNameOf(login)])));
      return found.flatMap((reply) => buffers(reply).map(sessionId));
    },

    async isNoted(note) {
      const id = hashOf(note);
      return text(await runner.run("provider_note", [tagOfSubject(id)], [id, 0])) === "used";
    },

    async note(note, lifeMs) {
      const id = hashOf(note);
      const tag = tagOfSubject(id);
      await runner.run("provider_note", [tag], [id, lifeMs]);
      await acknowledge(tag, [KEY.provider_note + id]);
    },
  };
}
