/**
 * Attacks on device binding over the real HTTP API. Each is refused for a reason of a closed list, never with 5xx or 429, and changes
 * nothing.
 */
import { generateKeyPairSync } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  BOUND,
  challengeIn,
  challengeOf,
  Device,
  deviceKey,
  proof,
  REFRESH,
  REGISTER,
  RENEW,
  registration,
} from "../support/device.ts";
import { type Service, startService, waitFor } from "../support/service.ts";
import { logIn } from "../support/sessions.ts";

let service: Service;
beforeAll(async () => {
  service = await startService({ ...BOUND, REUSE_INTERVAL: "0", RATE_LIMIT_FAILURES: "5/60s", LOG_LEVEL: "debug" });
});
afterAll(() => service.stop());

type Victim = { readonly sid: string; readonly device: Device; readonly challenge: string };

/** Creates a user whose session has no key yet. The result has the challenge for registering one. */
async function unbound(): Promise<Victim> {
  const { sid, refreshToken, secureSessionRegistration } = await logIn(service);
  const challenge = challengeOf(secureSessionRegistration) ?? "";
  return { sid, device: new Device(service.publicUrl, refreshToken), challenge };
}

/** Creates a user whose session is bound to a key. The result has the challenge for the next renewal. */
async function bound(alg: "ES256" | "RS256" = "ES256"): Promise<Victim> {
  const { sid, refreshToken } = await logIn(service);
  const device = new Device(service.publicUrl, refreshToken, deviceKey(alg));
  return { sid, device, challenge: challengeIn(await device.bind()) ?? "" };
}

/** Returns why proofs for a session were refused, from the log. */
async function reasons(sid: string): Promise<string[]> {
  const found = () =>
    service
      .stderr()
      .split("\n")
      .filter((line) => line.includes(sid) && line.includes("device_proof_refused"))
      .map((line) => (JSON.parse(line) as { reason: string }).reason);
  return waitFor(service, () => (found().length > 0 ? found() : undefined));
}

async function expectRefused(path: string, { device, sid }: Victim, jwt: string, reason: string) {
  const before = [...device.jar];
  const response = await device.send(path, { "secure-session-response": jwt });
  expect(response.status).toBe(403);
  expect(response.headers.getSetCookie()).toEqual([]);
  expect(challengeIn(response)).toMatch(/^[\w-]{92}$/);
  expect(await response.json()).toEqual({ error: { code: "E403_FORBIDDEN", message: "a device proof is required" } });
  expect(await reasons(sid)).toEqual([reason]);
  expect([...device.jar]).toEqual(before);
  expect((await device.refresh()).status).toBe(200);
}

const rsa = (bits: number) => deviceKey("RS256", bits);
const p384 = () => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-384" });
  return { alg: "ES256" as const, privateKey, jwk: publicKey.export({ format: "jwk" }) };
};
const mangled = (jwt: string) => `${jwt.slice(0, -9)}${jwt.at(-9) === "A" ? "B" : "A"}${jwt.slice(-8)}`;
const unsigned = (jwt: string) => `${jwt.slice(0, jwt.lastIndexOf(".") + 1)}`;
const withSecret = () => {
  const key = deviceKey();
  return { ...key, jwk: key.privateKey.export({ format: "jwk" }) };
};

