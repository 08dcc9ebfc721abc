/** The audit trail of the real service: it records every promised business event, with the address that caused it. */
import { timestampMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { AccessTokenPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { aService } from "../../support/every-protocol.ts";
import { waitFor } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, openPublic, successor } from "../../support/sessions.ts";

const { refresh, logout, logoutByCookie, listSessions, revokeSession, revokeOtherSessions } = SessionService.method;
const service = aService({ LOG_LEVEL: "debug", TRUST_PROXY: "1", REUSE_INTERVAL: "0", MAX_SESSIONS_PER_SUBJECT: "3" });

type Line = Readonly<Record<string, unknown>>;
let addresses = 0;
/** Returns a header with an address that no other call of the tests has. */
const from = () => ({ "x-forwarded-for": `192.0.2.${++addresses}` });
const lines = (): Line[] =>
  service
    .stderr()
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);

/** Returns the events that an address has caused, as soon as one is the event `last`, which the operation records at its end. */
async function recorded(headers: { readonly "x-forwarded-for": string }, last: string): Promise<Line[]> {
  const of = () => lines().filter(({ address }) => address === headers["x-forwarded-for"]);
  await waitFor(service, () => of().find(({ event }) => event === last));
  return of();
}

test("creating a session is recorded with its address", async () => {
  const headers = from();
  const created = await openAdmin(service).call(
    admin.createSession,
    { subject: "recorded" },
    { ...bearer(service.adminToken), ...headers },
  );
  const sid = message(created).session?.sessionId;
  expect(await recorded(headers, "session_created")).toMatchObject([
    { level: "info", event: "session_created", sid, subject: "recorded" },
  ]);
});

test("a refresh is recorded with its outcome and address", async () => {
  const user = await logIn(service);
  const headers = from();
  const first = await openPublic(service).call(refresh, {}, { ...cookie(user.refreshToken), ...headers });
  message(await openPublic(service).call(refresh, {}, { ...cookie(successor(first) ?? ""), ...headers }));
  await recorded(headers, "session_renewed");
  const { sid, subject } = user;
  await waitFor(service, () => lines().filter((line) => line.sid === sid && line.event === "session_renewed")[1]);
  expect(await recorded(headers, "session_renewed")).toMatchObject([
    { level: "debug", sid, subject, outcome: expect.stringMatching(/^(rotate|recover|repeat)$/) },
    { level: "debug", sid, subject, outcome: "rotate" },
  ]);
});

test("reuse is recorded as reuse and as an ending", async () => {
  const user = await logIn(service);
  const first = await openPublic(service).call(refresh, {}, cookie(user.refreshToken));
  const second = await openPublic(service).call(refresh, {}, cookie(successor(first) ?? ""));
  message(await openPublic(service).call(refresh, {}, cookie(successor(second) ?? "")));
  const headers = from();
  const stolen = await openPublic(service).call(refresh, {}, { ...cookie(user.refreshToken), ...headers });
  expect(stolen).toMatchObject({ code: "E001_AUTH_FAILURE" });
  const { sid, subject } = user;
  const trail = await recorded(headers, "authn_failed");
  expect(trail).toContainEqual(expect.objectContaining({ level: "warn", event: "authn_token_reuse", sid, subject }));
  expect(trail).toContainEqual(
    expect.objectContaining({ level: "info", event: "session_ended", sid, reason: "reuse" }),
  );
  expect(trail).toContainEqual(
    expect.objectContaining({ level: "debug", event: "authn_failed", operation: "Refresh", reason: "reuse", sid }),
  );
  expect(trail).toHaveLength(3);
});

