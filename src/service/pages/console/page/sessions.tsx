/** The view that finds the sessions of a user, a session by its id, or the newest sessions, and ends them. */
import { useState } from "preact/hooks";
import type { Session } from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { explain, type Me } from "./api.ts";
import { type Asked, EndSessions } from "./end-sessions.tsx";
import { exportUser } from "./export-user.ts";
import { ForgetUser } from "./forget-user.tsx";
import { Empty, Forbidden, Given, Loading, Problem } from "./parts.tsx";
import { addressOf, EMPTY_FILTER, type Filter, SearchForm } from "./search.tsx";
import { SessionTable } from "./session-table.tsx";
import { Timeline } from "./timeline.tsx";
import { type FoundSessions, useSessions } from "./use-sessions.ts";

type Props = { readonly me: Me; readonly wanted: string };

/** @param wanted a subject, the id of a session, or nothing */
export function SessionsView({ me, wanted }: Props) {
  const [filter, setFilter] = useState<Filter>(EMPTY_FILTER);
  const [asked, setAsked] = useState<Asked>();
  const [isForgetting, setForgetting] = useState(false);
  const [message, setMessage] = useState("");
  const [changes, setChanges] = useState(0);
  const mayRead = me.scopes.includes("sessions:read");
  const mayEnd = me.scopes.includes("sessions:revoke");
  const { found, busy, error, load } = useSessions(wanted, filter, mayRead);

  if (!mayRead) return <Forbidden title="Sessions cannot be shown" scope="sessions:read" />;
  const changed = (what: string) => {
    setAsked(undefined);
    setForgetting(false);
    setMessage(what);
    setChanges((n) => n + 1);
    load();
  };
  const ended = (count: number, what: string) =>
    changed(count === 0 ? "Nothing to end: it had ended already." : `${what} ended.`);
  const exported = () =>
    exportUser(subject).then(
      () => setMessage("What is stored of the user is saved as a file."),
      (failure) => setMessage(explain(failure).title),
    );
  const list = found?.sessions ?? [];
  const subject = found?.byId === true ? (list[0]?.subject ?? "") : wanted;
  return (
    <main>
      <SearchForm wanted={wanted} filter={filter} onFilter={setFilter} />
      <p class="message" role="status">
        {message}
      </p>
      <section aria-labelledby="sessions-title" aria-busy={busy}>
        <Heading
          subject={subject}
          found={error === undefined ? found : undefined}
          mayEnd={mayEnd}
          onEndAll={() => setAsked({ all: true, sessions: list })}
          onExport={me.scopes.includes("subjects:export") ? exported : undefined}
          onForget={me.scopes.includes("subjects:forget") ? () => setForgetting(true) : undefined}
        />
        {error !== undefined && <Problem error={error} retry={() => load()} />}
        {error === undefined && found === undefined && <Loading what="Looking for sessions…" />}
        {error === undefined && found !== undefined && (
          <List
            found={found}
            wanted={wanted}
            mayEnd={mayEnd}
            busy={busy}
            onEnd={(session) => setAsked({ all: false, sessions: [session] })}
            onMore={() => load(found)}
          />
        )}
      </section>
      {subject !== "" && <Timeline key={`${changes} ${subject}`} subject={subject} changed={changes > 0} live={list} />}
      {isForgetting && <ForgetUser subject={subject} onDone={changed} onCancel={() => setForgetting(false)} />}
      {asked !== undefined && (
        <EndSessions
          asked={asked}
          subject={subject}
          more={found?.next !== ""}
          onDone={ended}
          onCancel={() => setAsked(undefined)}
        />
      )}
    </main>
  );
}

type HeadingProps = {
  readonly subject: string;
  readonly found: FoundSessions | undefined;
  readonly mayEnd: boolean;
  readonly onEndAll: () => void;
  /** These two are undefined if the admin token does not allow it. */
  readonly onExport: (() => void) | undefined;
  readonly onForget: (() => void) | undefined;
};

function Heading({ subject, found, mayEnd, onEndAll, onExport, onForget }: HeadingProps) {
  const count = found?.sessions.length ?? 0;
  const isUser = subject !== "" && found?.byId !== true;
  return (
    <>
      <div class="row">
        <div>
          <h1 id="sessions-title">
            {subject === "" ? "Newest sessions" : isUser ? "Live sessions" : "Live session"}
            {isUser && found !== undefined && <span class="count">{`${count}${found.next === "" ? "" : "+"}`}</span>}
          </h1>
          {subject !== "" && (
            <p class="soft">
              of{" "}
              <a class="subject" href={addressOf(subject)}>
                <Given text={subject} />
              </a>
            </p>
          )}
        </div>
        {isUser && onExport !== undefined && (
          <button type="button" class="quiet" onClick={onExport}>
            Export user
          </button>
        )}
        {isUser && onForget !== undefined && (
          <button type="button" class="danger" onClick={onForget}>
            Forget user
          </button>
        )}
        {isUser && count > 0 && (
          <button
            type="button"
            class="danger"
            disabled={!mayEnd}
            title={mayEnd ? undefined : "Needs the scope sessions:revoke"}
            onClick={onEndAll}
          >
            End all sessions
          </button>
        )}
      </div>
      {!mayEnd && <p class="soft">Sessions cannot be ended: you do not have the scope sessions:revoke.</p>}
    </>
  );
}

type ListProps = {
  readonly found: FoundSessions;
  readonly wanted: string;
  readonly mayEnd: boolean;
  readonly busy: boolean;
  readonly onEnd: (session: Session) => void;
  readonly onMore: () => void;
};

function List({ found, wanted, mayEnd, busy, onEnd, onMore }: ListProps) {
  const { sessions, next, byId } = found;
  const isEmpty = sessions.length === 0;
  return (
    <>
      {isEmpty && next === "" && <Nothing ofUser={wanted !== ""} />}
      {!isEmpty && (
        <SessionTable sessions={sessions} withSubject={wanted === "" || byId} mayEnd={mayEnd} onEnd={onEnd} />
      )}
      {next !== "" && (
        <button type="button" class="quiet wide" disabled={busy} onClick={onMore}>
          {busy ? "Loading…" : isEmpty ? "Nothing found yet: search further" : "Show more"}
        </button>
      )}
    </>
  );
}

function Nothing({ ofUser }: { readonly ofUser: boolean }) {
  return (
    <Empty title={ofUser ? "No live sessions of this user" : "No live sessions"}>
      {ofUser
        ? "Check the spelling: it is the subject (sub) of the access tokens, or the id of a live session. What ended is below."
        : "Nobody is signed in, or nothing matches the filters."}
    </Empty>
  );
}
