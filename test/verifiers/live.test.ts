/** The verifiers in other languages follow a real service through its faults. */
import { execFileSync } from "node:child_process";
import { decodeProtectedHeader } from "jose";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { AccessTokenPolicy } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { freePort } from "../support/free-port.ts";
import { startHoldingProxy } from "../support/holding-proxy.ts";
import { compiled, PROGRAM } from "../support/program.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, cookie, type LoggedIn, logIn, message, openAdmin } from "../support/sessions.ts";
import { untilTrue } from "../support/until.ts";
import { type Follower, type FollowOptions, LANGUAGES, startFollower } from "../support/verifier/languages.ts";

const ISSUER = "https://auth.example";
const AUDIENCE = "https://api.example";
/** The maximum staleness is longer than any pause of this machine, so that feeds become stale only in the tests of staleness. */
const PATIENT = { policy: "refuse", maxStalenessMs: 600_000 } as const;

let commands: readonly (readonly [string, ...string[]])[] = [];
beforeAll(async () => {
  commands = await Promise.all(LANGUAGES.map(({ build }) => build()));
});

async function start(env: Record<string, string> = {}): Promise<Service> {
  const service = await startService({ ISSUER, AUDIENCE, ...env });
  onTestFinished(async () => void (await service.kill9()));
  return service;
}

/** Starts a verifier in each language. */
async function follow(service: Service, options: Partial<FollowOptions> = PATIENT, event = "ready") {
  const { adminUrl, adminToken } = service;
  const given = { adminUrl, adminToken, issuer: ISSUER, audience: AUDIENCE, ...options };
  const followers = commands.map((command) => startFollower(command, given));
  onTestFinished(() => {
    for (const follower of followers) follower.stop();
  });
  await Promise.all(followers.map((follower) => follower.reported(event)));
  return followers;
}

const verdictsOf = (followers: readonly Follower[], token: string) =>
  Promise.all(followers.map((follower) => follower.verdictOf(token)));

/** Returns the expected verdicts if all verifiers agree. */
const all = (verdict: string) => LANGUAGES.map(() => verdict);

const eventuallyAll = (followers: readonly Follower[], { accessToken }: LoggedIn, verdict: string) =>
  untilTrue(async () => (await verdictsOf(followers, accessToken)).every((each) => each === verdict));

async function logout({ publicUrl }: Service, { accessToken }: LoggedIn): Promise<void> {
  const response = await fetch(`${publicUrl}/v1/auth/logout`, { method: "DELETE", headers: bearer(accessToken) });
  expect(response.status).toBe(200);
}

function changeKeys({ dataDir }: Service, ...args: readonly string[]): void {
  const env = { PATH: process.env.PATH ?? "", ...compiled(), DATA_DIR: dataDir };
  execFileSync(process.execPath, [PROGRAM, "keys", ...args], { env });
}

/** Refreshes a session with its first refresh token, which may be presented again within the reuse interval. */
async function refresh({ publicUrl }: Service, { refreshToken, ...rest }: LoggedIn): Promise<LoggedIn> {
  const response = await fetch(`${publicUrl}/v1/auth/refresh`, { method: "POST", headers: cookie(refreshToken) });
  const { data } = (await response.json()) as { data: { accessToken: string } };
  return { ...rest, refreshToken, accessToken: data.accessToken };
}

const kidOf = ({ accessToken }: LoggedIn) => decodeProtectedHeader(accessToken).kid ?? "";

/** Logs in until the service signs with another key. */
async function logInUnderAnotherKey(service: Service, than: string): Promise<LoggedIn> {
  let loggedIn = await logIn(service);
  await untilTrue(async () => {
    loggedIn = await logIn(service);
    return kidOf(loggedIn) !== than;
  });
  return loggedIn;
}

test("a logout and the end of all sessions refuse tokens, and those of others stay accepted", async () => {
  const service = await start();
  const followers = await follow(service);
  const [first, second] = [await logIn(service), await logIn(service)];
  for (const { accessToken } of [first, second]) {
    expect(await verdictsOf(followers, accessToken)).toEqual(all("accepted"));
  }
  await logout(service, first);
  await eventuallyAll(followers, first, "revoked");
  expect(await verdictsOf(followers, second.accessToken)).toEqual(all("accepted"));
  message(await openAdmin(service).call(admin.revokeAllSessions, {}, bearer(service.adminToken)));
  await eventuallyAll(followers, second, "revoked");
  const third = await logIn(service);
  expect(await verdictsOf(followers, third.accessToken)).toEqual(all("accepted"));
});

test("a change of a session refuses its tokens from before, and the next one is accepted", async () => {
  const service = await start();
  const followers = await follow(service);
  const [changed, other] = [await logIn(service), await logIn(service)];
  await eventuallyAll(followers, changed, "accepted");
  for (const role of ["admin", "user"]) {
    const refreshed = await refresh(service, changed);
    expect(await verdictsOf(followers, refreshed.accessToken)).toEqual(all("accepted"));
    const update = { sessionId: changed.sid, claims: { role }, accessTokens: AccessTokenPolicy.REFRESH };
    message(await openAdmin(service).call(admin.updateSession, update, bearer(service.adminToken)));
    for (const each of [changed, refreshed]) await eventuallyAll(followers, each, "stale");
  }
  expect(await verdictsOf(followers, (await refresh(service, changed)).accessToken)).toEqual(all("accepted"));
  expect(await verdictsOf(followers, other.accessToken)).toEqual(all("accepted"));
  await logout(service, await refresh(service, changed));
  await eventuallyAll(followers, changed, "revoked");
});