describe("a registration", () => {
  test.each<[string, (victim: Victim) => string, string]>([
    ["with a forged signature", ({ device, challenge }) => mangled(registration(device.key, challenge)), "forged"],
    [
      "signed by another key than it brings",
      ({ device, challenge }) => proof(deviceKey(), challenge, { jwk: device.key.jwk }),
      "forged",
    ],
    ["without a signature", ({ device, challenge }) => unsigned(registration(device.key, challenge)), "malformed"],
    ["without its key", ({ device, challenge }) => proof(device.key, challenge), "bad_key"],
    [
      "of another type",
      ({ device, challenge }) => proof(device.key, challenge, { jwk: device.key.jwk, typ: "jwt" }),
      "wrong_type",
    ],
    [
      "of no type",
      ({ device, challenge }) => proof(device.key, challenge, { jwk: device.key.jwk, typ: undefined }),
      "wrong_type",
    ],
    ["by RSA with 1,024 bits", ({ challenge }) => registration(rsa(1024), challenge), "bad_key"],
    ["by another curve", ({ challenge }) => registration(p384(), challenge), "bad_key"],
    ["that brings its private key", ({ challenge }) => registration(withSecret(), challenge), "bad_key"],
    [
      "with alg none",
      ({ device, challenge }) => proof(device.key, challenge, { alg: "none", jwk: device.key.jwk }),
      "wrong_algorithm",
    ],
    [
      "with alg HS256",
      ({ device, challenge }) => proof(device.key, challenge, { alg: "HS256", jwk: device.key.jwk }),
      "wrong_algorithm",
    ],
    [
      "with the alg of another kind of key",
      ({ device, challenge }) => proof(device.key, challenge, { alg: "RS256", jwk: device.key.jwk }),
      "bad_key",
    ],
    [
      "with crit",
      ({ device, challenge }) => proof(device.key, challenge, { jwk: device.key.jwk, crit: ["x"] }),
      "malformed",
    ],
    ["without a challenge", ({ device }) => proof(device.key, "", { jwk: device.key.jwk }), "challenge_malformed"],
    [
      "of a challenge that nobody issued",
      ({ device }) => registration(device.key, "A".repeat(92)),
      "challenge_malformed",
    ],
    [
      "of a mangled challenge",
      ({ device, challenge }) => registration(device.key, mangled(challenge)),
      "challenge_forged",
    ],
    [
      "twice in one header",
      ({ device, challenge }) => `${registration(device.key, challenge)}, ${registration(device.key, challenge)}`,
      "malformed",
    ],
    [
      "of 6,000 characters",
      ({ device, challenge }) => proof(device.key, challenge, { jwk: device.key.jwk }, { x: "x".repeat(4000) }),
      "malformed",
    ],
    ["that is no JWT", () => "%%%", "malformed"],
  ])("%s is refused", async (_, jwtOf, reason) => {
    const victim = await unbound();
    await expectRefused(REGISTER, victim, jwtOf(victim), reason);
  });

  test("of the challenge of another session is refused", async () => {
    const [victim, other] = [await unbound(), await unbound()];
    await expectRefused(REGISTER, victim, registration(victim.device.key, other.challenge), "challenge_other_session");
  });

  test("of another session cannot be replayed", async () => {
    const [victim, other] = [await unbound(), await unbound()];
    const jwt = registration(other.device.key, other.challenge);
    await expectRefused(REGISTER, victim, jwt, "challenge_other_session");
  });

  test.each([
    ["no cookie", "", 401],
    ["a forged cookie", `refresh_token=${"A".repeat(96)}`, 401],
    ["two different cookies", "refresh_token=a; refresh_token=b", 401],
  ])("with %s is refused, however often, and never with 429", async (_, cookie, status) => {
    const { challenge } = await unbound();
    for (let at = 0; at < 20; at++) {
      const response = await new Device(service.publicUrl, "").send(REGISTER, {
        cookie,
        "secure-session-response": registration(deviceKey(), challenge),
      });
      expect(response.status).toBe(status);
      expect(response.headers.getSetCookie()).toEqual([]);
    }
  });
});

