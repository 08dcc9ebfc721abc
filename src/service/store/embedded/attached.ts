/** Sessions that end with the sessions of their actors. The step that ends an actor's session notes which others have to end. */
import { MAX_ATTACHED, type SessionId } from "../../session/model.ts";
import type { ExpiredSession, SessionStore } from "../../session/ports.ts";
import { EXPIRED_NOTE } from "../event-text.ts";
import type { EndStep } from "./end-many.ts";
import type { SessionRows } from "./rows.ts";
import { UNATTACHED } from "./schema-versions.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

type Deps = Transactions & {
  readonly sql: Statements;
  readonly sessions: SessionRows;
  readonly end: EndStep;
};

export function createAttached({
  sql,
  sessions,
  end,
  read,
  write,
}: Deps): Pick<SessionStore, "attach" | "endAttached"> {
  return {
    async attach(sid, actor) {
      return write("FULL", (now) => {
        if (sessions.live(actor, now) === undefined) return { ok: false, reason: "ended" };
        if (Number(sql.countAttached.get(actor)?.count) >= MAX_ATTACHED) return { ok: false, reason: "full" };
        sql.attach.run(actor, sid);
        return { ok: true };
      });
    },

    async endAttached() {
      if (read(() => sql.handedOver.get()) === undefined) return [];
      return write("FULL", (now) => {
        const rows = sql.handedOver.all() as { readonly sid: SessionId; readonly subject: string }[];
        return rows.flatMap(({ sid, subject }): ExpiredSession[] => {
          if (sessions.live(sid, now) === undefined) {
            sql.attach.run(UNATTACHED, sid);
            return [];
          }
          return [{ subject, ...end(sid, "actor_ended", now, EXPIRED_NOTE, subject) }];
        });
      });
    },
  };
}
