import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import {
  type Session,
  type SessionEvent,
  SessionEventType,
} from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { sessions as api } from "./api.ts";
import { absolute, ago, deviceOf, msOf, whyEnded } from "./format.ts";
import { Empty, Given, Loading, Problem } from "./parts.tsx";

/** How long after sessions were ended the timeline is read again, in ms. Their events are written a moment later. */
const REREADS_MS = [300, 1_000, 3_000, 10_000];

type Props = {
  readonly subject: string;
  /** Whether sessions have been ended on this page. */
  readonly changed: boolean;
  readonly live: readonly Session[];
};
type Loaded = { readonly events: readonly SessionEvent[]; readonly next: string };

export function Timeline({ subject, changed, live }: Props) {
  const [loaded, setLoaded] = useState<Loaded>();
  const [error, setError] = useState<unknown>();
  const rereads = useRef<readonly ReturnType<typeof setTimeout>[]>([]);
  const load = useCallback(
    async (before?: Loaded) => {
      setError(undefined);
      try {
        const page = await api.listSessionEvents({ subject, pageSize: 50, pageToken: before?.next ?? "" });
        setLoaded({ events: [...(before?.events ?? []), ...page.events], next: page.nextPageToken });
      } catch (failure) {
        setError(failure);
      }
    },
    [subject],
  );
  useEffect(() => {
    load();
    const timers = changed ? REREADS_MS.map((ms) => setTimeout(load, ms)) : [];
    rereads.current = timers;
    return () => timers.forEach(clearTimeout);
  }, [load, changed]);
  const loadEarlier = () => {
    // The planned readings would load only the newest page of events, and thereby remove the earlier events that are added now.
    rereads.current.forEach(clearTimeout);
    load(loaded);
  };
  const devices = new Map(live.map(({ sessionId, client }) => [sessionId, deviceOf(client)]));
  for (const { sessionId, client } of loaded?.events ?? []) {
    if (client !== undefined) devices.set(sessionId, deviceOf(client));
  }
  return (
    <section aria-labelledby="timeline-title">
      <h1 id="timeline-title">Timeline</h1>
      {error !== undefined && <Problem error={error} retry={() => load()} />}
      {error === undefined && loaded === undefined && <Loading what="Loading the timeline…" />}
      {loaded?.events.length === 0 && (
        <Empty title="Nothing is recorded">Events are kept for a bounded time (EVENT_RETENTION).</Empty>
      )}
      <ol class="timeline">
        {loaded?.events.map((event) => (
          <Entry
            key={`${event.sessionId} ${event.type} ${msOf(event.eventTime)}`}
            event={event}
            device={devices.get(event.sessionId)}
          />
        ))}
      </ol>
      {loaded !== undefined && loaded.next !== "" && (
        <button type="button" class="quiet wide" onClick={loadEarlier}>
          Show earlier events
        </button>
      )}
    </section>
  );
}

function Entry({ event, device }: { readonly event: SessionEvent; readonly device: string | undefined }) {
  const ms = msOf(event.eventTime) ?? 0;
  const [kind, text] = describe(event);
  return (
    <li class={kind}>
      <time dateTime={new Date(ms).toISOString()} title={absolute(ms)}>
        {ago(ms)}
      </time>
      <div>
        <b>
          <Given text={event.sessionId === "" ? "Everybody" : (device ?? "A device that is no longer known")} />
        </b>{" "}
        {text}
        {event.actor !== "" && (
          <>
            {" · actor: "}
            <Given text={event.actor} />
          </>
        )}
        <p class="soft">
          <Origin event={event} />
          {absolute(ms)}
          {event.sessionId !== "" && <code title="Session id">{event.sessionId.slice(-8)}</code>}
        </p>
      </div>
    </li>
  );
}

/** Displays the address of the user's device. If an admin caused the event, `ipAddress` is the address of the admin. */
function Origin({ event: { admin, ipAddress, client } }: { readonly event: SessionEvent }) {
  const device = admin === "" ? ipAddress : (client?.ipAddress ?? "");
  const holder = admin === "" ? "" : `by ${admin}${ipAddress === "" ? "" : ` at ${ipAddress}`} · `;
  return (
    <>
      {device !== "" && "from "}
      <Given text={device} />
      {device !== "" && (holder === "" ? " · " : ", ")}
      {holder}
    </>
  );
}

type Description = readonly [kind: "good" | "bad" | "", text: string];

const DESCRIPTIONS: Partial<Record<SessionEventType, Description>> = {
  [SessionEventType.CREATED]: ["good", "signed in"],
  [SessionEventType.NEW_DEVICE]: ["", "is a new device: no live session of the user had its user agent"],
  [SessionEventType.ELEVATED]: ["", "authenticated again"],
  [SessionEventType.UPDATED]: ["", "has other claims or audiences"],
  [SessionEventType.ALL_ENDED]: ["bad", "was signed out: all sessions that existed then were ended"],
  [SessionEventType.DEVICE_BOUND]: ["good", "was bound to the key of its device"],
  [SessionEventType.DEVICE_UNBOUND]: ["", "was freed of its device key"],
};

function describe({ type, revocationReason }: SessionEvent): Description {
  if (type === SessionEventType.ENDED) return ["bad", whyEnded(revocationReason)];
  return DESCRIPTIONS[type] ?? ["", "something that this console does not know"];
}