test("a service that is killed and started again is followed from the cursor", async () => {
  let service = await start({ ADMIN_PORT: String(await freePort()) });
  const followers = await follow(service);
  const [first, second] = [await logIn(service), await logIn(service)];
  await logout(service, first);
  await eventuallyAll(followers, first, "revoked");
  await service.kill9();
  await Promise.all(followers.map((follower) => follower.reported("feed_lost")));
  expect(await verdictsOf(followers, second.accessToken)).toEqual(all("accepted"));
  service = await service.restart();
  onTestFinished(async () => void (await service.kill9()));
  await logout(service, second);
  await Promise.all(followers.map((follower) => follower.reported("feed_following", 2)));
  await eventuallyAll(followers, second, "revoked");
  expect(await verdictsOf(followers, first.accessToken)).toEqual(all("revoked"));
  expect(await verdictsOf(followers, (await logIn(service)).accessToken)).toEqual(all("accepted"));
});

test("a service with another store and other keys is followed from a snapshot", async () => {
  const ADMIN_PORT = String(await freePort());
  const service = await start({ ADMIN_PORT });
  const followers = await follow(service);
  const before = await logIn(service);
  await logout(service, before);
  await eventuallyAll(followers, before, "revoked");
  await service.kill9();
  const another = await start({ ADMIN_PORT, ADMIN_TOKENS: service.adminToken });
  const after = await logIn(another);
  await eventuallyAll(followers, after, "accepted");
  await logout(another, after);
  await eventuallyAll(followers, after, "revoked");
  await eventuallyAll(followers, before, "unknown_key");
});

test("a service that is stalled makes tokens unavailable, and accepted again", async () => {
  const service = await start();
  const followers = await follow(service, { policy: "refuse", maxStalenessMs: 4000 });
  const loggedIn = await logIn(service);
  await eventuallyAll(followers, loggedIn, "accepted");
  service.kill("SIGSTOP");
  await eventuallyAll(followers, loggedIn, "unavailable");
  await Promise.all(followers.map((follower) => follower.reported("feed_lost")));
  service.kill("SIGCONT");
  await eventuallyAll(followers, loggedIn, "accepted");
  await logout(service, loggedIn);
  await eventuallyAll(followers, loggedIn, "revoked");
});

test("behind a partition nothing is accepted beyond the bound, and what has ended meanwhile is refused after it", async () => {
  const service = await start();
  const proxy = await startHoldingProxy(Number(new URL(service.adminUrl).port));
  onTestFinished(() => proxy.stop());
  const adminUrl = `http://127.0.0.1:${proxy.port}`;
  const followers = await follow(service, { adminUrl, policy: "refuse", maxStalenessMs: 4000 });
  const [first, second] = [await logIn(service), await logIn(service)];
  for (const loggedIn of [first, second]) await eventuallyAll(followers, loggedIn, "accepted");
  proxy.loseReplies();
  await logout(service, first);
  for (const loggedIn of [first, second]) await eventuallyAll(followers, loggedIn, "unavailable");
  await Promise.all(followers.map((follower) => follower.reported("feed_lost")));
  proxy.recover();
  await eventuallyAll(followers, second, "accepted");
  expect(await verdictsOf(followers, first.accessToken)).toEqual(all("revoked"));
});

test("keys that rotate are known, those from before the start and later ones", async () => {
  const service = await start({ JWKS_MAX_AGE: "1s" });
  const followers = await follow(service);
  const first = await logIn(service);
  changeKeys(service, "rotate", "signing", "--force");
  const second = await logInUnderAnotherKey(service, kidOf(first));
  expect(await verdictsOf(followers, second.accessToken)).toEqual(all("accepted"));
  changeKeys(service, "rotate", "signing", "--force");
  const third = await logInUnderAnotherKey(service, kidOf(second));
  await eventuallyAll(followers, third, "accepted");
  for (const { accessToken } of [first, second]) {
    expect(await verdictsOf(followers, accessToken)).toEqual(all("accepted"));
  }
});

test("a key that is revoked in an emergency refuses its tokens, and its successor is accepted", async () => {
  const service = await start();
  const followers = await follow(service);
  const loggedIn = await logIn(service);
  expect(await verdictsOf(followers, loggedIn.accessToken)).toEqual(all("accepted"));
  changeKeys(service, "revoke", kidOf(loggedIn));
  await eventuallyAll(followers, loggedIn, "revoked_key");
  const after = await logInUnderAnotherKey(service, kidOf(loggedIn));
  expect(await verdictsOf(followers, after.accessToken)).toEqual(all("accepted"));
});

test("where every token is introspected, a logout takes effect at once", async () => {
  const service = await start();
  const followers = await follow(service, { policy: "introspect", maxStalenessMs: 0 });
  const loggedIn = await logIn(service);
  await eventuallyAll(followers, loggedIn, "accepted");
  await logout(service, loggedIn);
  for (const verdict of await verdictsOf(followers, loggedIn.accessToken)) expect(verdict).not.toBe("accepted");
  await eventuallyAll(followers, loggedIn, "revoked");
});

test("an admin token that is refused is reported", async () => {
  const service = await start();
  await follow(service, { adminToken: "an-admin-token-of-32-characters-or-more" }, "not_ready");
});
