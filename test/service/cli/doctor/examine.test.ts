/** The findings of the doctor. Each test configures a real fault. */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { examine } from "../../../../src/service/cli/doctor/examine.ts";
import type { Finding } from "../../../../src/service/cli/doctor/finding.ts";
import { clientAuthority, type Pem, selfSigned } from "../../../support/certificate.ts";
import { freePort } from "../../../support/free-port.ts";
import { compiled, PROGRAM } from "../../../support/program.ts";
import { serverVersion, startRedis, startRedisCluster, startReplica, startSentinel } from "../../../support/redis.ts";
import { pemOf } from "../../../support/rsa-key.ts";
import { scratch, startService, withKeys } from "../../../support/service.ts";
import { open as openStore } from "../../../support/store/redis.ts";
import { until } from "../../../support/until.ts";
import { commandHere } from "../command.ts";

type Environment = Readonly<Record<string, string>>;

/** The environment of the tests. Nothing of this machine is examined unless a test names it. */
const QUIET = { PORT: "0", ADMIN_PORT: "0" };
const HTTPS = { ISSUER: "https://auth.example.invalid", TRUST_PROXY: "1" };

async function findings(env: Environment, clock: () => number = Date.now): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  const own = env.DATA_DIR === undefined ? { DATA_DIR: join(scratch(), "data") } : {};
  for await (const finding of examine({ env: { ...QUIET, ...own, ...env }, clock })) found.push(finding);
  return found;
}

/** Returns the findings that report a problem, except those that are only caused by the lack of a network. */
async function problems(env: Environment, clock?: () => number): Promise<readonly string[]> {
  return (await findings(env, clock))
    .filter(({ level, found }) => level !== "ok" && !found.includes("example.invalid/.well-known"))
    .map(({ level, check, found }) => `${level} ${check}: ${found}`);
}

const remediesOf = async (env: Environment) =>
  (await findings(env)).flatMap(({ level, remedy }) => (level === "ok" ? [] : [remedy]));

test("a fresh installation has no problem", async () => {
  expect(await problems({})).toEqual([]);
});

test("keys of security event tokens are RSA, and for the service alone", async () => {
  const SIGNALS_RSA_KEY_FILE = join(scratch(), "signals.pem");
  const env = { SIGNALS: "on", SIGNALS_RSA_KEY_FILE };
  writeFileSync(SIGNALS_RSA_KEY_FILE, pemOf("pkcs8"), { mode: 0o600 });
  expect(await problems(env)).toEqual([]);
  chmodSync(SIGNALS_RSA_KEY_FILE, 0o644);
  const name = `fault keys: SIGNALS_RSA_KEY_FILE: ${SIGNALS_RSA_KEY_FILE}`;
  expect(await problems(env)).toEqual([expect.stringContaining(`${name}: has mode 644`)]);
  chmodSync(SIGNALS_RSA_KEY_FILE, 0o600);
  writeFileSync(SIGNALS_RSA_KEY_FILE, pemOf("pkcs8", 1024));
  expect(await problems(env)).toEqual([
    `${name}: holds a key that is not RSA of 2048 to 4096 bits with the exponent 65537`,
  ]);
});

test("what is in order is reported as well, check by check", async () => {
  const DATA_DIR = join(scratch(), "data");
  const orderly = async () =>
    (await findings({ DATA_DIR })).map(({ level, check, found }) => `${level} ${check}: ${found}`);
  expect(await orderly()).toEqual([
    "ok configuration: no fault; variables set: 3",
    "ok browsers: browsers keep the cookie, and send it from the allowed origins",
    `ok files: DATA_DIR: ${DATA_DIR} is not there yet; the first start makes it`,
    `ok keys: there is no key ring at ${DATA_DIR}/keys.json yet; the first start makes one`,
    "ok admin tokens: the one in DATA_DIR",
    `ok embedded store: there is no ${DATA_DIR}/sessions.db yet; the first start makes it`,
  ]);
  await commandHere(["keys", "create"], { env: { DATA_DIR } });
  expect((await orderly()).slice(2, 4)).toEqual([
    `ok files: DATA_DIR: ${DATA_DIR} is for its owner alone`,
    `ok keys: the keys of ${DATA_DIR}/keys.json are in use for less than 90 days`,
  ]);
});

test("every finding that is not in order says what to do", async () => {
  const remedies = await remediesOf({ ALOWED_ORIGIN: "1", COOKIE_SAMESITE: "None" });
  expect(remedies).toHaveLength(2);
  expect(remedies.every((remedy) => remedy !== undefined && remedy !== "")).toBe(true);
});

