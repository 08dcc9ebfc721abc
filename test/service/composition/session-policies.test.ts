/** Limits on sessions by SESSION_POLICIES_FILE and by CreateSession, in processes of the service. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  ClientKind,
  type CreateSessionRequestSchema,
  LimitAction,
  LimitScope,
  SessionLimitExceededSchema,
} from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { runToExit, type Service, scratch, startService, waitFor } from "../../support/service.ts";
import { admin, bearer, logIn, message, openAdmin, somebody } from "../../support/sessions.ts";

const DOCS = readFileSync(new URL("../../../docs/reference/limits.md", import.meta.url), "utf8");
/** The example of docs/reference/limits.md. */
const EXAMPLE = /```json\n(.*?)```/s.exec(DOCS)?.[1] ?? "";

type Wanted = MessageInitShape<typeof CreateSessionRequestSchema>;

const text = (...limits: object[]) => JSON.stringify({ limits });

const create = (service: Service, wanted: Wanted) =>
  openAdmin(service).call(admin.createSession, wanted, bearer(service.adminToken));

async function listed(service: Service, subject: string, clientKind: ClientKind = ClientKind.UNSPECIFIED) {
  const wanted = { subject, clientKind, pageSize: 100 };
  const response = await openAdmin(service).call(admin.listSessions, wanted, bearer(service.adminToken));
  return message(response).sessions;
}

