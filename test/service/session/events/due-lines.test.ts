/** Parts of the store have clocks of their own: a time is converted by the clock of the part that it is from. */
import { expect, test } from "vitest";
import { type AuditEvent, UNKNOWN_REQUESTER } from "../../../../src/service/session/audit.ts";
import {
  dueLines,
  keptOf,
  keptOfDue,
  originOf,
  requesterOf,
} from "../../../../src/service/session/events/due-lines.ts";
import type { DueRecord } from "../../../../src/service/session/events/events.ts";
import type { StorePart } from "../../../../src/service/session/model.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { NOW, REQUESTER, SID } from "../../../support/session/scripted.ts";

const OF_ALL = 1_000;
const OF_SESSION = 50_000;
/** Without a place it is that of the store as a whole. */
function shiftMs(place?: StorePart): number {
  if (place === undefined) return OF_ALL;
  if ("sid" in place && place.sid === SID) return OF_SESSION;
  throw new Error("no such place");
}
const keeping = { clock: () => wallMs(NOW + OF_ALL), shiftMs };

test("the time of a due event is that of its session, and of the end of all that of the store", () => {
  const ended = { key: SID, since: NOW, event: { time: NOW, type: "ended", sid: SID }, ids: {} } as const;
  expect(keptOfDue(ended, keeping).event).toStrictEqual({ time: NOW + OF_SESSION, type: "ended", sid: SID });
  const event = { time: NOW, type: "all_ended", revokedUntil: NOW } as const;
  const at = NOW + OF_ALL;
  expect(keptOfDue({ key: "*", since: NOW, event, ids: {} }, keeping).event).toMatchObject({
    time: at,
    revokedUntil: at,
  });
  const audited = { event: "all_sessions_ended", revokedUntil: NOW } as const;
  expect(keptOf(audited, REQUESTER, keeping)).toMatchObject({
    event: { time: at, revokedUntil: at },
    dueKey: `*${NOW}`,
  });
});

test("an operation notes what is known of its request, and nothing else", () => {
  const nobody = { address: () => undefined, adminName: undefined };
  expect(originOf(nobody)).toStrictEqual({});
  expect(originOf({ ...nobody, adminName: "ops" })).toStrictEqual({ admin: "ops" });
  const correlation = () => ({ requestId: "r" });
  expect(originOf({ ...REQUESTER, correlation })).toStrictEqual({ address: "192.0.2.7", requestId: "r" });
});

test.each([
  ["session_elevated", "elevated"],
  ["session_updated", "updated"],
  ["device_bound", "device_bound"],
  ["device_unbound", "device_unbound"],
])("an event %s is kept as %s, with its session and caller alone", (event, type) => {
  const audited = { event, sid: SID, subject: "alice", methods: ["otp"], contextClass: "gold", version: 1 };
  const time = NOW + OF_ALL;
  expect(keptOf(audited as unknown as AuditEvent, REQUESTER, keeping)).toStrictEqual({
    event: { time, address: "192.0.2.7", type, sid: SID, subject: "alice" },
  });
});

test("a creation or an end is kept with what is known of its session", () => {
  const keptEvent = (event: AuditEvent) => keptOf(event, UNKNOWN_REQUESTER, keeping)?.event;
  const client = { userAgent: "agent", ipAddress: "", displayName: "" };
  const created = {
    event: "session_created",
    sid: SID,
    subject: "alice",
    session: { client, clientId: "web" },
  } as const;
  const kept = { time: NOW + OF_ALL, type: "created", sid: SID, subject: "alice", client, clientId: "web" };
  expect(keptEvent(created)).toStrictEqual(kept);
  expect(keptEvent({ ...created, newDevice: true })).toStrictEqual({ ...kept, newDevice: true });
  const ended = { event: "session_ended", sid: SID, reason: "logout" } as const;
  const keptEnd = { time: NOW + OF_ALL, type: "ended", sid: SID, reason: "logout" };
  expect(keptEvent(ended)).toStrictEqual(keptEnd);
  expect(keptEvent({ ...ended, actor: "support" })).toStrictEqual({ ...keptEnd, actor: "support" });
});

const CLIENT = { userAgent: "", ipAddress: "", displayName: "" };
const NAMES = { sid: SID, subject: "alice", actor: "support" };

test.each<[string, Omit<DueRecord["event"], "time">, readonly object[]]>([
  ["the end of all", { type: "all_ended", revokedUntil: NOW }, [{ event: "all_sessions_ended", revokedUntil: NOW }]],
  [
    "a creation",
    { type: "created", ...NAMES, client: CLIENT, clientId: "web" },
    [{ event: "session_created", ...NAMES, session: { client: CLIENT, clientId: "web" } }],
  ],
  [
    "a creation with a new device",
    { type: "created", sid: SID, client: CLIENT, newDevice: true },
    [{ event: "session_created", sid: SID, subject: "", session: { client: CLIENT, clientId: "" }, newDevice: true }],
  ],
  ["a creation of which nothing is known", { type: "created", ...NAMES }, []],
  ["an end", { type: "ended", ...NAMES, reason: "logout" }, [{ event: "session_ended", ...NAMES, reason: "logout" }]],
  [
    "an end with what its creation had",
    { type: "ended", ...NAMES, reason: "logout", client: CLIENT },
    [{ event: "session_ended", ...NAMES, reason: "logout" }],
  ],
  ["an end of which nothing is known", { type: "ended", ...NAMES }, []],
  ["an end of an unknown session", { type: "ended", reason: "logout" }, []],
  ["another event", { type: "updated", ...NAMES, reason: "logout" }, []],
  [
    "a reuse",
    { type: "ended", ...NAMES, reason: "reuse" },
    [
      { event: "authn_token_reuse", ...NAMES, cause: "two_holders" },
      { event: "session_ended", ...NAMES, reason: "reuse" },
    ],
  ],
])("the audit lines of %s that was not recorded at once", (_, event, lines) => {
  const due = { key: SID, since: NOW, event: { time: NOW, ...event }, ids: {}, cause: "two_holders" } as const;
  expect(dueLines(due)).toStrictEqual(lines.map((line) => ({ ...line, happenedAt: NOW })));
});

test("the requester of an event that was not recorded at once is the one of then", () => {
  const of = (ids: object, event: object = {}) =>
    requesterOf({ key: SID, since: NOW, event: { time: NOW, type: "ended", ...event }, ids } as DueRecord);
  const [plain, known] = [of({}), of({ requestId: "r", traceId: "t" }, { address: "192.0.2.7", admin: "ops" })];
  expect([plain.address(), plain.adminName, plain.correlation]).toEqual([undefined, undefined, undefined]);
  expect([known.address(), known.adminName, known.correlation?.()]).toEqual([
    "192.0.2.7",
    "ops",
    { requestId: "r", traceId: "t" },
  ]);
  expect(of({ requestId: "r" }).correlation?.()).toStrictEqual({ requestId: "r" });
});
