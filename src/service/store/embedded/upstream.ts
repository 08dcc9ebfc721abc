/**
 * Finds the sessions that came from a login at an identity provider, by two indexes of their column `fixed`, and keeps notes of what it has
 * said.
 */
import type { ProviderNote, SessionId } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import { later } from "../../session/time.ts";
import { hashOf } from "../provider-notes.ts";
import type { Reservations } from "./reservations.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

type Deps = Transactions & { readonly sql: Statements; readonly reservations: Reservations };

export function createUpstream({
  sql,
  reservations,
  read,
  write,
}: Deps): Pick<SessionStore, "sessionsOf" | "isNoted" | "note"> {
  return {
    async sessionsOf(login) {
      const rows = read(() =>
        "sessionId" in login
          ? sql.ofUpstreamSession.all(login.sessionId, login.issuer)
          : sql.ofUpstreamSubject.all(login.subject, login.issuer),
      );
      return rows.map(({ sid }) => sid as SessionId);
    },

    async isNoted(note) {
      return read((now) => reservations.has(nameOf(note), now));
    },

    async note(note, lifeMs) {
      write("FULL", (now) => reservations.add(nameOf(note), later(now, lifeMs), now));
    },
  };
}

const nameOf = (note: ProviderNote) => `token ${hashOf(note)}`;
