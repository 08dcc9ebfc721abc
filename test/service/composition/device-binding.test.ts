/** Device binding over the real HTTP API: the whole protocol, and what it protects from. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DeviceBindingPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import {
  BOUND,
  challengeIn,
  challengeOf,
  Device,
  deviceKey,
  offerIn,
  REGISTER,
  RENEW,
  registration,
} from "../../support/device.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, waitFor, withKeys } from "../../support/service.ts";
import { admin, bearer, logIn, message, openAdmin } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

let service: Service;
beforeAll(async () => {
  service = await startService({
    ...BOUND,
    LOG_LEVEL: "debug",
    REUSE_INTERVAL: "0",
    DEVICE_SESSION_TTL: "1h",
    ISSUER: "https://auth.example",
  });
});
afterAll(() => service.stop());

async function newDevice(): Promise<Device> {
  const { refreshToken } = await logIn(service);
  return new Device(service.publicUrl, refreshToken);
}

const claimsOf = async (response: Response) => {
  const { data } = (await response.json()) as { data: { accessToken: string } };
  return JSON.parse(Buffer.from(data.accessToken.split(".")[1] ?? "", "base64url").toString());
};

// This test reads log lines. It comes first, because the log accepts only ten lines of a kind per second, which later tests use up.
test("every step is recorded, without a token", async () => {
  const user = await logIn(service);
  const { sid, subject } = user;
  const device = new Device(service.publicUrl, user.refreshToken);
  const next = challengeIn(await device.bind()) ?? "";
  await device.renew(next);
  await device.copied().register(next);
  await device.copied().renew(next);
  const thief = device.copied();
  thief.forgetDeviceCookie();
  await thief.refresh();
  await thief.refresh({ "secure-session-skipped": `quota_exceeded;session_identifier="${sid}"` });
  await openAdmin(service).call(admin.unbindDevice, { sessionId: sid }, bearer(service.adminToken));
  const lines = () =>
    service
      .stderr()
      .split("\n")
      .filter((line) => line.includes(sid) && line.includes('"event":"device_'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  await waitFor(service, () => lines().find(({ event }) => event === "device_unbound"));
  const key = { algorithm: "ES256", thumbprint: expect.stringMatching(/^[\w-]{43}$/) };
  const address = "192.0.2.7";
  expect(lines()).toMatchObject([
    { event: "device_registered", level: "info", subject, address, ...key },
    { event: "device_bound", level: "info", subject, address, ...key },
    { event: "device_renewed", level: "debug", subject, address },
    { event: "device_key_refused", level: "warn", reason: "other_key", thumbprint: key.thumbprint, address },
    { event: "device_proof_refused", level: "warn", operation: "RenewDevice", reason: "forged", address },
    { event: "device_proof_missing", level: "warn", subject, address },
    { event: "device_renewal_skipped", level: "info", subject, address },
    { event: "device_unbound", level: "warn", subject, by: expect.any(String) },
  ]);
  for (const value of device.jar.values()) expect(service.stderr()).not.toContain(value);
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
  for (const name of ["registered", "bound", "renewed", "proof_missing", "renewal_skipped", "unbound"]) {
    expect(metrics).toMatch(new RegExp(`^session_device_${name}_total [1-9]`, "m"));
  }
  expect(metrics).toMatch(/^session_device_refused_total\{operation="RegisterDevice",reason="other_key"\} [1-9]/m);
  expect(metrics).toMatch(/^session_device_refused_total\{operation="RenewDevice",reason="forged"\} [1-9]/m);
});

describe("the protocol", () => {
  test("a refresh of a session without a key offers to register one", async () => {
    const device = await newDevice();
    const response = await device.refresh();
    expect(response.headers.get("secure-session-registration")).toMatch(
      /^\(ES256 RS256\);path="\/v1\/auth\/device";challenge="[\w-]{92}"$/,
    );
  });

  test("CreateSession returns the same offer for the login page", async () => {
    const { refreshToken, secureSessionRegistration } = await logIn(service);
    const device = new Device(service.publicUrl, refreshToken);
    expect((await device.register(challengeOf(secureSessionRegistration) ?? "")).status).toBe(200);
  });

  test("the response to a registration has the form of the specification, and sets the device cookies", async () => {
    const device = await newDevice();
    const response = await device.register(offerIn(await device.refresh()) ?? "");
    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("content-type")).toBe("application/json");
    const attributes = "Path=/v1/auth; HttpOnly; Secure; SameSite=Lax";
    const [cookie = "", mark = ""] = response.headers.getSetCookie();
    expect(cookie).toMatch(new RegExp(`^refresh_token_device=[\\w-]{124}; ${attributes}; Max-Age=3570$`));
    expect(mark).toMatch(new RegExp(`^refresh_token_device_mark=[\\w-]{124}; ${attributes}; Max-Age=\\d{7}$`));
    const body = await response.json();
    expect(body).toEqual({
      session_identifier: expect.stringMatching(/^[\w-]{23}$/),
      refresh_url: RENEW,
      scope: {
        origin: device.url.replace("http:", "https:"),
        include_site: false,
        scope_specification: [
          { type: "exclude", domain: "*", path: "/" },
          { type: "include", domain: "*", path: "/v1/auth/refresh" },
          { type: "include", domain: "*", path: "/auth.v1.SessionService/Refresh" },
        ],
      },
      credentials: [{ type: "cookie", name: "refresh_token_device", attributes }],
      allowed_refresh_initiators: [],
    });
  });

  test("the session is bound with the first use of its key, and the access token says so", async () => {
    const device = await newDevice();
    const before = await device.refresh();
    await device.register(offerIn(before) ?? "");
    const first = await device.refresh();
    expect((await claimsOf(before)).device_bound).toBeUndefined();
    expect((await claimsOf(first)).device_bound).toBe(true);
    expect(first.headers.get("secure-session-registration")).toBeNull();
  });

  test("a renewal without a proof gets a challenge, and one with a proof of it a device cookie and the next challenge", async () => {
    const device = await newDevice();
    await device.bind();
    device.forgetDeviceCookie();
    const asked = await device.send(RENEW);
    expect(asked.status).toBe(403);
    const renewed = await device.renew(challengeIn(asked) ?? "");
    expect(renewed.status).toBe(200);
    expect(device.jar.has("refresh_token_device")).toBe(true);
    expect(await renewed.json()).toMatchObject({ session_identifier: expect.any(String), refresh_url: RENEW });
    expect((await device.refresh()).status).toBe(200);
    expect((await device.renew(challengeIn(renewed) ?? "")).status).toBe(200);
  });

  test("a renewal of a session that has ended, is not bound or is another one ends it in the browser", async () => {
    const unbound = await newDevice();
    const challenge = offerIn(await unbound.refresh()) ?? "";
    const bound = await newDevice();
    const next = challengeIn(await bound.bind()) ?? "";
    const other = await bound.send(RENEW, { "sec-secure-session-id": "A".repeat(23) });
    const nobody = await new Device(service.publicUrl, "").send(RENEW);
    await bound.copied().send("/v1/auth/logout");
    const asked = await unbound.send(RENEW); // A request for a renewal without a proof, as browsers send it first.
    for (const response of [await unbound.renew(challenge), await bound.renew(next), other, nobody, asked]) {
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ continue: false });
      expect(response.headers.getSetCookie()).toEqual([]);
    }
  });

  test("a renewal with two refresh tokens, one of which was planted, is to be tried again, and nothing ends", async () => {
    const device = await newDevice();
    const next = challengeIn(await device.bind()) ?? "";
    const { refreshToken: planted } = await logIn(service);
    const both = `refresh_token=${device.jar.get("refresh_token")}; refresh_token=${planted}`;
    expect((await device.send(RENEW, { cookie: both })).status).toBe(503);
    expect((await device.renew(next)).status).toBe(200);
  });

  test("a browser that could not renew is to try again, and nothing ends", async () => {
    const device = await newDevice();
    const { session_identifier: sid } = (await (await device.bind()).json()) as { session_identifier: string };
    device.forgetDeviceCookie();
    const skipped = (id: string) => ({ "secure-session-skipped": `unreachable;session_identifier="${id}"` });
    const response = await device.refresh(skipped(sid));
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(response.headers.getSetCookie()).toEqual([]);
    expect((await device.refresh(skipped("A".repeat(23)))).status).toBe(401);
    await device.renew(challengeIn(await device.send(RENEW)) ?? "");
    expect((await device.refresh()).status).toBe(200);
  });

  test("RSA keys bind as well", async () => {
    const { refreshToken } = await logIn(service);
    const device = new Device(service.publicUrl, refreshToken, deviceKey("RS256"));
    const bound = await device.bind();
    device.forgetDeviceCookie();
    expect((await device.renew(challengeIn(bound) ?? "")).status).toBe(200);
    expect((await device.refresh()).status).toBe(200);
  });
});

describe("a copied profile", () => {
  test("without a fresh device cookie is refused, and the first browser goes on", async () => {
    const device = await newDevice();
    await device.bind();
    const thief = device.copied();
    thief.forgetDeviceCookie();
    for (let at = 0; at < 3; at++) {
      const response = await thief.refresh();
      expect(response.status).toBe(401);
      expect(((await response.json()) as { error: { code: string } }).error.code).toBe("E001_AUTH_FAILURE");
    }
    expect((await device.refresh()).status).toBe(200);
  });

  test("cannot renew, nor register a key of its own", async () => {
    const device = await newDevice();
    const challenge = challengeIn(await device.bind()) ?? "";
    const thief = device.copied();
    expect((await thief.renew(challenge)).status).toBe(403);
    expect((await thief.register(challenge)).status).toBe(403);
    expect((await device.refresh()).status).toBe(200);
  });

  test("from before the binding, without any device cookie, shows two holders: the session ends", async () => {
    const device = await newDevice();
    const thief = device.copied();
    await device.bind();
    expect((await thief.refresh()).status).toBe(401);
    expect((await device.refresh()).status).toBe(401);
  });

  test("that binds first is detected by the victim's next refresh", async () => {
    const victim = await newDevice();
    const thief = victim.copied();
    const offer = offerIn(await thief.refresh()) ?? "";
    await thief.register(offer);
    await thief.refresh();
    expect((await victim.refresh()).status).toBe(401);
    expect((await thief.refresh()).status).toBe(401);
  });
});

test("the routes have no rate limit, and a doubled proof is none", async () => {
  const device = await newDevice();
  const challenge = offerIn(await device.refresh()) ?? "";
  const jwt = registration(device.key, challenge);
  const doubled = await device.send(REGISTER, { "secure-session-response": `${jwt}, ${jwt}` });
  expect(doubled.status).toBe(403);
  const nobody = new Device(service.publicUrl, "nonsense");
  const statuses = new Set<number>();
  for (let at = 0; at < 1_100; at++) statuses.add((await nobody.send(REGISTER)).status);
  expect([...statuses]).toEqual([401]);
});

/**
 * Returns a copy of a browser with the same cookies, but without the prefix `__Host-` in their names, as an earlier deployment set them.
 */