type Ending = {
  readonly name: string;
  readonly reason: string;
  end(headers: Record<string, string>): Promise<string[]>;
};
const ENDINGS: Ending[] = [
  {
    name: "logout by cookie",
    reason: "logout",
    async end(headers) {
      const user = await logIn(service);
      message(await openPublic(service).call(logoutByCookie, {}, { ...cookie(user.refreshToken), ...headers }));
      return [user.sid];
    },
  },
  {
    name: "a login in place of another session",
    reason: "replaced",
    async end(headers) {
      const { sid, subject } = await logIn(service);
      const credential = { ...bearer(service.adminToken), ...headers };
      message(await openAdmin(service).call(admin.createSession, { subject, replacesSessionId: sid }, credential));
      return [sid];
    },
  },
  {
    name: "logout",
    reason: "logout",
    async end(headers) {
      const user = await logIn(service);
      message(await openPublic(service).call(logout, {}, { ...bearer(user.accessToken), ...headers }));
      return [user.sid];
    },
  },
  {
    name: "revoking one's own session",
    reason: "revoked_by_owner",
    async end(headers) {
      const user = await logIn(service);
      const other = await logIn(service, { subject: user.subject });
      message(
        await openPublic(service).call(
          revokeSession,
          { sessionId: other.sid },
          { ...bearer(user.accessToken), ...headers },
        ),
      );
      return [other.sid];
    },
  },
  {
    name: "revoking one's other sessions",
    reason: "revoked_others",
    async end(headers) {
      const user = await logIn(service);
      const others = [await logIn(service, { subject: user.subject }), await logIn(service, { subject: user.subject })];
      message(await openPublic(service).call(revokeOtherSessions, {}, { ...bearer(user.accessToken), ...headers }));
      return others.map(({ sid }) => sid);
    },
  },
  {
    name: "revoking a session as an administrator",
    reason: "revoked_by_admin",
    async end(headers) {
      const user = await logIn(service);
      const credential = { ...bearer(service.adminToken), ...headers };
      message(await openAdmin(service).call(admin.revokeSession, { sessionId: user.sid }, credential));
      return [user.sid];
    },
  },
  {
    name: "revoking a subject's sessions",
    reason: "revoked_subject",
    async end(headers) {
      const user = await logIn(service);
      const other = await logIn(service, { subject: user.subject });
      const credential = { ...bearer(service.adminToken), ...headers };
      message(await openAdmin(service).call(admin.revokeSubjectSessions, { subject: user.subject }, credential));
      return [user.sid, other.sid];
    },
  },
  {
    name: "a session over the limit of its subject",
    reason: "session_limit",
    async end(headers) {
      const oldest = await logIn(service);
      for (let more = 0; more < 2; more++) await logIn(service, { subject: oldest.subject });
      const credential = { ...bearer(service.adminToken), ...headers };
      message(await openAdmin(service).call(admin.createSession, { subject: oldest.subject }, credential));
      return [oldest.sid];
    },
  },
];

test.each(ENDINGS)("$name is recorded as an ending with its reason and address", async ({ end, reason }) => {
  const headers = from();
  const sids = await end(headers);
  await waitFor(
    service,
    () => lines().filter((line) => sids.includes(String(line.sid)) && line.event === "session_ended")[sids.length - 1],
  );
  const endings = (await recorded(headers, "session_ended")).filter(({ event }) => event === "session_ended");
  expect(endings.map(({ sid }) => sid).sort()).toEqual([...sids].sort());
  for (const ending of endings) expect(ending).toMatchObject({ level: "info", reason });
});

test("a step-up is recorded with its methods and address", async () => {
  const { sid, subject } = await logIn(service);
  const headers = from();
  const wanted = { sessionId: sid, authTime: timestampNow(), amr: ["pwd", "otp"], acr: "gold" };
  const credential = { ...bearer(service.adminToken), ...headers };
  message(await openAdmin(service).call(admin.elevateSession, wanted, credential));
  expect(await recorded(headers, "session_elevated")).toMatchObject([
    { level: "info", sid, subject, methods: ["pwd", "otp"], contextClass: "gold" },
  ]);
});

test("an update is recorded with its fields and version, and not with its values", async () => {
  const { sid, subject } = await logIn(service);
  const headers = from();
  const wanted = { sessionId: sid, claims: { role: "a value" }, accessTokens: AccessTokenPolicy.REFRESH };
  const credential = { ...bearer(service.adminToken), ...headers };
  message(await openAdmin(service).call(admin.updateSession, wanted, credential));
  message(await openAdmin(service).call(admin.updateSession, wanted, credential)); // It changes nothing.
  const [line, ...others] = await recorded(headers, "session_updated");
  expect(line).toMatchObject({ level: "info", sid, subject, version: 1, fields: ["claims"], accessTokens: "refresh" });
  expect(JSON.stringify(line)).not.toContain("a value");
  expect(others).toEqual([]);
});

test("the end of all sessions is recorded with its time and address", async () => {
  const headers = from();
  const response = await openAdmin(service).call(
    admin.revokeAllSessions,
    {},
    { ...bearer(service.adminToken), ...headers },
  );
  const { revokedUntilTime } = message(response);
  const revokedUntil = revokedUntilTime && timestampMs(revokedUntilTime);
  expect(await recorded(headers, "all_sessions_ended")).toMatchObject([{ level: "warn", revokedUntil }]);
});

test("a subject that is exported and forgotten is not named by the lines of that", async () => {
  const { subject, sid } = await logIn(service);
  const [own, header] = [from(), bearer(service.adminToken)];
  message(await openAdmin(service).call(admin.exportSubject, { subject }, { ...header, ...own }));
  expect(await recorded(own, "subject_exported")).toMatchObject([{ level: "info", sessions: 1, signals: 0 }]);
  const forgetting = from();
  message(await openAdmin(service).call(admin.forgetSubject, { subject }, { ...header, ...forgetting }));
  const lines = await recorded(forgetting, "subject_forgotten");
  expect(lines).toMatchObject([
    { event: "session_ended", sid, reason: "revoked_subject" },
    {
      event: "subject_forgotten",
      level: "info",
      sessions: 1,
      signals: 0,
      requestId: expect.any(String),
      by: expect.any(String),
    },
  ]);
  expect(JSON.stringify(lines)).not.toContain(subject);
});