describe("the configuration", () => {
  test("every fault is reported, and names that look misspelt beside them", async () => {
    expect(await problems({ MAX_BODY_BYTES: "many", ACCESS_TOKEN_TLL: "5m" })).toEqual([
      "fault configuration: MAX_BODY_BYTES is not a whole number",
      "warning configuration: ACCESS_TOKEN_TLL is not a variable of this service: is ACCESS_TOKEN_TTL meant?",
    ]);
  });
});

describe("files", () => {
  test("a data directory that others can read is a fault, with the command that helps", async () => {
    const DATA_DIR = scratch();
    chmodSync(DATA_DIR, 0o755);
    expect(await problems({ DATA_DIR })).toEqual([
      `fault files: DATA_DIR: ${DATA_DIR} has mode 755, which lets others read or change it`,
    ]);
    expect(await remediesOf({ DATA_DIR })).toEqual([`chmod 700 ${DATA_DIR}`]);
    writeFileSync(join(DATA_DIR, "of-others"), "");
    expect(await remediesOf({ DATA_DIR })).toEqual(["name a directory in it"]);
  });

  test("a broken or writable ADMIN_TOKENS_FILE is a fault", async () => {
    const ADMIN_TOKENS_FILE = join(scratch(), "admins.json");
    writeFileSync(ADMIN_TOKENS_FILE, "{");
    expect(await problems({ ADMIN_TOKENS_FILE })).toEqual([
      expect.stringMatching(/^fault admin tokens: .*admins\.json/),
    ]);
    writeFileSync(ADMIN_TOKENS_FILE, '{"admins":[]}');
    chmodSync(ADMIN_TOKENS_FILE, 0o666);
    expect(await problems({ ADMIN_TOKENS_FILE })).toEqual([expect.stringContaining("mode 666")]);
  });

  test("a broken CONSOLE_PROVIDER_FILE is a fault", async () => {
    const CONSOLE_PROVIDER_FILE = join(scratch(), "console.json");
    const grant = { require: { groups: "support" }, scopes: ["sessions:read"] };
    const provider = { name: "staff", issuer: "https://login.example.com", client_id: "console", grants: [grant] };
    writeFileSync(CONSOLE_PROVIDER_FILE, JSON.stringify(provider));
    expect(await problems({ CONSOLE_PROVIDER_FILE })).toEqual([]);
    writeFileSync(CONSOLE_PROVIDER_FILE, JSON.stringify({ ...provider, grants: [] }));
    expect(await problems({ CONSOLE_PROVIDER_FILE })).toEqual([
      expect.stringContaining(`fault files: CONSOLE_PROVIDER_FILE: ${CONSOLE_PROVIDER_FILE}: grants: is empty`),
    ]);
  });

  test("a broken SIGN_IN_PROVIDERS_FILE is a fault", async () => {
    const SIGN_IN_PROVIDERS_FILE = join(scratch(), "providers.json");
    const provider = { name: "staff", issuer: "https://login.example.com", client_id: "app" };
    writeFileSync(SIGN_IN_PROVIDERS_FILE, JSON.stringify({ providers: [provider] }));
    expect(await problems({ SIGN_IN_PROVIDERS_FILE })).toEqual([]);
    writeFileSync(SIGN_IN_PROVIDERS_FILE, JSON.stringify({ providers: [{ ...provider, claims: { sid: "sid" } }] }));
    expect(await problems({ SIGN_IN_PROVIDERS_FILE })).toEqual([
      `fault files: SIGN_IN_PROVIDERS_FILE: ${SIGN_IN_PROVIDERS_FILE}: providers[0].claims.sid: is set by the service`,
    ]);
  });

  test("a broken SESSION_POLICIES_FILE is a fault", async () => {
    const SESSION_POLICIES_FILE = join(scratch(), "policies.json");
    writeFileSync(SESSION_POLICIES_FILE, '{"limits":[]}');
    expect(await problems({ SESSION_POLICIES_FILE })).toEqual([]);
    writeFileSync(SESSION_POLICIES_FILE, '{"limit":[]}');
    expect(await problems({ SESSION_POLICIES_FILE })).toEqual([
      `fault files: SESSION_POLICIES_FILE: ${SESSION_POLICIES_FILE}: the file: "limit" is not known (known: limits)`,
    ]);
  });

  test("a client of the token exchange without a credential is a warning", async () => {
    const directory = scratch();
    const [SESSION_POLICIES_FILE, ADMIN_TOKENS_FILE] = [
      join(directory, "policies.json"),
      join(directory, "admins.json"),
    ];
    const exchange = ["orders", "mail"].map((client_id) => ({
      client_id,
      subject_token_audiences: ["https://api.example"],
    }));
    writeFileSync(SESSION_POLICIES_FILE, JSON.stringify({ token_exchange: exchange }));
    const hash = "a".repeat(64);
    const admins = [
      { name: "orders", hash, scopes: ["tokens:exchange"] },
      { name: "mail", hash: "b".repeat(64), scopes: ["introspect"] },
    ];
    writeFileSync(ADMIN_TOKENS_FILE, JSON.stringify({ admins }));
    expect(await problems({ SESSION_POLICIES_FILE, ADMIN_TOKENS_FILE, OAUTH_ENDPOINTS: "on" })).toEqual([
      "warning files: token_exchange names mail, and no credential of this name has the scope tokens:exchange: it gets 401",
    ]);
  });

  test("an admin API that the network reaches without TLS is a warning", async () => {
    expect(await problems({ ADMIN_HOST: "0.0.0.0" })).toEqual([
      "warning admin tokens: the admin API listens on 0.0.0.0 without TLS: admin tokens cross the network in clear text",
    ]);
  });
});

