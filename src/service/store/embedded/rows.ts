/** The rows of sessions, and their conversion to the domain's types. Rows are trusted: only the code of this directory writes them. */
import { type DeviceBinding, type DeviceKeyBinding, isProofKey } from "../../session/devices/key.ts";
import {
  bindAtCreation,
  type EndReason,
  type NewSession,
  type Revocation,
  type Session,
  type SessionId,
} from "../../session/model.ts";
import { firstState, type RotationState } from "../../session/rotation/rotation.ts";
import { earliest, later, latest, type StoreMs, storeMs } from "../../session/time.ts";
import type { Candidate, PagePosition } from "../search.ts";
import { NO_ACTOR, UNATTACHED } from "./schema-versions.ts";
import type { Statements } from "./statements.ts";

type Columns = "sid" | "subject" | "createdAt" | "lastRefreshedAt" | "idleExpiresAt" | "absoluteExpiresAt";

/** All fields of a session that have no column, in the column `fixed`. Its durations are milliseconds. */
type Details = Omit<Session, Columns | "idleTimeoutMs" | "absoluteLifetimeMs" | "device"> & {
  readonly idleTimeout: number;
  readonly absoluteLifetime: number;
  readonly device?: DeviceText;
};

/**
 * A DeviceBinding with its bytes in base64url. For a DPoP key, `bytes` is the time at which the key was bound (6 bytes), and `since` is 0:
 * a process of an older version, which does not know DPoP keys, then rejects requests for the session. It neither refreshes nor ends it.
 */
type DeviceText = Omit<DeviceKeyBinding, "key"> & {
  readonly algorithm: DeviceBinding["key"]["algorithm"];
  readonly bytes: string;
  readonly thumbprint: string;
};

export type SessionRow = {
  readonly sid: SessionId;
  readonly subject: string;
  readonly created_at: StoreMs;
  readonly last_refreshed_at: StoreMs;
  readonly idle_expires_at: StoreMs;
  readonly absolute_expires_at: StoreMs;
  /** `Details` as JSON. The name is from earlier versions, in which they hardly changed. */
  readonly fixed: string;
  readonly rotation: string;
  /**
   * `NO_ACTOR` if the subject itself uses the session. Otherwise what the session ends with: nothing (`UNATTACHED`), the session with this
   * id, which is its actor's, or one that has ended, so that this session has to end now (`HANDED_OVER`).
   */
  readonly actor: string | null;
};

/** `ended` is 1 if the session ended in a logout of everyone, 2 if it ended in a logout of its subject, otherwise 0. */
export type FoundRow = SessionRow & { readonly ended: number; readonly examined_at: StoreMs };

/** A row with its number in the file, by which its transaction writes it without looking for its id again. */
export type NumberedRow = FoundRow & { readonly rowid: number };

/** What the statement `session` selects. */
type FoundColumns = readonly [
  rowid: number,
  subject: string,
  createdAt: StoreMs,
  lastRefreshedAt: StoreMs,
  idleExpiresAt: StoreMs,
  absoluteExpiresAt: StoreMs,
  fixed: string,
  rotation: string,
  actor: string | null,
  examinedAt: StoreMs,
  ended: number,
];

export type LogRow = {
  readonly seq: number;
  readonly sid: SessionId;
  readonly revoked_at: StoreMs;
  readonly expires_at: StoreMs;
  readonly reason: EndReason;
};

function startSession(session: NewSession, now: StoreMs): Session {
  const absoluteExpiresAt = later(now, session.absoluteLifetimeMs);
  return {
    ...bindAtCreation(session, now),
    createdAt: now,
    lastRefreshedAt: now,
    idleExpiresAt: earliest(later(now, session.idleTimeoutMs), absoluteExpiresAt),
    absoluteExpiresAt,
  };
}

function toRow(session: Session, rotation: RotationState): Record<keyof SessionRow, string | number | null> {
  return {
    sid: session.sid,
    subject: session.subject,
    created_at: session.createdAt,
    last_refreshed_at: session.lastRefreshedAt,
    idle_expires_at: session.idleExpiresAt,
    absolute_expires_at: session.absoluteExpiresAt,
    fixed: detailsOf(session),
    rotation: JSON.stringify(rotation),
    actor: session.actor === undefined ? NO_ACTOR : UNATTACHED,
  };
}

/** Returns the subject of a session's actor; undefined if there is none. @param details the column `fixed` */
export function actorIn(details: string): string | undefined {
  return (JSON.parse(details) as Details).actor?.subject;
}

export function detailsOf(session: Session): string {
  const { sid, subject, createdAt, lastRefreshedAt, idleExpiresAt, absoluteExpiresAt, ...others } = session;
  const { idleTimeoutMs: idleTimeout, absoluteLifetimeMs: absoluteLifetime, device, ...same } = others;
  const details: Details = { ...same, idleTimeout, absoluteLifetime, ...(device && { device: deviceText(device) }) };
  return JSON.stringify(details);
}

/** Returns the column `fixed` of a session that has ended without the data of its user: its durations and its client are left. */
export function blankDetailsOf({ fixed }: SessionRow): string {
  const { clientId, idleTimeout, absoluteLifetime } = JSON.parse(fixed) as Details;
  const client = { userAgent: "", ipAddress: "", displayName: "" };
  const blank: Details = { clientId, audience: "", claims: "{}", client, idleTimeout, absoluteLifetime };
  return JSON.stringify(blank);
}

