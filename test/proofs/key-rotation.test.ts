/** Signing keys and MAC keys rotate under load, as early as their ages permit: no live token is refused, at any instance. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { KEY_KINDS, type KeyKind, parseRing } from "../../src/service/tokens/ring.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { compiled, PROGRAM } from "../support/program.ts";
import { admin, bearer, cookie, logIn, message, somebody, successor } from "../support/sessions.ts";
import { untilTrue } from "../support/until.ts";
import { callersOf, type Deployment, deploy, ISSUER, pick, startTestRedis } from "./support/deployment.ts";
import { seconds } from "./support/run-length.ts";

const { refresh, logout } = SessionService.method;

/** The idle life of sessions, in ms. It is short, so that keys are old enough for a rotation every few seconds. */
const IDLE_MS = 4_000;
const LIVES = { JWKS_MAX_AGE: "1s", ACCESS_TOKEN_TTL: "2s", SESSION_IDLE_TTL: `${IDLE_MS}ms`, REUSE_INTERVAL: "1s" };
/**
 * How long it takes until an instance uses a changed key ring, in s. An instance checks the file every second; the rest is for a busy
 * machine.
 */
const PICK_UP_SECONDS = 3;

/** Runs `npm run keys -- …`. @returns whether the ages of the keys permitted the step */
async function keys({ env }: Deployment, ...command: readonly string[]): Promise<boolean> {
  const { PATH = "" } = process.env;
  return promisify(execFile)(process.execPath, [PROGRAM, "keys", ...command, "--pick-up", String(PICK_UP_SECONDS)], {
    env: { PATH, ...compiled(), ...env },
  }).then(
    () => true,
    ({ stderr }: { stderr: string }) => {
      expect(stderr).toMatch(/may sign from/);
      return false;
    },
  );
}

/** Returns the id of the MAC key that a refresh token contains. */
const macKidOf = (refreshToken: string) => Buffer.from(refreshToken, "base64url").toString("hex", 1, 5);

type Verify = (token: string) => Promise<unknown>;

/** Returns a verifier as third parties write it: it keeps a key set for the whole `max-age`, even if a token has an unknown key. */
function keySetKeeper({ services }: Deployment): Verify {
  let find: ReturnType<typeof createLocalJWKSet> | undefined;
  let loadedAt = 0;
  let maxAgeMs = 0;
  let loading: Promise<void> | undefined;
  const load = async () => {
    const asked = performance.now();
    const response = await fetch(new URL("/.well-known/jwks.json", pick(services).publicUrl));
    find = createLocalJWKSet((await response.json()) as JSONWebKeySet);
    maxAgeMs = Number(/max-age=(\d+)/.exec(response.headers.get("cache-control") ?? "")?.[1]) * 1000;
    loadedAt = asked;
    loading = undefined;
  };
  return async (token) => {
    if (performance.now() - loadedAt > maxAgeMs) {
      loading ??= load();
      await loading;
    }
    if (find === undefined) throw new Error("no key set");
    return jwtVerify(token, find, { issuer: ISSUER, typ: "at+jwt" });
  };
}

/** Starts this project's verifier, which follows the first instance. */
async function feedFollower({ services, adminToken }: Deployment): Promise<Verify> {
  const adminUrl = services[0]?.adminUrl ?? "";
  const verifier = createVerifier({ adminUrl, adminToken, issuer: ISSUER, audience: ISSUER });
  onTestFinished(() => verifier.close());
  await verifier.ready;
  return async (token) => {
    const verdict = await verifier.verify(token);
    if (!verdict.ok) throw new Error(`refused: ${verdict.reason}`);
  };
}

/** Repeats a call while the service is unavailable, as clients do: a busy machine delays commands past their deadline. */
async function untilServed<T extends { readonly ok: boolean; readonly code?: string | undefined }>(
  call: () => Promise<T>,
): Promise<T> {
  for (;;) {
    const response = await call();
    if (response.ok || response.code !== "E503_UNAVAILABLE") return response;
    await pause(50);
  }
}

/** Uses sessions while keys rotate, and records the outcomes. */
class Load {
  readonly kids = { signing: new Set<string>(), mac: new Set<string>() };
  /** Descriptions of refusals of credentials that are still valid. */
  readonly refused: string[] = [];
  calls = 0;
  /** The number of tokens that were refused after their expiry, which is not an error on a busy machine. */
  late = 0;
  over = false;
  readonly #deployment: Deployment;
  readonly #verifiers: readonly Verify[];

  constructor(deployment: Deployment, verifiers: readonly Verify[]) {
    this.#deployment = deployment;
    this.#verifiers = verifiers;
  }

  /** Refreshes again and again, after pauses of at most `longestMs`. */
  async browse(longestMs: number): Promise<void> {
    let held = await this.#logIn();
    let before = held.accessToken;
    while (!this.over) {
      await this.#verify(held.accessToken);
      await pause(Math.random() * longestMs);
      await this.#verify(before);
      before = held.accessToken;
      const current = held;
      held =
        (await this.#expect("refresh", held.since + IDLE_MS, () => this.#refresh(current))) ?? (await this.#logIn());
    }
  }

  async logInAndOut(): Promise<void> {
    while (!this.over) {
      const { accessToken } = await this.#logIn();
      await this.#verify(accessToken);
      await this.#expect("logout", expiryOf(accessToken), async () => {
        const { public: listener } = callersOf(pick(this.#deployment.services));
        return message(await untilServed(() => listener.call(logout, {}, bearer(accessToken))));
      });
      await pause(Math.random() * 50);
    }
  }

  /** Makes a call with a credential, and records a refusal as wrong if it comes before `expiry`, in ms since the epoch. */
  async #expect<T>(what: string, expiry: number, call: () => Promise<T>): Promise<T | undefined> {
    this.calls++;
    try {
      return await call();
    } catch (error) {
      if (Date.now() < expiry) this.refused.push(`${what}: ${error}`);
      else this.late++;
      return undefined;
    }
  }