describe("the key ring", () => {
  const DAY = 86_400_000;
  const file = (directory: string) => join(directory, "keys.json");

  test("is to be rotated when its keys have been in use for long", async () => {
    const KEYS_FILE = file(withKeys());
    expect(await problems({ KEYS_FILE }, () => Date.now() + 89 * DAY)).toEqual([]);
    expect(await problems({ KEYS_FILE }, () => Date.now() + 91 * DAY)).toEqual([
      expect.stringMatching(/^warning keys: the signing key \S+ has been in use for 91 days$/),
      expect.stringMatching(/^warning keys: the mac key \S+ has been in use for 91 days$/),
    ]);
  });

  test("comes from the future where the clock of its keys was ahead", async () => {
    const KEYS_FILE = file(withKeys());
    expect(await problems({ KEYS_FILE }, () => Date.now() - 30_000)).toEqual([]);
    expect(await problems({ KEYS_FILE }, () => Date.now() - 90_000)).toEqual([
      expect.stringMatching(/^warning keys: the signing key \S+ comes from the future$/),
      expect.stringMatching(/^warning keys: the mac key \S+ comes from the future$/),
    ]);
  });

  test("is to be cleared of keys that nobody needs", async () => {
    const KEYS_FILE = file(withKeys());
    await commandHere(["keys", "rotate", "--force"], { env: { KEYS_FILE } });
    const { signing } = JSON.parse(readFileSync(KEYS_FILE, "utf8"));
    const next = signing.find(({ state }: { state: string }) => state === "published").kid;
    await commandHere(["keys", "revoke", next], { env: { KEYS_FILE } }); // Its name stays.
    expect(await problems({ KEYS_FILE }, () => Date.now() + 20 * DAY)).toEqual([
      "warning keys: 1 signing keys are kept that no token needs any more",
      "warning keys: 1 mac keys are kept that no token needs any more",
    ]);
  });

  test("is to have a successor for each key", async () => {
    const KEYS_FILE = file(withKeys());
    const ring = JSON.parse(readFileSync(KEYS_FILE, "utf8"));
    ring.mac = ring.mac.filter(({ state }: { state: string }) => state !== "published");
    writeFileSync(KEYS_FILE, JSON.stringify(ring));
    expect(await problems({ KEYS_FILE })).toEqual(["warning keys: no mac key is published to succeed the one in use"]);
  });

  test("is a fault when it is broken, or open to others", async () => {
    const KEYS_FILE = file(withKeys());
    chmodSync(KEYS_FILE, 0o644);
    expect(await problems({ KEYS_FILE })).toEqual([expect.stringContaining("has mode 644")]);
    chmodSync(KEYS_FILE, 0o600);
    writeFileSync(KEYS_FILE, "{");
    expect(await problems({ KEYS_FILE })).toEqual([`fault keys: key ring ${KEYS_FILE}: not JSON`]);
  });
});

