/** Finds the sessions that came from a login at an identity provider, by two indexes of their column `fixed`. */
import type { SessionId } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

export function createUpstream(
  sql: Statements,
  { read }: Pick<Transactions, "read">,
): Pick<SessionStore, "sessionsOf"> {
  return {
    async sessionsOf(login) {
      const rows = read(() =>
        "sessionId" in login
          ? sql.ofUpstreamSession.all(login.sessionId, login.issuer)
          : sql.ofUpstreamSubject.all(login.subject, login.issuer),
      );
      return rows.map(({ sid }) => sid as SessionId);
    },
  };
}