describe("a renewal", () => {
  test.each<[string, "ES256" | "RS256", (victim: Victim) => string, string]>([
    ["by another key", "ES256", ({ challenge }) => proof(deviceKey(), challenge), "forged"],
    [
      "by another key that it brings along",
      "ES256",
      ({ challenge }) => registration(deviceKey(), challenge),
      "other_key",
    ],
    [
      "by RSA for a session on P-256",
      "ES256",
      ({ challenge }) => proof(deviceKey("RS256"), challenge),
      "wrong_algorithm",
    ],
    ["by P-256 for a session on RSA", "RS256", ({ challenge }) => proof(deviceKey(), challenge), "wrong_algorithm"],
    [
      "by HMAC with the public key as its secret",
      "RS256",
      ({ device, challenge }) => proof(device.key, challenge, { alg: "HS256" }),
      "wrong_algorithm",
    ],
    ["with a forged signature", "RS256", ({ device, challenge }) => mangled(proof(device.key, challenge)), "forged"],
    [
      "of another type",
      "ES256",
      ({ device, challenge }) => proof(device.key, challenge, { typ: "at+jwt" }),
      "wrong_type",
    ],
    [
      "of a mangled challenge",
      "ES256",
      ({ device, challenge }) => proof(device.key, mangled(challenge)),
      "challenge_forged",
    ],
  ])("%s is refused", async (_, alg, jwtOf, reason) => {
    const victim = await bound(alg);
    await expectRefused(RENEW, victim, jwtOf(victim), reason);
  });

  test("of the challenge of another session is refused", async () => {
    const [victim, other] = [await bound(), await bound()];
    await expectRefused(RENEW, victim, proof(victim.device.key, other.challenge), "challenge_other_session");
  });

  test("is no rate-limited credential: bad ones in any number get 403", async () => {
    const { device } = await bound();
    const statuses = new Set<number>();
    for (let at = 0; at < 50; at++) {
      statuses.add((await device.send(RENEW, { "secure-session-response": "x.y.z" })).status);
    }
    expect([...statuses]).toEqual([403]);
  });
});

describe("a device cookie", () => {
  test.each<[string, (victim: Victim, other: Victim) => string]>([
    ["of another session", (_, other) => other.device.jar.get("refresh_token_device") ?? ""],
    ["that is mangled", ({ device }) => mangled(device.jar.get("refresh_token_device") ?? "")],
    ["that is the mark", ({ device }) => device.jar.get("refresh_token_device_mark") ?? ""],
    ["that is a challenge", ({ challenge }) => challenge],
    ["that is a refresh token", ({ device }) => device.jar.get("refresh_token") ?? ""],
    ["that is empty", () => ""],
    ["that is no text of ours", () => "%00%ff"],
  ])("%s is refused, and the session goes on", async (_, choose) => {
    const [victim, other] = [await bound(), await bound()];
    const thief = victim.device.copied();
    thief.jar.set("refresh_token_device", choose(victim, other));
    expect((await thief.refresh()).status).toBe(401);
    expect((await victim.device.refresh()).status).toBe(200);
  });

  test("that a sibling domain has planted beside the real one changes nothing", async () => {
    const { device } = await bound();
    const own = [...device.jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const planted = "refresh_token_device=x; refresh_token_device_mark=y";
    const response = await device.send(REFRESH, { cookie: `${planted}; ${own}` });
    expect(response.status).toBe(200);
  });
});

test("headers of any kind and size get no 5xx, and cost no session", async () => {
  const { device, sid } = await bound();
  const nonsense = ["", ",", ";", '"', "(", "unreachable", `unreachable;session_identifier=${sid}`, "x".repeat(9_000)];
  for (const name of ["secure-session-skipped", "sec-secure-session-id", "secure-session-response"]) {
    for (const value of nonsense) {
      for (const path of [RENEW, REGISTER]) {
        const { status } = await device.copied().send(path, { [name]: value });
        expect([200, 403], `${path} ${name}: ${value.slice(0, 40)}`).toContain(status);
      }
      expect((await device.refresh({ [name]: value })).status).toBe(200);
    }
  }
  expect((await device.send(RENEW, { "secure-session-response": "x".repeat(40_000) })).status).toBe(431);
  expect((await device.refresh()).status).toBe(200);
});
