/**
 * The texts of session events in both stores: JSON objects with short names, without empty fields. The text of an event has the whole
 * event. The note of a due record, which is an event that is still to be recorded (src/service/session/events/events.ts), has only the
 * request that caused the event: the record's key and the kind of its event say the rest.
 */
import type { DueRecord, EventRecord, Origin, SessionEvent } from "../session/events/events.ts";
import type { ClientData, EndReason, NewSession, SessionId } from "../session/model.ts";
import { type StoreMs, storeMs, type WallMs } from "../session/time.ts";

/** Texts that clients choose are cut, because they are for display only. */
const MAX_TEXT = 200;

type ShortClient = readonly [clientId: string, userAgent: string, address: string, name: string];

type Caused = {
  readonly a?: string | undefined;
  readonly b?: string | undefined;
  readonly c?: ShortClient | undefined;
  /** The actor. In a note, lua/lib/end_sessions.lua writes it, too. */
  readonly x?: string | undefined;
  /** Present if the device is new. lua/create.lua adds it to the note of a created session. */
  readonly d?: 1 | undefined;
};

type Short<Time extends StoreMs | WallMs> = Caused & {
  readonly t: Time;
  readonly k: SessionEvent["type"];
  readonly s?: string | undefined;
  readonly u?: string | undefined;
  readonly r?: string | undefined;
  readonly n?: Time | undefined;
  /** Distinguishes events that are otherwise equal. */
  readonly i?: string | undefined;
};

type Note = Caused & {
  readonly q?: string | undefined;
  readonly t?: string | undefined;
  /** Present if a refresh token was reused, and two clients were found to hold it. */
  readonly h?: 1 | undefined;
};

export function eventText({ event, id }: EventRecord): string {
  const { client, clientId } = event;
  const short: Short<WallMs> = {
    t: event.time,
    k: event.type,
    s: event.sid,
    u: event.subject,
    r: event.reason,
    n: event.revokedUntil,
    ...causeOf(event),
    c: client && shortClient({ ...(clientId !== undefined && { clientId }), client }),
    i: id,
  };
  return JSON.stringify(short);
}

/** Returns what the stored session lacks of the event of its creation: lua/lib/session_events.lua makes the event of both. */
export const creationNote = (event: SessionEvent): string => JSON.stringify(causeOf(event));

function causeOf({ address, admin, actor, newDevice }: SessionEvent): Caused {
  return { a: address, b: admin?.slice(0, MAX_TEXT), x: actor, d: newDevice && 1 };
}

export function parseEvent(text: string): SessionEvent {
  return eventOf(JSON.parse(text) as Short<WallMs>);
}

function eventOf<Time extends StoreMs | WallMs>({ t, k, s, u, r, n, a, b, c, d, x }: Short<Time>): SessionEvent<Time> {
  return {
    time: t,
    type: k,
    ...(s !== undefined && { sid: s as SessionId }),
    ...(u !== undefined && { subject: u }),
    ...(r !== undefined && { reason: r as EndReason }),
    ...(n !== undefined && { revokedUntil: n }),
    ...(a !== undefined && { address: a }),
    ...(b !== undefined && { admin: b.toWellFormed() }),
    ...(c !== undefined && toClient(c)),
    ...(x !== undefined && { actor: x }),
    ...(d !== undefined && { newDevice: true as const }),
  };
}

function shortClient({ clientId = "", client }: { clientId?: string; client: ClientData }): ShortClient {
  const texts = [clientId, client.userAgent, client.ipAddress, client.displayName];
  return texts.map((text) => text.slice(0, MAX_TEXT)) as unknown as ShortClient;
}

/** Returns the kept data of a client. A cut text may end with half of a surrogate pair, which breaks JSON: the half is replaced. */
function toClient(texts: ShortClient) {
  const [clientId = "", userAgent = "", ipAddress = "", displayName = ""] = texts.map((text) =>
    text.slice(0, MAX_TEXT).toWellFormed(),
  );
  return { clientId, client: { userAgent, ipAddress, displayName } };
}

/** The kind of the event that a session was created, while it waits to be recorded. For an ended session, the kind is the reason. */
export const CREATED = "created";
export const ENDED_ALL = "revoked_all";

/** The notes for sessions that ended because a token was reused. They are constants for speed; lua/rotate.lua has them, too. */
export const REUSE_NOTES = { reuse: "{}", two_holders: '{"h":1}' } as const;

/** The note for a session that has expired. No request causes an expiry, so the text is an empty JSON object. */
export const EXPIRED_NOTE = "{}";

/**
 * If a bulk logout takes longer than this, in ms, the instance that runs it does not record the events of the ended sessions,
 * because other instances may already be recording them.
 */
export const RECORDED_WITHIN_MS = 5_000;

/** Returns the note for an event that a request causes, with data of the session if it creates one. Without an origin, returns ''. */
export function noteOf(origin: Origin | undefined, created?: NewSession, newDevice = false): string {
  if (origin === undefined) return "";
  const { address: a, admin: b, requestId: q, traceId: t, actor } = origin;
  const x = created?.actor?.subject ?? actor;
  const note: Note = { a, b, q, t, x, c: created && shortClient(created) };
  if (newDevice) return JSON.stringify({ ...note, d: 1 });
  return JSON.stringify(note);
}

/** Adds the actor of a session that ends to the note, as lua/lib/end_sessions.lua does. It comes last, so that it counts. */
export function noteWithActor(note: string, actor: string | undefined): string {
  if (actor === undefined || note === "") return note;
  return `${note.slice(0, -1)}${note.length > 2 ? "," : ""}"x":${JSON.stringify(actor)}}`;
}

export type DueText = {
  readonly key: string;
  readonly since: StoreMs;
  readonly at: StoreMs;
  /** The reason why the session ended, or `created`. */
  readonly what: string;
  readonly note: string;
  readonly subject: string;
};

export function dueRecord(due: DueText): DueRecord {
  const { q, t, h, ...caused } = JSON.parse(due.note) as Note;
  const ids = { ...(q !== undefined && { requestId: q }), ...(t !== undefined && { traceId: t }) };
  const event = eventOf<StoreMs>({ t: due.at, ...caused, ...namedBy(due) });
  return { key: due.key, since: due.since, event, ids, ...(h && { cause: "two_holders" }) };
}

/** Returns what the kind and the key of a due record say about its event. */
function namedBy({ key, what, subject }: DueText) {
  if (what === ENDED_ALL) return { k: "all_ended", n: storeMs(Number(key.slice(1))) } as const;
  const u = subject === "" ? undefined : subject;
  return what === CREATED
    ? ({ k: "created", s: key.slice(1), u } as const)
    : ({ k: "ended", s: key, u, r: what } as const);
}
