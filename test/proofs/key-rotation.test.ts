/**
 * Keys of both kinds are rotated under load, as early as their ages permit: nobody honest is refused, whichever
 * instance he asks and however long his tokens have lain.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { KEY_KINDS, type KeyKind, parseRing } from "../../src/tokens/ring.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { admin, bearer, cookie, logIn, message, somebody, successor } from "../support/sessions.ts";
import { aRedis, type Deployment, deploy, doorsOf, ISSUER, pick } from "./support/deployment.ts";
import { seconds } from "./support/run-length.ts";

const { refresh, logout } = SessionService.method;

/** Short lives, so that the ages permit a rotation each few seconds; an instance picks a ring up within 2 s. */
const IDLE = 5_000;
const LIVES = { JWKS_MAX_AGE: "1s", ACCESS_TOKEN_TTL: "3s", SESSION_IDLE_TTL: `${IDLE}ms`, REUSE_INTERVAL: "1s" };
const PICK_UP = 2;

/** `npm run keys -- …`; whether the ages permitted it. */
async function keys({ env }: Deployment, ...command: readonly string[]): Promise<boolean> {
  const { PATH = "" } = process.env;
  return promisify(execFile)(process.execPath, ["src/cli/keys.ts", ...command, "--pick-up", String(PICK_UP)], {
    env: { PATH, ...env },
  }).then(
    () => true,
    ({ stderr }: { stderr: string }) => {
      expect(stderr).toMatch(/may sign from/);
      return false;
    },
  );
}

/** The key id in a refresh token. */
const macKidOf = (refreshToken: string) => Buffer.from(refreshToken, "base64url").toString("hex", 1, 5);

type Verify = (token: string) => Promise<unknown>;

/** Somebody else's verifier, which keeps a key set for as long as it may, and never looks before for a key it lacks. */
async function keySetKeeper({ services }: Deployment, signal: AbortSignal): Promise<Verify> {
  let find: ReturnType<typeof createLocalJWKSet>;
  const load = async () => {
    const answer = await fetch(new URL("/.well-known/jwks.json", pick(services).publicUrl));
    find = createLocalJWKSet((await answer.json()) as JSONWebKeySet);
    return Number(/max-age=(\d+)/.exec(answer.headers.get("cache-control") ?? "")?.[1]) * 1000;
  };
  let age = await load();
  void (async () => {
    while (!signal.aborted) {
      await pause(age);
      age = await load().catch(() => 0);
    }
  })();
  return (token) => jwtVerify(token, (header, jws) => find(header, jws), { issuer: ISSUER, typ: "at+jwt" });
}

/** Ours, following the first instance. */
async function ours({ services, adminToken }: Deployment): Promise<Verify> {
  const adminUrl = services[0]?.adminUrl ?? "";
  const verifier = createVerifier({ adminUrl, adminToken, issuer: ISSUER, audience: ISSUER });
  onTestFinished(() => verifier.close());
  await verifier.ready;
  return async (token) => {
    const verdict = await verifier.verify(token);
    if (!verdict.ok) throw new Error(`refused: ${verdict.reason}`);
  };
}

