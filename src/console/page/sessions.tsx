/** Finds the sessions of a user, or the newest of all, and ends them. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Session } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { sessions as api, isSignedOut, type Me } from "./api.ts";
import { deviceOf, nameBeside } from "./format.ts";
import { Beside, Confirm, Empty, Given, Loading, Problem } from "./parts.tsx";
import { EMPTY_FILTER, type Filter, requestOf, SearchForm } from "./search.tsx";
import { SessionCard } from "./session-card.tsx";
import { Timeline } from "./timeline.tsx";

const PAGE = 25;

type Props = { readonly me: Me; readonly subject: string; readonly onExpired: () => void };
type Loaded = { readonly sessions: readonly Session[]; readonly next: string };
type Asked = { readonly all: boolean; readonly sessions: readonly Session[] };

export function SessionsView({ me, subject, onExpired }: Props) {
  const [filter, setFilter] = useState<Filter>(EMPTY_FILTER);
  const [loaded, setLoaded] = useState<Loaded>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [asked, setAsked] = useState<Asked>();
  const [message, setMessage] = useState("");
  const [changes, setChanges] = useState(0);
  /** Counts what was asked for: a response to an earlier question is not shown. */
  const latest = useRef(0);
  const mayRead = me.scopes.includes("sessions:read");
  const mayEnd = me.scopes.includes("sessions:revoke");

  const load = useCallback(
    async (before?: Loaded) => {
      latest.current++;
      const own = latest.current;
      setBusy(true);
      setError(undefined);
      try {
        const request = { ...requestOf(filter), subject, pageSize: PAGE, pageToken: before?.next ?? "" };
        const page = await api.listSessions(request);
        if (own !== latest.current) return;
        const sessions = [...(before?.sessions ?? []), ...page.sessions];
        setLoaded({ sessions, next: page.nextPageToken });
      } catch (failure) {
        if (isSignedOut(failure)) return onExpired();
        if (own !== latest.current) return;
        setError(failure);
      }
      setBusy(false);
    },
    [subject, filter, onExpired],
  );
  useEffect(() => {
    if (mayRead) load();
  }, [load, mayRead]);

  if (!mayRead) {
    return (
      <main>
        <Empty title="Sessions cannot be shown">Your admin token does not have the scope sessions:read.</Empty>
      </main>
    );
  }
  const ended = (count: number, what: string) => {
    setAsked(undefined);
    setMessage(count === 0 ? "Nothing to end: it had ended already." : `${what} ended.`);
    setChanges((n) => n + 1);
    load();
  };
  const list = loaded?.sessions ?? [];
  const heading = subject === "" ? "Newest sessions" : "Live sessions";
  return (
    <main>
      <SearchForm subject={subject} filter={filter} onFilter={setFilter} />
      <p class="message" role="status">
        {message}
      </p>
      <section aria-labelledby="sessions-title" aria-busy={busy}>
        <div class="row">
          <div>
            <h1 id="sessions-title">
              {heading}
              {subject !== "" && loaded !== undefined && error === undefined && (
                <span class="count">{`${list.length}${loaded.next === "" ? "" : "+"}`}</span>
              )}
            </h1>
            {subject !== "" && (
              <p class="soft">
                of{" "}
                <b class="subject">
                  <Given text={subject} />
                </b>
              </p>
            )}
          </div>
          {subject !== "" && list.length > 0 && error === undefined && (
            <button
              type="button"
              class="danger"
              disabled={!mayEnd}
              title={mayEnd ? undefined : "Needs the scope sessions:revoke"}
              onClick={() => setAsked({ all: true, sessions: list })}
            >
              End all sessions
            </button>
          )}
        </div>
        {!mayEnd && (
          <p class="soft">Sessions cannot be ended: your admin token does not have the scope sessions:revoke.</p>
        )}
        {error !== undefined && <Problem error={error} retry={() => load()} />}
        {error === undefined && loaded === undefined && <Loading what="Looking for sessions…" />}
        {error === undefined && loaded !== undefined && list.length === 0 && loaded.next === "" && (
          <Empty title={subject === "" ? "No live sessions" : "No live sessions of this user"}>
            {subject === ""
              ? "Nobody is signed in, or nothing matches the filters."
              : "Check the spelling: it is the subject (sub) of the access tokens. What ended is below."}
          </Empty>
        )}
        {error === undefined && (
          <ul class="sessions">
            {list.map((session) => (
              <SessionCard
                key={session.sessionId}
                session={session}
                withSubject={subject === ""}
                mayEnd={mayEnd}
                onEnd={() => setAsked({ all: false, sessions: [session] })}
              />
            ))}
          </ul>
        )}
        {error === undefined && loaded !== undefined && loaded.next !== "" && (
          <button type="button" class="quiet wide" disabled={busy} onClick={() => load(loaded)}>
            {busy ? "Loading…" : list.length === 0 ? "Nothing found yet: search further" : "Show more"}
          </button>
        )}
      </section>
      {subject !== "" && (
        <Timeline key={changes} subject={subject} changed={changes > 0} live={list} onExpired={onExpired} />
      )}
      {asked !== undefined && (
        <EndSessions
          asked={asked}
          subject={subject}
          more={loaded?.next !== ""}
          onDone={ended}
          onExpired={onExpired}
          onCancel={() => setAsked(undefined)}
        />
      )}
    </main>
  );
}

type EndProps = {
  readonly asked: Asked;
  readonly subject: string;
  /** Whether there are more sessions than those that are shown. */
  readonly more: boolean;
  readonly onDone: (count: number, what: string) => void;
  readonly onExpired: () => void;
  readonly onCancel: () => void;
};

/** Says what will happen, to which devices, and does it. */
function EndSessions({ asked: { all, sessions }, subject, more, onDone, onExpired, onCancel }: EndProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [first] = sessions;
  const user = all ? subject : (first?.subject ?? "");
  const count = `${sessions.length}${more && all ? " or more" : ""}`;
  const title = all ? `End all sessions of this user?` : "End this session?";

  async function confirm() {
    setBusy(true);
    setError(undefined);
    try {
      const { revokedCount } = all
        ? await api.revokeSubjectSessions({ subject: user })
        : await api.revokeSession({ sessionId: first?.sessionId ?? "" });
      onDone(revokedCount, revokedCount === 1 ? "1 session" : `${revokedCount} sessions`);
    } catch (failure) {
      if (isSignedOut(failure)) return onExpired();
      setError(failure);
      setBusy(false);
    }
  }

  return (
    <Confirm
      title={title}
      action={all ? "End all sessions" : "End session"}
      busy={busy}
      error={error}
      onConfirm={confirm}
      onCancel={onCancel}
    >
      <p>
        <b class="subject">
          <Given text={user} />
        </b>{" "}
        is signed out on {all ? `${count} ${sessions.length === 1 && !more ? "device" : "devices"}` : "this device"}:
      </p>
      <ul class="devices">
        {sessions.slice(0, 8).map(({ sessionId, client }) => (
          <li key={sessionId}>
            <Given text={deviceOf(client)} />
            <Beside text={nameBeside(client)} />
            <Beside text={client?.ipAddress ?? ""} />
          </li>
        ))}
        {sessions.length > 8 && <li>and {sessions.length - 8} more</li>}
      </ul>
      <p class="soft">
        Refreshing stops at once. Access tokens are refused at once by services that follow the revocation feed,
        elsewhere when they expire.{all && " A login after this lives."} It cannot be undone.
      </p>
    </Confirm>
  );
}