function withPlainNames({ url, jar, key }: Device): Device {
  const device = new Device(url, "", key);
  for (const [name, value] of jar) device.jar.set(name.replace("__Host-", ""), value);
  return device;
}

describe("what callers see of it", () => {
  test("lists, the admin API and introspection say whether a session is bound", async () => {
    const user = await logIn(service);
    const device = new Device(service.publicUrl, user.refreshToken);
    const own = async () => {
      const headers = { authorization: `Bearer ${user.accessToken}` };
      const response = await fetch(`${service.publicUrl}/v1/auth/sessions`, { headers });
      return ((await response.json()) as { data: { sessions: { deviceBound: boolean }[] } }).data.sessions;
    };
    const get = async () => {
      const response = await openAdmin(service).call(
        admin.getSession,
        { sessionId: user.sid },
        bearer(service.adminToken),
      );
      return message(response).session;
    };
    expect(await own()).toMatchObject([{ deviceBound: false }]);
    expect((await get())?.deviceBinding).toBeUndefined();
    await device.register(challengeOf(user.secureSessionRegistration) ?? "");
    expect(await own()).toMatchObject([{ deviceBound: false }]);
    const thumbprint = expect.stringMatching(/^[\w-]{43}$/);
    expect((await get())?.deviceBinding).toMatchObject({ algorithm: "ES256", thumbprint, bound: false });
    const first = await device.refresh();
    expect(await own()).toMatchObject([{ deviceBound: true }]);
    expect((await get())?.deviceBinding).toMatchObject({ algorithm: "ES256", thumbprint, bound: true });
    const { data } = (await first.json()) as { data: { accessToken: string } };
    for (const token of [data.accessToken, device.jar.get("refresh_token") ?? ""]) {
      const response = await openAdmin(service).call(admin.introspectToken, { token }, bearer(service.adminToken));
      expect(message(response)).toMatchObject({ active: true, claims: { device_bound: true } });
    }
  });

  test("a session may not bring the claim itself", async () => {
    await expect(logIn(service, { claims: { device_bound: true } })).rejects.toThrow("claims.device_bound");
  });

  test("support staff takes a key away: the session goes on, and its browser may register another", async () => {
    const user = await logIn(service);
    const device = new Device(service.publicUrl, user.refreshToken);
    const challenge = challengeIn(await device.bind()) ?? "";
    const unbind = () =>
      openAdmin(service).call(admin.unbindDevice, { sessionId: user.sid }, bearer(service.adminToken));
    for (let at = 0; at < 2; at++) expect(message(await unbind()).session?.deviceBinding).toBeUndefined();
    expect(await (await device.renew(challenge)).json()).toMatchObject({ continue: false });
    device.forgetDeviceCookie();
    device.key = deviceKey();
    await device.bind();
    expect((await device.refresh()).status).toBe(200);
    await device.send("/v1/auth/logout");
    expect(await unbind()).toMatchObject({ ok: false, code: "E404_NOT_FOUND" });
  });

  test("a logout clears the device cookies", async () => {
    const device = await newDevice();
    await device.bind();
    expect((await device.send("/v1/auth/logout")).status).toBe(200);
    expect([...device.jar.keys()]).toEqual([]);
  });
});