test("three services on one Redis, keys rotated as often as may be", async () => {
  const { url } = await aRedis();
  const deployment = await deploy(3, { ...LIVES, REDIS_URL: url, REDIS_COMMAND_TIMEOUT: "5s" });
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const verifiers = [await ours(deployment), await keySetKeeper(deployment, over.signal)];
  const until = performance.now() + seconds(12, 120);
  const kids = { signing: new Set<string>(), mac: new Set<string>() };
  const refused: string[] = [];
  let calls = 0;
  let late = 0;

  /** Notes what was refused before `expiry`, ms since the epoch: later, on a slow machine, it may have been too old. */
  const must = async <T>(what: string, expiry: number, call: () => Promise<T>): Promise<T | undefined> => {
    calls++;
    try {
      return await call();
    } catch (error) {
      if (Date.now() < expiry) refused.push(`${what}: ${error}`);
      else late++;
      return undefined;
    }
  };
  const expiryOf = (token: string) => Number(decodeJwt(token).exp) * 1000;
  const check = async (token: string): Promise<void> => {
    kids.signing.add(decodeProtectedHeader(token).kid ?? "");
    for (const verify of verifiers) await must("verify", expiryOf(token), () => verify(token));
  };

  /** A refresh token that idles from `since` at the earliest. */
  type Held = { readonly accessToken: string; readonly refreshToken: string; readonly since: number };
  const arrive = async (): Promise<Held> => {
    const since = Date.now();
    const { admin: listener } = doorsOf(pick(deployment.services));
    const answer = await listener.call(admin.createSession, { subject: somebody() }, bearer(deployment.adminToken));
    return { ...message(answer), since };
  };
  const renew = async (held: Held): Promise<Held> => {
    const since = Date.now();
    kids.mac.add(macKidOf(held.refreshToken));
    const answer = await doorsOf(pick(deployment.services)).public.call(refresh, {}, cookie(held.refreshToken));
    const { accessToken } = message(answer).data ?? { accessToken: "" };
    const refreshToken = successor(answer) ?? "";
    return { accessToken, refreshToken, since: refreshToken === held.refreshToken ? held.since : since };
  };

  /** Refreshes again and again, after pauses of at most `longest` ms. */
  const browse = async (longest: number): Promise<void> => {
    let held = await arrive();
    let before = held.accessToken;
    while (performance.now() < until) {
      await check(held.accessToken);
      await pause(Math.random() * longest);
      await check(before);
      before = held.accessToken;
      const { since } = held;
      held = (await must("refresh", since + IDLE, () => renew(held))) ?? (await arrive());
    }
  };
  const comeAndGo = async (): Promise<void> => {
    while (performance.now() < until) {
      const { accessToken } = await arrive();
      await check(accessToken);
      await must("logout", expiryOf(accessToken), async () => {
        const { public: listener } = doorsOf(pick(deployment.services));
        return message(await listener.call(logout, {}, bearer(accessToken)));
      });
    }
  };
  let rotations = 0;
  const rotating = async (): Promise<void> => {
    while (performance.now() < until) {
      if (await keys(deployment, "rotate")) rotations++;
      else await keys(deployment, "remove"); // what nobody needs any more goes at once
    }
  };

  await Promise.all([
    rotating(),
    comeAndGo(),
    ...Array.from({ length: 8 }, () => browse(200)),
    // Those who are away for almost as long as a session may idle present tokens of keys that have long retired.
    ...Array.from({ length: 20 }, () => browse(4000)),
  ]);
  const ring = parseRing(await readFile(deployment.keysFile, "utf8"));
  const gone = (kind: KeyKind) => [...kids[kind]].filter((kid) => !ring[kind].some((key) => key.kid === kid)).length;
  const of = (kind: KeyKind) => ({ used: kids[kind].size, gone: gone(kind) });
  console.log({ calls, late, rotations, signing: of("signing"), mac: of("mac") });
  expect(refused).toEqual([]);
  expect(late).toBeLessThan(calls / 10);
  // Every rotation brought a key into use, and the first of them have gone through their whole life.
  for (const kind of KEY_KINDS) {
    expect(of(kind).used).toBeGreaterThan(2);
    expect(of(kind).gone).toBeGreaterThan(0);
  }
});

test("keys that are revoked in an emergency are dead everywhere, and everybody goes on with their successors", async () => {
  const { url } = await aRedis();
  const deployment = await deploy(3, { REDIS_URL: url, REDIS_COMMAND_TIMEOUT: "5s" });
  const { services, adminToken } = deployment;
  const verifiers = services.map(({ adminUrl }) =>
    createVerifier({ adminUrl, adminToken, issuer: ISSUER, audience: ISSUER, policy: "refuse" }),
  );
  onTestFinished(() => {
    for (const verifier of verifiers) verifier.close();
  });
  await Promise.all(verifiers.map(({ ready }) => ready));
  const reasons = (token: string) =>
    Promise.all(verifiers.map(async (each) => each.verify(token).then((to) => (to.ok ? "accepted" : to.reason))));
  const everybody = (reason: string) => services.map(() => reason);
  const user = await logIn({ ...pick(services), adminToken });
  expect(await reasons(user.accessToken)).toEqual(everybody("accepted"));

  await keys(deployment, "revoke", decodeProtectedHeader(user.accessToken).kid ?? "");
  while ((await reasons(user.accessToken)).includes("accepted")) await pause(1);
  expect(await reasons(user.accessToken)).toEqual(everybody("revoked_key"));
  for (const service of services) {
    const renewed = await doorsOf(service).public.call(refresh, {}, cookie(user.refreshToken));
    const token = message(renewed).data?.accessToken ?? "";
    expect(await reasons(token)).toEqual(everybody("accepted"));
    const loggedOut = await doorsOf(service).public.call(logout, {}, bearer(user.accessToken));
    expect(loggedOut).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
  }

  await keys(deployment, "revoke", macKidOf(user.refreshToken));
  for (const service of services) {
    const ask = () => doorsOf(service).public.call(refresh, {}, cookie(user.refreshToken));
    while ((await ask()).ok) await pause(1);
    expect(await ask()).toMatchObject({ code: "E001_AUTH_FAILURE" });
    const again = await logIn({ ...service, adminToken });
    expect(macKidOf(again.refreshToken)).not.toBe(macKidOf(user.refreshToken));
    message(await doorsOf(pick(services)).public.call(refresh, {}, cookie(again.refreshToken)));
  }
});