function deviceText(binding: DeviceBinding): DeviceText {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
  if (isProofKey(binding)) {
    const time = Buffer.alloc(6);
    time.writeUIntBE(binding.since, 0, 6);
    const { algorithm, thumbprint } = binding.key;
    return { algorithm, bytes: text(time), thumbprint: text(thumbprint), state: binding.state, since: storeMs(0) };
  }
  const { key, state, since } = binding;
  return { algorithm: key.algorithm, bytes: text(key.bytes), thumbprint: text(key.thumbprint), state, since };
}

function deviceOf({ algorithm, bytes, thumbprint, state, since }: DeviceText): DeviceBinding {
  const read = (text: string) => Uint8Array.from(Buffer.from(text, "base64url"));
  if (algorithm === "DPoP") {
    const boundAt = storeMs(Buffer.from(bytes, "base64url").readUIntBE(0, 6));
    return { key: { algorithm, thumbprint: read(thumbprint) }, state: "bound", since: boundAt };
  }
  return { key: { algorithm, bytes: read(bytes), thumbprint: read(thumbprint) }, state, since };
}

export function sessionOf(row: SessionRow): Session {
  const { idleTimeout, absoluteLifetime, device, ...same } = JSON.parse(row.fixed) as Details;
  return {
    sid: row.sid,
    subject: row.subject,
    ...same,
    idleTimeoutMs: idleTimeout,
    absoluteLifetimeMs: absoluteLifetime,
    createdAt: row.created_at,
    lastRefreshedAt: row.last_refreshed_at,
    idleExpiresAt: row.idle_expires_at,
    absoluteExpiresAt: row.absolute_expires_at,
    ...(device && { device: deviceOf(device) }),
  };
}

export function rotationOf(row: SessionRow): RotationState {
  return JSON.parse(row.rotation) as RotationState;
}

/** Returns when the session was last used: refreshed, also with the same refresh token as before, or created. */
export function usedAtOf(row: SessionRow): StoreMs {
  return latest(row.created_at, rotationOf(row).childServedAt);
}

export function revocationOf(row: LogRow): Revocation {
  return { sid: row.sid, revokedAt: row.revoked_at, expiresAt: row.expires_at, reason: row.reason };
}

function createRowReader(sql: Pick<Statements, "session">): (sid: SessionId) => NumberedRow | undefined {
  return (sid) => {
    const row = sql.session.get(sid);
    if (row === undefined) return undefined;
    const columns = (Array.isArray(row) ? row : Object.values(row)) as unknown as FoundColumns;
    return {
      rowid: columns[0],
      sid,
      subject: columns[1],
      created_at: columns[2],
      last_refreshed_at: columns[3],
      idle_expires_at: columns[4],
      absolute_expires_at: columns[5],
      fixed: columns[6],
      rotation: columns[7],
      actor: columns[8],
      examined_at: columns[9],
      ended: columns[10],
    };
  };
}

export type SessionRows = ReturnType<typeof createSessionRows>;

export function createSessionRows(sql: Statements) {
  const get = createRowReader(sql);
  return {
    get,

    live(sid: SessionId, now: StoreMs): SessionRow | undefined {
      const row = get(sid);
      return row !== undefined && now < row.idle_expires_at && !row.ended ? row : undefined;
    },

    /** Returns whether the session has not expired, but has ended in a logout of its subject or of everyone. */
    endedWithOthers(sid: SessionId, now: StoreMs): boolean {
      const row = get(sid);
      return row !== undefined && now < row.idle_expires_at && row.ended > 0;
    },

    /** Returns the subject of the session's actor; undefined if it has none, or if there is no such session. */
    actorOf(sid: SessionId): string | undefined {
      const row = sql.detailsOfActor.get(sid);
      return row && actorIn(String(row.fixed));
    },

    /** Returns the sessions of a subject after a position, newest first. */
    page(subject: string, { createdAt, sid }: PagePosition, count: number, now: StoreMs): Candidate[] {
      return candidates(sql.page.all(subject, createdAt, sid, count) as FoundRow[], now);
    },

    /** Returns the sessions of all subjects after a position, newest first. */
    byCreation({ createdAt, sid }: PagePosition, count: number, now: StoreMs): Candidate[] {
      return candidates(sql.byCreation.all(createdAt, sid, count) as FoundRow[], now);
    },

    /** Inserts a session. It counts as ended unless `createdAt` is later than the last logout of its subject and of everyone. */
    insert(session: NewSession, childNonce: string, createdAt: StoreMs): Session {
      const created = startSession(session, createdAt);
      sql.created.run(created.createdAt);
      sql.insert.run(toRow(created, firstState(childNonce)));
      return created;
    },
  };
}

function candidates(rows: readonly FoundRow[], now: StoreMs): Candidate[] {
  return rows.map((row) => ({
    position: { createdAt: row.created_at, sid: row.sid },
    session: now < row.idle_expires_at && !row.ended ? sessionOf(row) : undefined,
  }));
}
