/** Sessions that end with the sessions of their actors. The step that ends an actor's session notes which others have to end. */
import { MAX_ATTACHED, type SessionId } from "../../session/model.ts";
import type { ExpiredSession, SessionStore } from "../../session/ports.ts";
import type { StoreMs } from "../../session/time.ts";
import { EXPIRED_NOTE } from "../event-text.ts";
import { createWakers } from "../wakers.ts";
import { actorIn, type SessionTable } from "./rows.ts";
import type { Statements } from "./statements.ts";
import type { EndStep } from "./subject-steps.ts";
import type { Transactions } from "./transactions.ts";

export type AttachedSteps = ReturnType<typeof createAttachedSteps>;

/** Steps within a transaction, and the listeners that are called after it. */
export function createAttachedSteps(sql: Statements) {
  const handOvers = createWakers();
  /** Whether the running transaction has noted that a session has to end. */
  let isNoted = false;
  const note = ({ changes }: { readonly changes: number | bigint }) => {
    isNoted ||= changes > 0;
  };
  return {
    begin: () => {
      isNoted = false;
    },
    /** Notes that the sessions have to end that end with a session. Returns the subject of the actor of that session, if it has one. */
    end(sid: SessionId): string | undefined {
      note(sql.handOver.run(sid));
      const fixed = sql.fixedOfActor.get(sid)?.fixed;
      return typeof fixed === "string" ? actorIn(fixed) : undefined;
    },
    /** Notes that the sessions have to end whose actors' sessions were created up to a time. */
    handOverAll: (createdUntil: StoreMs) => note(sql.handOverAll.run(createdUntil)),
    wake: () => {
      if (isNoted) handOvers.wake([]);
    },
    onHandOver: (wake: () => void) => handOvers.add(wake),
  };
}

type Deps = Transactions & {
  readonly sql: Statements;
  readonly sessions: SessionTable;
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
            sql.attach.run("", sid);
            return [];
          }
          const actor = end(sid, "actor_ended", now, EXPIRED_NOTE, subject);
          return [{ sid, subject, ...(actor !== undefined && { actor }) }];
        });
      });
    },
  };
}