describe("the certificate", () => {
  const write = (pem: { readonly cert: string; readonly key: string }) => {
    const directory = scratch();
    const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(directory, "cert.pem"), join(directory, "key.pem")];
    writeFileSync(TLS_CERT_FILE, pem.cert);
    writeFileSync(TLS_KEY_FILE, pem.key, { mode: 0o600 });
    return { TLS_CERT_FILE, TLS_KEY_FILE };
  };
  const lasting = (days: number) =>
    clientAuthority().issue({ commonName: "a", dns: "auth.example.invalid" }, days * 86_400_000);

  test("is in order for weeks, then to be renewed, then a fault", async () => {
    const env = { ...write(lasting(30)), ISSUER: HTTPS.ISSUER };
    const day = 86_400_000;
    expect(await problems(env)).toEqual([]);
    expect(await problems(env, () => Date.now() + 20 * day)).toEqual([
      expect.stringMatching(/^warning certificate: .* expires on /),
    ]);
    expect(await problems(env, () => Date.now() + 31 * day)).toEqual([
      expect.stringMatching(/^fault certificate: .* expired on /),
    ]);
    expect(await problems(env, () => Date.now() - 30 * day)).toEqual([
      expect.stringMatching(/^fault certificate: .* is not valid yet/),
    ]);
  });

  test("is no better than its chain", async () => {
    const leaf = lasting(30);
    const env = write({ ...leaf, cert: `${leaf.cert}${clientAuthority("old", -86_400_000).cert}` });
    expect(await problems(env)).toEqual([expect.stringMatching(/^fault certificate: TLS_CERT_FILE: .* expired on /)]);
  });

  test("for Redis is looked at, too: of a bundle of authorities, the one that lasts longest", async () => {
    const redis = { REDIS_URL: "rediss://127.0.0.1:1", KEYS_FILE: join(withKeys(), "keys.json") };
    const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key } = write(lasting(5));
    const bundle = [-1, 30].map((days) => clientAuthority("a", days * 86_400_000).cert).join("");
    const { TLS_CERT_FILE: REDIS_TLS_CA_FILE } = write({ cert: bundle, key: "" });
    const env = { ...redis, REDIS_TLS_CERT_FILE: cert, REDIS_TLS_KEY_FILE: key, REDIS_TLS_CA_FILE };
    const about = async (clock?: () => number) =>
      (await problems(env, clock)).filter((line) => line.includes(" certificate: "));
    expect(await about()).toEqual([expect.stringMatching(/^warning certificate: REDIS_TLS_CERT_FILE: .* expires on /)]);
    expect(await about(() => Date.now() + 31 * 86_400_000)).toEqual([
      expect.stringMatching(/^fault certificate: REDIS_TLS_CERT_FILE: .* expired on /),
      expect.stringMatching(/^fault certificate: REDIS_TLS_CA_FILE: .* expired on /),
    ]);
  });

  test("is a fault for another host than that of ISSUER", async () => {
    const env = { ...write(lasting(30)), ISSUER: "https://other.example.invalid" };
    expect(await problems(env)).toEqual([
      expect.stringMatching(/^fault certificate: the certificate is not for other\.example\.invalid/),
    ]);
    expect(await problems({ ...env, TRUST_PROXY: "1" })).toEqual([]);
  });

  test("is a fault with the key of another one", async () => {
    const { TLS_CERT_FILE } = write(lasting(30));
    const { TLS_KEY_FILE } = write(lasting(30));
    expect(await problems({ TLS_CERT_FILE, TLS_KEY_FILE })).toEqual([
      expect.stringContaining("is not the key of the certificate"),
    ]);
    writeFileSync(TLS_CERT_FILE, "nothing");
    expect(await problems({ TLS_CERT_FILE, TLS_KEY_FILE })).toEqual([expect.stringContaining("holds no certificate")]);
  });
});

describe("browsers", () => {
  test.each<[string, Environment, string]>([
    [
      "a Secure cookie without TLS",
      { ISSUER: "http://auth.example.invalid" },
      "fault browsers: ISSUER is http://auth.example.invalid, without TLS",
    ],
    [
      "an insecure cookie with TLS",
      { ...HTTPS, COOKIE_SECURE: "false" },
      "warning browsers: COOKIE_SECURE=false although",
    ],
    [
      "a proxy that is not trusted",
      { ISSUER: HTTPS.ISSUER },
      "fault browsers: ISSUER is https, but the service has no certificate",
    ],
    [
      "a domain of somebody else",
      { ...HTTPS, COOKIE_DOMAIN: "example.org" },
      "fault browsers: COOKIE_DOMAIN is example.org, which",
    ],
    [
      "SameSite=None for nobody",
      { ...HTTPS, COOKIE_SAMESITE: "None" },
      "warning browsers: COOKIE_SAMESITE=None without",
    ],
    [
      "siblings that are allowed and refused",
      { ...HTTPS, ALLOW_SAME_SITE: "false", ALLOWED_ORIGINS: "https://app.example.invalid" },
      "fault browsers: ALLOW_SAME_SITE=false refuses https://app.example.invalid",
    ],
    [
      "an origin on another site",
      { ...HTTPS, ALLOWED_ORIGINS: "https://app.example.org" },
      "warning browsers: ALLOWED_ORIGINS: https://app.example.org can never work",
    ],
  ])("%s", async (_, env, problem) => {
    expect(await problems(env)).toEqual([expect.stringContaining(problem)]);
  });

  test("settings that fit are in order", async () => {
    const env = { ...HTTPS, COOKIE_DOMAIN: ".example.invalid", ALLOWED_ORIGINS: "https://app.example.invalid" };
    expect(await problems(env)).toEqual([]);
  });
});

