/** The text of session events in the stores: each event is one line of JSON with short names, without empty fields. */
import type { EventRecord, SessionEvent } from "../session/events/events.ts";
import type { ClientData, EndReason, SessionId } from "../session/model.ts";
import type { WallMs } from "../session/time.ts";

/** Texts that clients choose are cut, because they are for display only. */
const MAX_TEXT = 200;

type Short = {
  readonly t: WallMs;
  readonly k: SessionEvent["type"];
  readonly s?: string | undefined;
  readonly u?: string | undefined;
  readonly r?: string | undefined;
  readonly n?: WallMs | undefined;
  readonly a?: string | undefined;
  readonly b?: string | undefined;
  readonly c?: ShortClient | undefined;
  /** Distinguishes events that are otherwise equal. */
  readonly i?: string | undefined;
};

type ShortClient = readonly [clientId: string, userAgent: string, address: string, name: string];

export function shortClient({ clientId = "", client }: { clientId?: string; client: ClientData }): ShortClient {
  const texts = [clientId, client.userAgent, client.ipAddress, client.displayName];
  return texts.map((text) => text.slice(0, MAX_TEXT)) as unknown as ShortClient;
}

/** Returns the kept data of a client. A cut text may end with half of a surrogate pair, which breaks JSON: the half is replaced. */
export function toClient(texts: ShortClient) {
  const [clientId = "", userAgent = "", ipAddress = "", displayName = ""] = texts.map((text) => text.toWellFormed());
  return { clientId, client: { userAgent, ipAddress, displayName } };
}

export function eventText({ event, id }: EventRecord): string {
  const { client, clientId } = event;
  const short: Short = {
    t: event.time,
    k: event.type,
    s: event.sid,
    u: event.subject,
    r: event.reason,
    n: event.revokedUntil,
    a: event.address,
    b: event.admin?.slice(0, MAX_TEXT),
    c: client && shortClient({ ...(clientId !== undefined && { clientId }), client }),
    i: id,
  };
  return JSON.stringify(short);
}

export function parseEvent(text: string): SessionEvent {
  const { t, k, s, u, r, n, a, b, c } = JSON.parse(text) as Short;
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
  };
}