describe("with other settings", () => {
  test("whoever has copied the cookies uses up nothing of what the holder of the key may refresh", async () => {
    const limited = await startService({ ...BOUND, REUSE_INTERVAL: "0", RATE_LIMIT_REFRESH: "8/10m" });
    const device = new Device(limited.publicUrl, (await logIn(limited)).refreshToken);
    await device.bind();
    const thief = device.copied();
    thief.forgetDeviceCookie();
    const statuses: number[] = [];
    while (statuses.at(-1) !== 429 && statuses.length < 20) statuses.push((await thief.refresh()).status);
    expect(statuses.at(-1)).toBe(429);
    expect((await device.refresh()).status).toBe(200);
    await limited.stop();
  });

  test("while a deployment moves to a prefixed name, device cookies of the plain one are read and removed too", async () => {
    const moving = await startService({
      ...BOUND,
      REUSE_INTERVAL: "0",
      COOKIE_NAME: "__Host-refresh_token",
      COOKIE_MIGRATE_UNTIL: `${new Date().getUTCFullYear() + 2}-01-31`,
    });
    const device = new Device(moving.publicUrl, (await logIn(moving)).refreshToken);
    await device.bind();
    const before = withPlainNames(device);
    const response = await before.refresh();
    expect(response.status).toBe(200);
    expect((await claimsOf(response)).device_bound).toBe(true);
    expect(before.jar.has("__Host-refresh_token")).toBe(true);
    expect((await before.send("/v1/auth/logout")).status).toBe(200);
    expect([...before.jar.keys()]).toEqual([]);
    await moving.stop();
  });

  test("a session that requires a key is refused without one, offered to register, and served with it", async () => {
    const strict = await startService({ ...BOUND, REUSE_INTERVAL: "0", DEVICE_SESSION_TTL: "1s" });
    const { refreshToken } = await logIn(strict, { deviceBindingPolicy: DeviceBindingPolicy.REQUIRED });
    const device = new Device(strict.publicUrl, refreshToken);
    let response = await device.refresh();
    await until(async () => {
      response = await device.refresh();
      expect(response.status).toBe(401);
    });
    expect((await device.register(offerIn(response) ?? "")).status).toBe(200);
    expect((await device.refresh()).status).toBe(200);
    await strict.stop();
  });
});