describe("Redis", () => {
  async function redis(configuration: Readonly<Record<string, string>> = {}, ...args: string[]) {
    const server = await startRedis("--appendonly", "yes", ...args);
    onTestFinished(() => server.stop());
    for (const [name, value] of Object.entries(configuration)) await server.admin.config("SET", name, value);
    return server;
  }
  const on = (REDIS_URL: string, more: Environment = {}) => ({
    ...{ REDIS_URL, KEYS_FILE: join(withKeys(), "keys.json"), ADMIN_TOKENS: "admin".repeat(8) },
    ...more,
  });

  test("that is as it should be has no problem", async () => {
    const { url } = await redis();
    expect(await problems(on(url))).toEqual([]);
    const all = await findings(on(url));
    expect(all.filter(({ check }) => check === "redis").map(({ found }) => found)).toEqual([
      `${new URL(url).host}: ${serverVersion()}, master, no memory limit, append-only file`,
      "the clocks agree",
    ]);
  });

  test("that evicts, or forgets at a restart", async () => {
    const { url } = await redis({ "maxmemory-policy": "allkeys-lru", appendonly: "no" });
    expect(await problems(on(url))).toEqual([
      expect.stringMatching(/^fault redis: \S+ has maxmemory-policy allkeys-lru/),
      expect.stringMatching(/^warning redis: \S+ writes no append-only file/),
    ]);
  });

  test("that the start refuses, or warns of, in the same words", async () => {
    const { admin, url } = await redis({ appendonly: "no" });
    const warned = (await findings(on(url))).find(({ level }) => level === "warning");
    const lines: string[] = [];
    await openStore(url, { log: (level, message) => void lines.push(`${level} ${message}`) });
    expect(lines).toEqual([`warn Redis: the Redis at ${warned?.found}: ${warned?.remedy}`]);
    await admin.config("SET", "maxmemory-policy", "allkeys-lru");
    const refused = (await findings(on(url))).find(({ level }) => level === "fault");
    await expect(openStore(url)).rejects.toThrow(`the Redis at ${refused?.found}: ${refused?.remedy}`);
  });

  test("that has nearly no memory left, or none", async () => {
    const server = await redis();
    // So much that what connections and scripts take does not matter. SET would also leave a buffer of that size with its connection.
    await server.admin.setrange("ballast", 32_000_000, "x");
    const used = Number(/used_memory:(\d+)/.exec(await server.admin.info("memory"))?.[1]);
    await server.admin.config("SET", "maxmemory", String(Math.floor(used * 1.08)));
    const scarce = expect.stringMatching(/^warning redis: \S+ uses \d+ % of its memory limit/);
    const env = on(server.url);
    expect(await problems(env)).toContainEqual(scarce);
    await server.admin.config("SET", "maxmemory", String(Math.floor(used * 0.5)));
    expect(await problems(env)).toEqual([expect.stringMatching(/^fault redis: \S+ takes no writes \(OOM /)]);
    expect(await remediesOf(env)).toEqual(["raise maxmemory (docs/why/capacity.md)"]);
  });

  test("that could not write its last snapshot", async () => {
    const directory = scratch();
    const server = await redis({ save: "3600 1" }, "--dir", directory);
    mkdirSync(join(directory, "dump.rdb")); // A directory occupies the name of the snapshot, so that not even root can write the snapshot.
    await server.admin.set("anything", "1");
    await server.admin.bgsave();
    await until(async () =>
      expect(await /rdb_bgsave_in_progress:0/.test(await server.admin.info("persistence"))).toBe(true),
    );
    expect(await problems(on(server.url))).toEqual([
      expect.stringMatching(/^fault redis: \S+ takes no writes \(MISCONF /),
    ]);
    expect(await remediesOf(on(server.url))).toEqual(["free space on its disk; its log has the reason"]);
    await server.admin.config("SET", "stop-writes-on-bgsave-error", "no");
    expect(await problems(on(server.url))).toEqual([
      expect.stringMatching(/^warning redis: \S+ could not write its last snapshot$/),
    ]);
  });

  test("that denies its user a permission, and what to load", async () => {
    const server = await redis();
    await server.admin.call("ACL", "SETUSER", "poor", "on", ">pw", "~*", "&*", "+@all", "-zadd", "-info", "-time");
    const env = on(server.url.replace("//", "//poor:pw@"));
    expect(await problems(env)).toEqual([
      expect.stringMatching(/^fault redis: \S+ denies the user poor permissions: .*\+info .*\+time .*\+zadd/),
    ]);
    expect(await remediesOf(env)).toEqual(["load the user that `session-service redis-acl` prints"]);
  });

  test("that has renamed commands", async () => {
    const server = await startRedis(
      "--appendonly",
      "yes",
      "--rename-command",
      "ZLEXCOUNT",
      "",
      "--rename-command",
      "INFO",
      "",
    );
    onTestFinished(() => server.stop());
    expect(await problems(on(server.url))).toEqual([
      expect.stringMatching(/^fault redis: \S+ does not know commands: info zlexcount$/),
    ]);
    expect(await remediesOf(on(server.url))).toEqual([expect.stringContaining("rename-command")]);
  });

  test("that refuses the credentials, and whose password is not printed", async () => {
    const server = await redis();
    const all = await findings(on(server.url.replace("//", "//nobody:wrong-secret@")));
    expect(all.filter(({ level }) => level === "fault").map(({ found }) => found)).toEqual([
      expect.stringMatching(/ refuses the user or the password$/),
    ]);
    expect(JSON.stringify(all)).not.toContain("wrong-secret");
  });

  test("whose Sentinels know another name, or refuse the credentials", async () => {
    const sentinel = await startSentinel(await redis());
    onTestFinished(() => sentinel.stop());
    const env = on(`redis+sentinel://127.0.0.1:${sentinel.port}/other`);
    expect(await problems(env)).toEqual([
      expect.stringMatching(/^fault redis: \S+ no Sentinel names the master other: ERR No such master/),
    ]);
    expect(await remediesOf(env)).toEqual(["correct the master's name at the end of REDIS_URL"]);
    const refused = { ...env, REDIS_SENTINEL_USERNAME: "nobody", REDIS_SENTINEL_PASSWORD: "wrong-secret" };
    expect(await problems(refused)).toEqual([expect.stringMatching(/^fault redis: \S+ no Sentinel .*: WRONGPASS/)]);
    expect(await remediesOf(refused)).toEqual([expect.stringContaining("REDIS_SENTINEL_PASSWORD")]);
  });

  describe("over TLS", () => {
    const HOUR = 3_600_000;
    const clients = clientAuthority();
    const directory = scratch();
    const write = (text: string) => {
      const path = join(directory, randomUUID());
      writeFileSync(path, text);
      return path;
    };
    const files = ({ cert, key }: Pem) => ({ REDIS_TLS_CERT_FILE: write(cert), REDIS_TLS_KEY_FILE: write(key) });
    const trusted = (pem: Pem) => ({ REDIS_TLS_CA_FILE: write(pem.cert) });
    const authority = "set REDIS_TLS_CA_FILE to the authority that signed it";
    const client = "set REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE to a certificate that it accepts";
    const refusal = /refuses the certificate of the service, or its absence/;
    const issue = (lifeMs?: number) => clients.issue({ commonName: "session-service" }, lifeMs);

    const expired = /its certificate, or one of its authorities, has expired/;
    const renew = "renew it there, or correct the clock of this machine";
    const early = "correct the clock of this machine, or the certificate";
    const otherHost = [
      /the certificate is for another host/,
      "name the host in REDIS_URL as its certificate does",
    ] as const;
    const withExpired = (own: Pem) => ({ ...trusted(own), ...files(issue(-HOUR)) });
    const withStrange = (own: Pem) => ({ ...trusted(own), ...files(selfSigned()) });
    test.each<[string, Pem, (own: Pem) => Environment, string, RegExp, string]>([
      ["whose certificate has expired", selfSigned({ lifeMs: -HOUR }), trusted, "no", expired, renew],
      ["whose certificate is not valid yet", selfSigned({ ageMs: -HOUR }), trusted, "no", /is not valid yet/, early],
      ["whose certificate names another host", selfSigned({ namesAddress: false }), trusted, "no", ...otherHost],
      ["of an unknown authority", selfSigned(), () => ({}), "no", /the certificate is not accepted/, authority],
      ["that asks for a certificate", selfSigned(), trusted, "yes", refusal, client],
      ["that refuses an expired certificate", selfSigned(), withExpired, "yes", refusal, client],
      ["that refuses the certificate of a stranger", selfSigned(), withStrange, "yes", refusal, client],
    ])("%s", async (_, own, settings, asks, found, remedy) => {
      const tlsPort = `${await freePort()}`;
      const tls = ["--tls-port", tlsPort, "--tls-auth-clients", asks, "--tls-ca-cert-file", write(clients.cert)];
      await redis({}, ...tls, "--tls-cert-file", write(own.cert), "--tls-key-file", write(own.key));
      const all = await findings(on(`rediss://127.0.0.1:${tlsPort}`, settings(own)));
      expect(all.filter(({ level, check }) => level !== "ok" && check === "redis")).toEqual([
        { check: "redis", level: "fault", found: expect.stringMatching(found), remedy },
      ]);
    });
  });

  test("that runs a script of another application without end", async () => {
    const { url, admin } = await redis({ "lua-time-limit": "1" });
    const other = admin.duplicate();
    const script = other.eval("while true do end", 0).catch(() => other.disconnect());
    await until(() => expect(admin.ping()).rejects.toThrow("BUSY"));
    expect(await remediesOf(on(url))).toEqual(["end the script, which is of another application, by SCRIPT KILL"]);
    await admin.script("KILL");
    await script;
  });

  test("that has replied with an error, and not only ended the connection, is not looked for elsewhere", async () => {
    const full = await redis({ maxclients: "1" });
    await full.admin.ping(); // This connection stays open.
    expect(await problems(on(full.url))).toEqual([
      expect.stringMatching(/ replies with an error \(ERR max number of clients/),
    ]);
    expect(await remediesOf(on(full.url))).toEqual([expect.stringMatching(/^raise its maxclients/)]);
    const { url } = await redis();
    expect(await remediesOf(on(`${url}/99`))).toEqual(["correct the database at the end of REDIS_URL"]);
  });

  test("that does not respond", async () => {
    expect(await problems(on("redis://127.0.0.1:1"))).toEqual([
      expect.stringMatching(/^fault redis: 127\.0\.0\.1:1 does not respond \(.*ECONNREFUSED/),
    ]);
  });

  test("whose clock differs from ours", async () => {
    const { url } = await redis();
    expect(await problems(on(url), () => Date.now() + 3_000)).toEqual([
      expect.stringMatching(/^warning redis: the clock of \S+ is [23]\.\d s behind that of this machine/),
    ]);
  });

  test("that is a replica, or lacks replicas", async () => {
    const master = await redis();
    expect(await problems(on(master.url, { REDIS_WAIT_REPLICAS: "1" }))).toEqual([
      expect.stringMatching(/^fault redis: \S+ has 0 replicas, and REDIS_WAIT_REPLICAS waits for 1/),
    ]);
    const replica = await startReplica(master);
    onTestFinished(() => replica.stop());
    await replica.admin.config("SET", "appendonly", "yes");
    expect(await problems(on(replica.url))).toEqual([
      expect.stringMatching(/^fault redis: \S+ is a replica, which takes no writes/),
    ]);
    expect(await problems(on(master.url))).toEqual([
      expect.stringMatching(/^warning redis: \S+ takes writes even when it is cut off/),
    ]);
    await master.admin.config("SET", "min-replicas-to-write", "1");
    expect(await problems(on(master.url))).toEqual([]);
  });

  test("that is a cluster: every node is looked at", async () => {
    const cluster = await startRedisCluster("--appendonly", "yes");
    onTestFinished(() => cluster.stop());
    expect(await problems(on(cluster.url))).toEqual([]);
    await cluster.nodes[2]?.admin.config("SET", "maxmemory-policy", "volatile-ttl");
    expect(await problems(on(cluster.url))).toEqual([
      expect.stringContaining(`:${cluster.nodes[2]?.port} has maxmemory-policy volatile-ttl`),
    ]);
    await cluster.nodes[2]?.admin.config("SET", "maxmemory-policy", "noeviction");
    await cluster.nodes[2]?.admin.call("CLUSTER", "DELSLOTS", 16_383);
    await until(async () =>
      expect(await problems(on(cluster.url))).toEqual([
        `fault redis: 127.0.0.1:${cluster.nodes[2]?.port} knows nodes for 16383 of the 16384 slots`,
      ]),
    );
    const [first] = cluster.url.split(",");
    expect(await problems(on(first ?? ""))).toEqual([expect.stringMatching(/^fault redis: \S+ is part of a cluster/)]);
  });
});

describe("the embedded store", () => {
  test("that is damaged is a fault", async () => {
    const service = await startService();
    const DATA_DIR = service.dataDir;
    await service.stop();
    expect(await problems({ DATA_DIR })).toEqual([]);
    writeFileSync(join(DATA_DIR, "sessions.db"), "this is no database at all".repeat(100));
    expect(await problems({ DATA_DIR })).toEqual([
      expect.stringMatching(/^fault embedded store: .* cannot be read \(.*not a database/),
    ]);
  });
});

test("an embedded store that cannot be written is a fault, and no file is made beside it", async () => {
  const service = await startService();
  await service.stop();
  const path = join(service.dataDir, "sessions.db");
  chmodSync(path, 0o400);
  // Root may write every file, unless it gives this up.
  const asOthers = process.getuid?.() === 0 ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] : [];
  const [command = "", ...args] = [...asOthers, process.execPath, PROGRAM, "doctor"];
  const env = { ...QUIET, PATH: process.env.PATH, DATA_DIR: service.dataDir, ...compiled() };
  const { status, stdout } = spawnSync(command, args, { env, encoding: "utf8" });
  expect(stdout).toContain(`${path} cannot be written (EACCES)`);
  expect(stdout).toContain("give it to the user of the service (chown)");
  expect([status, stdout.match(/^fault +embedded store/gm)?.length]).toEqual([1, 1]);
  expect(readdirSync(service.dataDir).sort()).toEqual(["admin-token", "keys.json", "sessions.db"]);
});

describe("the service", () => {
  test("that runs is asked whether it is ready, and whether ISSUER leads to it", async () => {
    const service = await startService();
    onTestFinished(() => void service.kill("SIGKILL"));
    const { dataDir: DATA_DIR, publicUrl } = service;
    const [PORT, ADMIN_PORT] = [new URL(publicUrl).port, new URL(service.adminUrl).port];
    const env = { DATA_DIR, PORT, ADMIN_PORT, ISSUER: publicUrl };
    const found = (await findings(env)).filter(({ check }) => check === "service");
    expect(found.map(({ found: text }) => text)).toEqual([
      `the public API at ${publicUrl} is ready`,
      `the admin API at ${service.adminUrl} is ready`,
      `ISSUER leads to the service: ${publicUrl}/.well-known/jwks.json`,
    ]);
    const KEYS_FILE = join(withKeys(), "keys.json");
    const other = "is in use by a service with other keys than those of KEYS_FILE";
    expect(await problems({ ...env, KEYS_FILE })).toEqual([
      `fault service: ${publicUrl} ${other}: the public API cannot listen there`,
      `fault service: ${service.adminUrl} ${other}: the admin API cannot listen there`,
      expect.stringContaining("has none of the keys of KEYS_FILE"),
    ]);
    await service.stop();
    expect(await problems(env)).toEqual([]); // ISSUER is the address of the listener, whose absence is no problem.
    const after = await findings({ ...env, ISSUER: "" });
    expect(after.map(({ found: text }) => text)).toContain(
      `the public API does not run at ${publicUrl}: the port is free`,
    );
  });
});

test.each([
  ["sends nothing", ""],
  ["never ends its response", "HTTP/1.1 200 OK\r\n\r\n"],
])("what listens at the port of the service and %s is no reason to wait", async (_, beginning) => {
  const server = createServer((socket) => {
    socket.on("error", () => {}).write(beginning);
    if (beginning === "") return;
    const timer = setInterval(() => socket.write("x"), 100);
    socket.once("close", () => clearInterval(timer));
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  expect(await problems({ PORT: String(port) })).toEqual([
    `warning service: http://127.0.0.1:${port} does not respond as the public API (no response within 3 s)`,
  ]);
});

test("what switches to another protocol at the port of the service is no reason to wait", async () => {
  const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
  const server = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.write(switched));
  });
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  expect(await problems({ PORT: String(port) })).toEqual([
    `warning service: http://127.0.0.1:${port} does not respond as the public API (status 101)`,
  ]);
});

test.each([200, 503, 404])(
  "a stranger at the port of the service that responds %d is not taken for it",
  async (status) => {
    const server = createHttpServer((_, response) => void response.writeHead(status).end("ok\n"));
    onTestFinished(() => void server.close());
    await once(server.listen(0, "127.0.0.1"), "listening");
    const PORT = String((server.address() as AddressInfo).port);
    expect(await problems({ PORT })).toEqual([
      `fault service: http://127.0.0.1:${PORT} is in use by another program: the public API cannot listen there`,
    ]);
    expect(await remediesOf({ PORT })).toEqual(["set PORT to a free port"]);
  },
);

test("an instance of another installation is a stranger to one that has no keys yet", async () => {
  const service = await startService();
  onTestFinished(() => void service.kill("SIGKILL"));
  expect(await problems({ PORT: new URL(service.publicUrl).port })).toEqual([
    expect.stringContaining("is in use by a service with other keys"),
  ]);
});

describe("session-service doctor", () => {
  test("prints findings with what to do, and fails for a fault", async () => {
    const env = {
      ...QUIET,
      DATA_DIR: join(scratch(), "data"),
      REDIS_URL: "redis://127.0.0.1:1",
      ADMIN_TOKENS: "admin".repeat(8),
    };
    const { code, out, err } = await commandHere(["doctor"], { env });
    expect([code, err]).toEqual([1, ""]);
    expect(out).toMatch(/^fault {4}keys {12}key ring .*\n {25}→ session-service keys create$/m);
    expect(out).toMatch(/\n2 faults, 0 warnings\n$/);
  });

  test("prints JSON, and fails for a warning where that is wanted", async () => {
    const env = { ...QUIET, DATA_DIR: join(scratch(), "data"), ALOWED_ORIGIN: "1" };
    const { code, out } = await commandHere(["doctor", "--json"], { env });
    expect([code, JSON.parse(out).ok]).toEqual([0, true]);
    expect((await commandHere(["doctor", "--strict"], { env })).code).toBe(1);
  });
});