  async #verify(token: string): Promise<void> {
    this.kids.signing.add(decodeProtectedHeader(token).kid ?? "");
    for (const verify of this.#verifiers) await this.#expect("verify", expiryOf(token), () => verify(token));
  }

  async #logIn(): Promise<Held> {
    const since = Date.now();
    const { services, adminToken } = this.#deployment;
    const response = await untilServed(() =>
      callersOf(pick(services)).admin.call(admin.createSession, { subject: somebody() }, bearer(adminToken)),
    );
    return { ...message(response), since };
  }

  async #refresh(held: Held): Promise<Held> {
    const since = Date.now();
    this.kids.mac.add(macKidOf(held.refreshToken));
    const { public: listener } = callersOf(pick(this.#deployment.services));
    const response = await untilServed(() => listener.call(refresh, {}, cookie(held.refreshToken)));
    const { accessToken } = message(response).data ?? { accessToken: "" };
    const refreshToken = successor(response) ?? "";
    return { accessToken, refreshToken, since: refreshToken === held.refreshToken ? held.since : since };
  }
}

/** The tokens of a session. `since` is a time before the refresh token was issued, in ms since the epoch. */
type Held = { readonly accessToken: string; readonly refreshToken: string; readonly since: number };

const expiryOf = (token: string) => Number(decodeJwt(token).exp) * 1000;

test("three services on one Redis, keys rotated as often as their ages permit", async () => {
  const { url } = await startTestRedis();
  const deployment = await deploy(3, { ...LIVES, REDIS_URL: url });
  const load = new Load(deployment, [await feedFollower(deployment), keySetKeeper(deployment)]);
  const usedAndGone = async (kind: KeyKind) => {
    const ring = parseRing(await readFile(deployment.keysFile, "utf8"));
    const used = [...load.kids[kind]];
    return { used: used.length, gone: used.filter((kid) => !ring[kind].some((key) => key.kid === kid)).length };
  };
  /** Returns whether several keys have been in use, and the first of them have been removed at the end of their life. */
  const isComplete = async () => {
    const kinds = await Promise.all(KEY_KINDS.map(usedAndGone));
    return kinds.every(({ used, gone }) => used > 2 && gone > 0);
  };

  const atLeastUntil = performance.now() + seconds(0, 120);
  let rotations = 0;
  const rotating = async (): Promise<void> => {
    while (performance.now() < atLeastUntil || !(await isComplete())) {
      if (await keys(deployment, "rotate")) rotations++;
      else await keys(deployment, "remove");
      await pause(200);
    }
    load.over = true;
  };
  await Promise.all([
    rotating(),
    load.logInAndOut(),
    ...Array.from({ length: 4 }, () => load.browse(200)),
    // These clients are away for almost the idle life of a session, so they present tokens whose keys retired long before.
    ...Array.from({ length: 12 }, () => load.browse(IDLE_MS - 1_000)),
  ]);
  const [signing, mac] = await Promise.all(KEY_KINDS.map(usedAndGone));
  console.log({ calls: load.calls, late: load.late, rotations, signing, mac });
  expect(load.refused).toEqual([]);
  expect(load.late).toBeLessThan(load.calls / 2);
});

test("a key that is revoked in an emergency is refused everywhere, and its successor is in use", async () => {
  const { url } = await startTestRedis();
  const deployment = await deploy(3, { REDIS_URL: url });
  const { services, adminToken } = deployment;
  const verifiers = services.map(({ adminUrl }) =>
    createVerifier({ adminUrl, adminToken, issuer: ISSUER, audience: ISSUER, policy: "refuse" }),
  );
  onTestFinished(() => {
    for (const verifier of verifiers) verifier.close();
  });
  await Promise.all(verifiers.map(({ ready }) => ready));
  const reasons = (token: string) =>
    Promise.all(
      verifiers.map(async (each) => each.verify(token).then((verdict) => (verdict.ok ? "accepted" : verdict.reason))),
    );
  const allOf = (reason: string) => services.map(() => reason);
  const user = await logIn({ ...pick(services), adminToken });
  expect(await reasons(user.accessToken)).toEqual(allOf("accepted"));

  await keys(deployment, "revoke", decodeProtectedHeader(user.accessToken).kid ?? "");
  await untilTrue(async () => !(await reasons(user.accessToken)).includes("accepted"));
  expect(await reasons(user.accessToken)).toEqual(allOf("revoked_key"));
  for (const service of services) {
    const renewed = await callersOf(service).public.call(refresh, {}, cookie(user.refreshToken));
    const token = message(renewed).data?.accessToken ?? "";
    expect(await reasons(token)).toEqual(allOf("accepted"));
    const loggedOut = await callersOf(service).public.call(logout, {}, bearer(user.accessToken));
    expect(loggedOut).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
  }

  await keys(deployment, "revoke", macKidOf(user.refreshToken));
  for (const service of services) {
    const ask = () => callersOf(service).public.call(refresh, {}, cookie(user.refreshToken));
    await untilTrue(async () => !(await ask()).ok);
    expect(await ask()).toMatchObject({ code: "E001_AUTH_FAILURE" });
    const again = await logIn({ ...service, adminToken });
    expect(macKidOf(again.refreshToken)).not.toBe(macKidOf(user.refreshToken));
    message(await callersOf(pick(services)).public.call(refresh, {}, cookie(again.refreshToken)));
  }
});
