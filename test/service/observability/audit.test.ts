import { pino } from "pino";
import { expect, test } from "vitest";
import { createAudit } from "../../../src/service/observability/audit.ts";
import { createMetrics } from "../../../src/service/observability/metrics.ts";
import { type AuditEvent, UNKNOWN_REQUESTER } from "../../../src/service/session/audit.ts";
import type { Session, SessionId, StorePart } from "../../../src/service/session/model.ts";
import { storeMs } from "../../../src/service/session/time.ts";

const sid = "A".repeat(23) as SessionId;
const session = { sid, subject: "alice", client: { userAgent: "not to be logged" } } as Session;
const EVENTS: [AuditEvent, level: string, metric: string][] = [
  [{ event: "session_created", sid, subject: "alice", session }, "info", "session_created_total 1"],
  [
    { event: "session_renewed", sid, subject: "alice", outcome: "recover" },
    "debug",
    'session_renewed_total{outcome="recover"} 1',
  ],
  [
    { event: "session_refused", subject: "alice", clientId: "web", scope: "client_kind", maxSessions: 3 },
    "info",
    'session_refused_total{scope="client_kind"} 1',
  ],
  [{ event: "session_ended", sid, reason: "logout" }, "info", 'session_ended_total{reason="logout"} 1'],
  [
    { event: "token_exchanged", sid, subject: "alice", audiences: ["orders"], actor: "agent" },
    "info",
    "session_token_exchanged_total 1",
  ],
  [
    { event: "session_elevated", sid, subject: "alice", methods: ["pwd", "otp"], contextClass: "gold" },
    "info",
    "session_elevated_total 1",
  ],
  [
    { event: "session_updated", sid, subject: "alice", version: 1, fields: ["claims"], accessTokens: "refresh" },
    "info",
    'session_updated_total{access_tokens="refresh"} 1',
  ],
  [{ event: "all_sessions_ended", revokedUntil: storeMs(1) }, "warn", "session_all_ended_total 1"],
  [{ event: "authn_token_reuse", sid, subject: "alice" }, "warn", "session_token_reuse_total 1"],
  [
    { event: "authn_failed", operation: "Refresh", reason: "forged" },
    "warn",
    'session_authn_failed_total{operation="Refresh",reason="forged"} 1',
  ],
  [
    { event: "authn_failed", operation: "Refresh", reason: "expired" },
    "debug",
    'session_authn_failed_total{operation="Refresh",reason="expired"} 1',
  ],
  [
    { event: "authn_failed", operation: "GetSession", reason: "absent", admin: true },
    "warn",
    'session_authn_failed_total{operation="GetSession",reason="absent"} 1',
  ],
];

const ADVICE = { created: 0, renewed: 0, noteMissing() {} };

function listening(level: string) {
  const lines: string[] = [];
  const log = pino(
    { level, formatters: { level: (label) => ({ level: label }) } },
    { write: (line) => void lines.push(line) },
  );
  const metrics = createMetrics();
  return {
    audit: createAudit(log, metrics, ADVICE, () => 0),
    metrics,
    reported: () => lines.map((line) => JSON.parse(line)),
  };
}

test.each(EVENTS)("$event is logged once at its level, and counted", async (event, level, metric) => {
  const { audit, metrics, reported } = listening("trace");
  audit(event, { address: () => "192.0.2.1", adminName: "login page" });
  const logged = "session" in event ? { event: event.event, sid, subject: event.subject } : event;
  expect(reported()).toMatchObject([{ ...logged, level, msg: event.event, address: "192.0.2.1", by: "login page" }]);
  expect((await metrics.expose()).body).toContain(`\n${metric}\n`);
});

const addressMustNotBeLookedUp = () => {
  throw new Error("looked up");
};

test("routine is counted but not logged at the usual level, and its address is not looked up", async () => {
  const { audit, metrics, reported } = listening("info");
  audit(
    { event: "session_renewed", sid, subject: "alice", outcome: "rotate" },
    { address: addressMustNotBeLookedUp, adminName: undefined },
  );
  expect(reported()).toEqual([]);
  expect((await metrics.expose()).body).toContain('session_renewed_total{outcome="rotate"} 1');
});

test("the device of a session that is created is not logged", () => {
  const lines: string[] = [];
  const audit = createAudit(pino({}, { write: (text) => void lines.push(text) }), createMetrics(), ADVICE, () => 0);
  audit({ event: "session_created", sid, subject: "alice", session }, UNKNOWN_REQUESTER);
  expect(lines.join("")).toContain("alice");
  expect(lines.join("")).not.toContain("not to be logged");
});

test("an audit that fails does not fail the operation that it records", () => {
  const failing = () => {
    throw new Error("no disk");
  };
  const audit = createAudit(pino({ level: "trace" }, { write: failing }), createMetrics(), ADVICE, () => 0);
  expect(() => audit({ event: "session_created", sid, subject: "alice", session }, UNKNOWN_REQUESTER)).not.toThrow();
});

test("lines have the times of the wall clock", () => {
  const lines: string[] = [];
  const shiftMs = (place?: StorePart) => (place === undefined ? 1_000 : 2_000);
  const audit = createAudit(pino({}, { write: (text) => void lines.push(text) }), createMetrics(), ADVICE, shiftMs);
  const happenedAt = storeMs(5);
  audit({ event: "all_sessions_ended", revokedUntil: storeMs(4), happenedAt }, UNKNOWN_REQUESTER);
  audit({ event: "session_ended", sid, reason: "logout", happenedAt }, UNKNOWN_REQUESTER);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { revokedUntil: 1_004, happenedAt: 1_005 },
    { happenedAt: 2_005 },
  ]);
});