describe.each(STORES)("on the %s store", (store) => {
  const file = join(scratch(), "policies.json");
  writeFileSync(file, EXAMPLE);
  const service = aService({ SESSION_POLICIES_FILE: file }, store);

  test("the first policy that matches holds, and the others do not", async () => {
    const subject = somebody();
    const browser = { subject, client: { kind: ClientKind.BROWSER } };
    for (let at = 0; at < 5; at++) await logIn(service, { ...browser, clientId: "web" });
    expect(await create(service, { ...browser, clientId: "web" })).toMatchObject({ code: "E429_SESSION_LIMIT" });
    const other = await logIn(service, { ...browser, clientId: "shop" });
    expect((await listed(service, subject)).map(({ sessionId }) => sessionId)).toContain(other.sid);
    expect(await listed(service, subject, ClientKind.BROWSER)).toHaveLength(3);
    expect(await listed(service, subject, ClientKind.TV)).toEqual([]);
    for (let at = 0; at < 12; at++) await logIn(service, { subject, clientId: "cli" });
    expect(await listed(service, subject)).toHaveLength(10);
  });

  test("a limit of the request holds instead of the policies", async () => {
    const subject = somebody();
    const wanted = { subject, clientId: "web", client: { kind: ClientKind.TV } };
    const [first] = [await logIn(service, wanted), await logIn(service, wanted)];
    await logIn(service, { ...wanted, limit: { maxSessions: 2, whenExceeded: LimitAction.END_OLDEST } });
    expect((await listed(service, subject)).map(({ sessionId }) => sessionId)).not.toContain(first.sid);
    const limit = { scope: LimitScope.CLIENT_KIND, maxSessions: 2, whenExceeded: LimitAction.REFUSE };
    expect(await create(service, { ...wanted, limit })).toMatchObject({ ok: false, code: "E429_SESSION_LIMIT" });
    await logIn(service, { subject, client: { kind: ClientKind.CLI }, limit });
  });

  test.each([0, 101, -1])("a limit of %i is no limit", async (maxSessions) => {
    const refused = await create(service, { subject: somebody(), limit: { maxSessions } });
    expect(refused).toMatchObject({ ok: false, code: "E400_INVALID_REQUEST" });
    expect(JSON.stringify(refused)).toContain("limit.max_sessions");
  });

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      test("a refusal lists what is live, and changes nothing", async () => {
        const subject = somebody();
        const client = { displayName: "living room", kind: ClientKind.TV, userAgent: "ü".repeat(256) };
        const wanted = { subject, clientId: "web", client };
        const sids: string[] = [];
        for (let at = 0; at < 5; at++) sids.push((await logIn(service, wanted)).sid);
        const before = await listed(service, subject);
        const refused = await caller.call(admin.createSession, wanted, bearer(service.adminToken));
        if (refused.ok) throw new Error("it was created");
        expect([refused.code, refused.rpc, refused.headers.get("retry-after")]).toEqual([
          ...["E429_SESSION_LIMIT", "resource_exhausted", null],
        ]);
        const [exceeded] = refused.error?.findDetails(SessionLimitExceededSchema) ?? [];
        expect(exceeded?.limit).toMatchObject({ maxSessions: 5, whenExceeded: LimitAction.REFUSE });
        expect(exceeded?.sessions.map(({ sessionId }) => sessionId)).toEqual(sids);
        expect(exceeded?.sessions[0]).toMatchObject({
          clientId: "web",
          client: { displayName: "living room", kind: ClientKind.TV, userAgent: "ü".repeat(128) },
          lastRefreshTime: before.at(-1)?.lastRefreshTime,
        });
        expect(await listed(service, subject)).toEqual(before);
        const replacing = { ...wanted, replacesSessionId: sids[2] ?? "" };
        message(await caller.call(admin.createSession, replacing, bearer(service.adminToken)));
      });
    },
  );

  test("a refusal in JSON has the list to read, and is recorded", async () => {
    const subject = somebody();
    const longName = { displayName: "d".repeat(128), userAgent: "u".repeat(512), ipAddress: "i".repeat(64) };
    const limit = { maxSessions: 12, whenExceeded: "LIMIT_ACTION_REFUSE" };
    const body = { subject, clientId: "c".repeat(255), client: longName, limit };
    const post = () =>
      fetch(`${service.adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`, {
        method: "POST",
        headers: { "content-type": "application/json", ...bearer(service.adminToken) },
        body: JSON.stringify(body),
      });
    for (let at = 0; at < 12; at++) expect((await post()).status).toBe(200);
    const response = await post();
    expect(response.status).toBe(429);
    const failure = (await response.json()) as { code: string; details: { type: string; debug: unknown }[] };
    expect(failure.code).toBe("resource_exhausted");
    const detail = failure.details.find(({ type }) => type === "auth.admin.v1.SessionLimitExceeded");
    const { sessions = [] } = (detail?.debug ?? {}) as { sessions?: { sessionId: string }[] };
    // As many as fit: the detail is also sent in a header, which has a limit.
    expect(sessions.length).toBeGreaterThan(4);
    expect(sessions.length).toBeLessThan(10);
    expect(JSON.stringify(failure).length).toBeLessThan(16_384);
    const line = await waitFor(service, () => /.*"event":"session_refused".*/.exec(service.stderr())?.[0]);
    expect(JSON.parse(line)).toMatchObject({ level: "info", scope: expect.any(String) });
  });
});

test("a changed file is in force at once, and a broken one changes nothing", async () => {
  const file = join(scratch(), "policies.json");
  writeFileSync(file, text({ max_sessions: 1, when_exceeded: "REFUSE" }));
  const service = await startService({ SESSION_POLICIES_FILE: file });
  const logged = (event: string) =>
    waitFor(service, () => service.stderr().includes(`"event":"${event}"`) || undefined);
  const { subject } = await logIn(service);
  const isCreated = async () => (await create(service, { subject })).ok;
  expect(await isCreated()).toBe(false);
  writeFileSync(file, text({ max_sessions: 0 }));
  await logged("session_policies_refused");
  expect(await isCreated()).toBe(false);
  writeFileSync(file, text({ max_sessions: 2, when_exceeded: "REFUSE" }));
  await logged("session_policies_changed");
  expect([await isCreated(), await isCreated()]).toEqual([true, false]);
});

test("a service does not start with a broken file", async () => {
  const file = join(scratch(), "policies.json");
  writeFileSync(file, text({ max_sessions: 0 }));
  const { code, stderr } = await runToExit({ SESSION_POLICIES_FILE: file });
  const fault = "limits[0].max_sessions: must be a whole number from 1 to 100";
  expect([code, stderr]).toEqual([1, `SESSION_POLICIES_FILE: ${file}: ${fault}\n`]);
});
