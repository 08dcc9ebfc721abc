/** Finds the sessions that came from a login at an identity provider, by two indexes of their column `fixed`, and keeps its used tokens. */
import type { SessionId } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import { later } from "../../session/time.ts";
import type { Claims } from "./claims.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

type Deps = Transactions & { readonly sql: Statements; readonly claims: Claims };

export function createUpstream({
  sql,
  claims,
  read,
  write,
}: Deps): Pick<SessionStore, "sessionsOf" | "isTokenUsed" | "useToken"> {
  return {
    async sessionsOf(login) {
      const rows = read(() =>
        "sessionId" in login
          ? sql.ofUpstreamSession.all(login.sessionId, login.issuer)
          : sql.ofUpstreamSubject.all(login.subject, login.issuer),
      );
      return rows.map(({ sid }) => sid as SessionId);
    },

    async isTokenUsed(id) {
      return read((now) => claims.has(nameOf(id), now));
    },

    async useToken(id, lifeMs) {
      write("FULL", (now) => claims.add(nameOf(id), later(now, lifeMs), now));
    },
  };
}

const nameOf = (token: string) => `token ${token}`;