type Refusal = {
  readonly name: string;
  readonly wanted: Line;
  call(headers: Record<string, string>): Promise<unknown>;
};
const forged = (token: string) => `${token.slice(0, -4)}${token.endsWith("AAAA") ? "BBBB" : "AAAA"}`;
const REFUSALS: Refusal[] = [
  {
    name: "a refresh without a cookie",
    wanted: { level: "debug", operation: "Refresh", reason: "absent" },
    call: (headers) => openPublic(service).call(refresh, {}, headers),
  },
  {
    name: "a refresh with a forged token",
    wanted: { level: "warn", operation: "Refresh", reason: "forged" },
    async call(headers) {
      const { refreshToken } = await logIn(service);
      return openPublic(service).call(refresh, {}, { ...cookie(forged(refreshToken)), ...headers });
    },
  },
  {
    name: "a refresh with a token that is none",
    wanted: { level: "warn", operation: "Refresh", reason: "malformed" },
    call: (headers) => openPublic(service).call(refresh, {}, { ...cookie("nonsense"), ...headers }),
  },
  {
    name: "a refresh of an ended session",
    wanted: { level: "debug", operation: "Refresh", reason: "revoked" },
    async call(headers) {
      const user = await logIn(service);
      message(await openPublic(service).call(logout, {}, bearer(user.accessToken)));
      return openPublic(service).call(refresh, {}, { ...cookie(user.refreshToken), ...headers });
    },
  },
  {
    name: "a logout by a cookie that is no token",
    wanted: { level: "warn", operation: "LogoutByCookie", reason: "malformed" },
    call: (headers) => openPublic(service).call(logoutByCookie, {}, { ...cookie("nonsense"), ...headers }),
  },
  {
    name: "a logout with a token for others",
    wanted: { level: "warn", operation: "Logout", reason: "wrong_audience" },
    async call(headers) {
      const { accessToken } = await logIn(service, { audience: "https://third-party.example" });
      return openPublic(service).call(logout, {}, { ...bearer(accessToken), ...headers });
    },
  },
  {
    name: "a logout without a token",
    wanted: { level: "debug", operation: "Logout", reason: "absent" },
    call: (headers) => openPublic(service).call(logout, {}, headers),
  },
  {
    name: "a logout with a forged token",
    wanted: { level: "warn", operation: "Logout", reason: "forged" },
    async call(headers) {
      const { accessToken } = await logIn(service);
      return openPublic(service).call(logout, {}, { ...bearer(forged(accessToken)), ...headers });
    },
  },
  {
    name: "a refresh with the cookies of two subjects",
    wanted: { level: "warn", operation: "Refresh", reason: "ambiguous" },
    async call(headers) {
      const [a, b] = [await logIn(service), await logIn(service)];
      const both = `refresh_token=${a.refreshToken}; refresh_token=${b.refreshToken}`;
      return openPublic(service).call(refresh, {}, { cookie: both, ...headers });
    },
  },
  {
    name: "a logout by cookie without one",
    wanted: { level: "debug", operation: "LogoutByCookie", reason: "absent" },
    call: (headers) => openPublic(service).call(logoutByCookie, {}, headers),
  },
  {
    name: "a list asked for with a revoked token",
    wanted: { level: "debug", operation: "ListSessions", reason: "revoked" },
    async call(headers) {
      const user = await logIn(service);
      message(await openPublic(service).call(logout, {}, bearer(user.accessToken)));
      return openPublic(service).call(listSessions, {}, { ...bearer(user.accessToken), ...headers });
    },
  },
  {
    name: "an admin call without a token",
    wanted: { level: "warn", operation: "GetSession", reason: "absent", admin: true },
    call: (headers) => openAdmin(service).call(admin.getSession, { sessionId: "x" }, headers),
  },
  {
    name: "an admin call with another token",
    wanted: { level: "warn", operation: "GetSession", reason: "forged", admin: true },
    call: (headers) =>
      openAdmin(service).call(admin.getSession, { sessionId: "x" }, { ...bearer("x".repeat(40)), ...headers }),
  },
];

test.each(REFUSALS)("$name is recorded with operation, reason and address", async ({ call, wanted }) => {
  const headers = from();
  expect(await call(headers)).toMatchObject({ code: "E001_AUTH_FAILURE" });
  expect(await recorded(headers, "authn_failed")).toMatchObject([{ event: "authn_failed", ...wanted }]);
});