describe("an instance that is switched off", () => {
  let redis: RedisServer;
  let on: Service;
  let off: Service;
  beforeAll(async () => {
    redis = await startRedis();
    const shared = {
      ...{ DATA_DIR: withKeys(), REDIS_URL: redis.url, ADMIN_TOKENS: "admin".repeat(8), TRUST_PROXY: "1" },
      ...{ REUSE_INTERVAL: "0", DEVICE_SESSION_TTL: "1h", ISSUER: "https://auth.example" },
    };
    on = await startService({ ...shared, ...BOUND });
    off = await startService(shared);
    // On a busy machine the service may refuse the first request because it waited for too long.
    for (const service of [on, off]) {
      await until(async () => expect((await (await newDeviceAt(service)).refresh()).status).toBe(200));
    }
  });
  afterAll(async () => {
    await on?.stop();
    await off?.stop();
    await redis?.stop();
  });

  const newDeviceAt = async ({ publicUrl }: Service) => new Device(publicUrl, (await logIn(on)).refreshToken);
  const at = (device: Device, { publicUrl }: Service) => Object.assign(device, { url: publicUrl });

  test("asks for the key of a bound session as the others do", async () => {
    const device = await newDeviceAt(on);
    await device.bind();
    const thief = at(device.copied(), off);
    thief.forgetDeviceCookie();
    expect((await thief.refresh()).status).toBe(401);
    const response = await at(device, off).refresh();
    expect(response.status).toBe(200);
    expect((await claimsOf(response)).device_bound).toBe(true);
  });

  test("detects two holders as the others do", async () => {
    const device = await newDeviceAt(on);
    const thief = at(device.copied(), off);
    await device.bind();
    expect((await thief.refresh()).status).toBe(401);
    expect((await device.refresh()).status).toBe(401);
  });

  test("unbinds nobody: it renews with a proof, and without one asks for it", async () => {
    const device = await newDeviceAt(on);
    await device.bind();
    const thief = at(device.copied(), off);
    const asked = await thief.send(RENEW);
    expect(asked.status).toBe(403);
    expect((await thief.renew(challengeIn(asked) ?? "")).status).toBe(403);
    device.forgetDeviceCookie();
    const own = challengeIn(await at(device, off).send(RENEW)) ?? "";
    expect((await device.renew(own)).status).toBe(200);
    expect((await device.refresh()).status).toBe(200);
    expect((await at(device, on).refresh()).status).toBe(200);
  });

  test("offers no new binding, and takes one that another instance has offered", async () => {
    const device = await newDeviceAt(off);
    const { secureSessionRegistration } = await logIn(off);
    expect(secureSessionRegistration).toBe("");
    expect(offerIn(await device.refresh())).toBeUndefined();
    expect((await device.send(REGISTER)).status).toBe(404);
    const refused = await device.register("no challenge of ours");
    expect([refused.status, challengeIn(refused)]).toEqual([404, undefined]);
    await expect(logIn(off, { deviceBindingPolicy: DeviceBindingPolicy.REQUIRED })).rejects.toThrow("DEVICE_BINDING");
    const offer = offerIn(await at(device, on).refresh()) ?? "";
    expect((await at(device, off).register(offer)).status).toBe(200);
    expect((await claimsOf(await device.refresh())).device_bound).toBe(true);
  });

  test("refuses a session that requires a key and has none, without an offer", async () => {
    const { refreshToken } = await logIn(on, { deviceBindingPolicy: DeviceBindingPolicy.REQUIRED });
    const strict = await off.restart({ DEVICE_SESSION_TTL: "1s" });
    const device = new Device(strict.publicUrl, refreshToken);
    const refused = await until(async () => {
      const response = await device.refresh();
      expect(response.status).toBe(401);
      return response;
    });
    expect(offerIn(refused)).toBeUndefined();
    await strict.stop();
  });

  test("clears the device cookies at a logout where there are any", async () => {
    const bound = await newDeviceAt(on);
    await bound.bind();
    const other = await startService({ TRUST_PROXY: "1" });
    const plain = new Device(other.publicUrl, (await logIn(other)).refreshToken);
    expect((await plain.send("/v1/auth/logout")).headers.getSetCookie()).toHaveLength(1);
    at(bound, other);
    bound.jar.set("refresh_token", (await logIn(other)).refreshToken);
    expect((await bound.send("/v1/auth/logout")).status).toBe(200);
    expect([...bound.jar.keys()]).toEqual([]);
    await other.stop();
  });
});
