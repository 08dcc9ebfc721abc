/** The admin API returns and accepts times of the wall clock, even after that clock was set and the store's time differs from it. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  GetSessionRequestSchema,
  ListSessionsRequestSchema,
  RevokeAllSessionsRequestSchema,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { sessionAdminService } from "../../../../src/service/api/admin/session-admin-service.ts";
import { RequestContext } from "../../../../src/service/api/request-context.ts";
import type { AuditEvent } from "../../../../src/service/session/audit.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { expectCreated, newSession, nonce } from "../../../support/store/sessions.ts";

const HOUR_MS = 3_600_000;
const directory = mkdtempSync(join(tmpdir(), "shown-"));
const START = Date.UTC(2027, 0, 31, 12);
let steady = START;
/** How far the wall clock has been set, in ms. */
let step = 0;
let store: SessionStore;
const events: AuditEvent[] = [];

beforeAll(() => {
  store = createEmbeddedStore({
    path: join(directory, "sessions.db"),
    clock: () => wallMs(steady + step),
    steady: () => steady,
    reuseIntervalMs: 10_000,
    markerLifeMs: 60_000,
  });
});
afterAll(async () => {
  await store.close();
  rmSync(directory, { recursive: true });
});

const service = () => sessionAdminService({ store, audit: (event: AuditEvent) => void events.push(event) } as never);
const context = {
  values: new RequestContext(
    () => ({ address() {}, userAgent() {}, correlation: () => ({ requestId: "r" }) }) as never,
  ),
} as never;
const ms = (time: Timestamp | undefined) => timestampMs(time as Timestamp);

async function listed(filter: MessageInitShape<typeof ListSessionsRequestSchema>): Promise<readonly unknown[]> {
  const { sessions = [] } = await service().listSessions(create(ListSessionsRequestSchema, filter), context);
  return sessions.map(({ sessionId }) => sessionId);
}

test("sessions, filters and the end of all are by the wall clock; tokens are matched by the store's time", async () => {
  const session = newSession("alice");
  const created = expectCreated(await store.create(session, nonce(), { cap: 10 }));
  step = HOUR_MS;
  steady += 1_000;
  await store.find(session.sid); // The store notices the changed clock at its next call.
  const { sid } = session;
  const shown = await service().getSession(create(GetSessionRequestSchema, { sessionId: sid }), context);
  expect(created.session.createdAt).toBe(START);
  expect(ms(shown.session?.createTime as Timestamp)).toBe(START + HOUR_MS);
  expect(ms(shown.session?.idleExpireTime as Timestamp)).toBe(START + HOUR_MS + session.idleTimeoutMs);

  for (const subject of ["alice", ""]) {
    const at = (offset: number) => timestampFromMs(START + HOUR_MS + offset);
    expect(await listed({ subject, createdAfter: at(0), createdBefore: at(1) })).toEqual([sid]);
    expect(await listed({ subject, createdAfter: at(1) })).toEqual([]);
    expect(await listed({ subject, createdBefore: at(0) })).toEqual([]);
  }

  const before = timestampFromMs(START + HOUR_MS);
  const request = create(RevokeAllSessionsRequestSchema, { issuedBefore: before });
  const revoked = await service().revokeAllSessions(request, context);
  expect(ms(revoked.revokedUntilTime as Timestamp)).toBe(START + HOUR_MS - 1);
  expect((await store.find(sid)).ok).toBe(true);
  expect((await store.revocations(undefined)).revokedUntil).toBe(START - 1);
  expect(events).toEqual([{ event: "all_sessions_ended", revokedUntil: START - 1 }]);
});
