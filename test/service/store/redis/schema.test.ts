/** After every method of the store, Redis has exactly the keys that docs/reference/redis-schema.md describes. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { beforeAll, expect, test } from "vitest";
import { MAX_EVENT_SESSIONS } from "../../../../src/service/session/events/events.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { DEFAULT_RETENTION_MS, type StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { tagOfSession, tagOfSubject } from "../../../../src/service/store/redis/partitions.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { startRedis } from "../../../support/redis.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import { someKey } from "../../../support/store/device.ts";
import { recordOf } from "../../../support/store/event-records.ts";
import { ABSOLUTE, IDLE, MARKER_LIFE, newSession, nonce, SECOND, subject } from "../../../support/store/sessions.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../../docs/reference/redis-schema.md"), "utf8");
const RETENTION = 600 * SECOND;
const DAYS_32 = 32 * 86_400 * SECOND;
const MINUTES_11 = 660 * SECOND;
const DAYS_400 = 400 * 86_400 * SECOND;
/**
 * How much shorter the remaining life of a key may be than the documented one, in ms. Some time passes between a write and the check of its
 * key.
 */
const PATIENCE = 120 * SECOND;
const MANY = 130;

/** Returns the rows of a table in docs/reference/redis-schema.md that begin with a name in backquotes. */
function rowsOf(heading: string): string[][] {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `"));
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

const plain = (cell = "") => cell.replace(/^`(.*)`$/, "$1");

/** Converts a key or field in the notation of docs/reference/redis-schema.md to a regular expression: `{a7}` is any partition, `<…>` any text. */
function pattern(text: string): RegExp {
  const session = "[A-Za-z0-9_-]{23}";
  const parts = text.split(/(<[^>]+>|\{a7\})/).map((part) => {
    if (part === "{a7}") return "\\{[0-9a-f]{2}\\}";
    if (part === "<session>") return session;
    if (part === "<subscription>") return "[a-z]+";
    if (part === "<time>") return "\\d{13}";
    if (part.startsWith("<")) return "[^]+";
    return part.replace(/[{}*+]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("")}$`);
}

/**
 * The lives of keys, as docs/reference/redis-schema.md describes them in words. Each value is the time after which a key that was just written
 * expires, in ms; undefined if it does not expire.
 */
const LIVES: Readonly<Record<string, number | undefined>> = {
  "until the session's expiry, plus a sixteenth of its idle timeout, plus two minutes": IDLE + IDLE / 16 + 120 * SECOND,
  "until the last expiry": ABSOLUTE + IDLE / 16 + 120 * SECOND,
  "that time": IDLE,
  "until the last of them expires, plus two minutes": ABSOLUTE + 120 * SECOND,
  "`SIGNALS_RETENTION`": DEFAULT_RETENTION_MS,
  "none: deleted when the last one is done": undefined,
  none: undefined,
  "30 s": 30 * SECOND,
  "60 s": 60 * SECOND,
  "the life of an access token and 60 s": MARKER_LIFE,
  "32 days after its last entry is of no use": MARKER_LIFE + DAYS_32,
  "32 days": DAYS_32,
  "400 days": DAYS_400,
  "11 minutes": MINUTES_11,
  "`SIGNALS_RETENTION` and 32 days": DEFAULT_RETENTION_MS + DAYS_32,
  "none: deleted when all are appended": undefined,
  "`EVENT_RETENTION` after the last one": RETENTION,
};

const ORIGIN = { address: "192.0.2.7", admin: "support", requestId: "r1" };

let redis: Redis;
let store: StoreWithSignals;
/** The id of a session that was refreshed and is live. */
let live: SessionId;

beforeAll(async () => {
  const server = await startRedis();
  redis = server.admin;
  store = await createRedisStore(
    redisOptions(server.url, {
      commandTimeoutMs: 5_000,
      owner: () => ({ issuer: "https://a.example", keyIds: ["k1"] }),
    }),
  );
  await store.ping();
  live = await useEveryVerb();
  await endOfMany();
  return async () => {
    await store.close();
    await server.stop();
  };
});

async function login(user: string, more: Parameters<typeof newSession>[1] = {}, cap = 1_000) {
  const [session, first] = [newSession(user, more), nonce()];
  await store.create(session, first, { cap, origin: ORIGIN });
  return { sid: session.sid, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } };
}

async function useEveryVerb(): Promise<SessionId> {
  const user = subject();
  const filter = { events: ["session.ended", "session.created", "session.new_device"] } as const;
  const definition = { kind: "webhook", endpoint: "https://a.test/", filter, audience: [] } as const;
  await store.signals.subscriptions.create("subscription", definition, wallMs(1_794_000_000_000));
  await store.signals.log.lease([0], "instance", 30 * SECOND);
  const authentication = { time: wallMs(5_000), methods: ["otp"], contextClass: "gold" };
  const [kept, recorded] = [await login(user, { authentication, deviceRequired: true }), await login(user)];
  const ended = await login(subject());
  const changed = await login(user);
  await store.update(changed.sid, { claims: '{"role":"admin"}', outdatesTokens: true });
  await store.rotate(kept.sid, kept.first, nonce());
  await store.registerKey(kept.sid, { ...kept.first, generation: 2 }, someKey());
  await store.unbind(kept.sid);
  await store.elevate(kept.sid, { ...authentication, time: wallMs(6_000) });
  await store.note({ issuer: "https://login.example", usedToken: "a token" }, MINUTES_11);
  await store.create(newSession(user), nonce(), { cap: 1_000, origin: ORIGIN, reservedMs: DAYS_400 });
  for (let count = 0; count <= MAX_EVENT_SESSIONS; count++) {
    const { sid } = await login(user);
    await store.recordEvents([recordOf({ time: storeMs(1), type: "created", sid, subject: user })], RETENTION);
    if (count < MAX_EVENT_SESSIONS) await store.end(sid, "logout");
  }
  await login(subject(), { upstream: { issuer: "https://login.example", sessionId: "a login" } });
  const used = await login(subject(), { actor: { subject: "support", sessionId: kept.sid, endsWithSession: true } });
  await store.attach(used.sid, kept.sid, ABSOLUTE);
  await store.end(recorded.sid, "logout", ORIGIN);
  await store.recordEvents(
    [recordOf({ time: storeMs(1), type: "ended", sid: recorded.sid, subject: user, reason: "logout" })],
    RETENTION,
  );
  await store.end(ended.sid, "logout", ORIGIN);
  const [first, second] = [await store.revokeAll(storeMs(1_700_000_000_000), ORIGIN), storeMs(1_700_000_000_001)];
  await store.recordEvents([recordOf({ time: storeMs(1), type: "all_ended", revokedUntil: first })], RETENTION);
  await store.revokeAll(second, ORIGIN);
  const other = await login(subject());
  await store.endOwned(other.sid, other.sid, "revoked_by_owner");
  await store.revocations(undefined);
  await store.expire();
  return kept.sid;
}

/**
 * Prepares three subjects with many sessions: one that had more sessions than its cap, one whose sessions have all been ended, and one of
 * whose sessions only some have been ended so far.
 */
async function endOfMany(): Promise<void> {
  const users = [subject(), subject(), subject()] as const;
  for (const user of users) for (let count = 0; count < MANY; count++) await login(user);
  const [capped, done, underWay] = users;
  await login(capped, {}, MANY);
  await store.endAll(done, "revoked_subject", { origin: ORIGIN });
  const args = [underWay, "revoked_subject", MARKER_LIFE, "", "", nonce(), "{}", 0, Number.MAX_SAFE_INTEGER, 0];
  await redis.eval(loadScripts().end_all.text, 1, tagOfSubject(underWay), ...args);
}

test("every key is described with its type and its life, and every one that is described is there", async () => {
  const rows = rowsOf("Keys").map(([key = "", type, , life = ""]) => ({ key: pattern(plain(key)), type, life }));
  expect(rows.filter(({ life }) => !(life in LIVES)).map(({ life }) => life)).toEqual([]);
  const found = new Set<unknown>();
  for (const key of await redis.keys("*")) {
    const described = rows.filter((row) => row.key.test(key));
    expect(described, key).toHaveLength(1);
    const [row] = described;
    found.add(row);
    expect([key, await redis.type(key)]).toEqual([key, row?.type]);
    const most = LIVES[row?.life ?? ""];
    const left = await redis.pttl(key);
    if (most === undefined) expect([key, left]).toEqual([key, -1]);
    else {
      expect([key, left]).toEqual([key, expect.toSatisfy((ms: number) => ms > most - PATIENCE && ms <= most)]);
    }
  }
  expect(rows.filter((row) => !found.has(row))).toEqual([]);
});

test("keys.ts lists the same keys", () => {
  const file = readFileSync(join(import.meta.dirname, "../../../../src/service/store/redis/keys.ts"), "utf8");
  const listed = Array.from(
    file.matchAll(/^ {2}\w+: "(\w)", \/\/ (<\w+>)?/gm),
    ([, letter, name = ""]) => letter + name,
  );
  const described = rowsOf("Keys").map(([key = ""]) => plain(key).replace(/^\{\w\w\}/, ""));
  expect(listed.toSorted()).toEqual(described.toSorted());
});

test("a session that is refreshed near the end of its absolute lifetime is not kept for longer", async () => {
  const { sid, first } = await login(subject(), { absoluteLifetimeMs: IDLE / 2 });
  const key = `${tagOfSession(sid)}s${sid}`;
  const before = await redis.pexpiretime(key);
  expect((await store.rotate(sid, first, nonce())).ok).toBe(true);
  expect(await redis.pexpiretime(key)).toBe(before);
});

test("every field of a hash is described, and every one that is described is there", async () => {
  const rows = rowsOf("Fields of hashes").map(([name = ""]) => {
    const [key = "", field = ""] = [...name.matchAll(/`([^`]+)`/g)].map(([, text]) => text);
    return { key: pattern(key), field: pattern(field) };
  });
  const found = new Set<unknown>();
  for (const key of await redis.keys("*")) {
    if ((await redis.type(key)) !== "hash") continue;
    const sessions = (field: string) => key.endsWith("r") && /^[+*]|^[\w-]{23}$/.test(field);
    for (const field of await redis.hkeys(key)) {
      const described = rows.filter((row) => row.key.test(key) && row.field.test(field));
      expect(described, `${key} ${field}`).toHaveLength(1);
      expect(/[uCfb]$/.test(key) || sessions(field)).toBe(true);
      found.add(described[0]);
    }
  }
  expect(rows.filter((row) => !found.has(row))).toEqual([]);
});

test("the parts of a record are where the page says", async () => {
  const record = await redis.getBuffer(`${tagOfSession(live)}s${live}`);
  const session = await store.find(live);
  if (record === null || !session.ok) throw new Error("the session is not there");
  const known: Readonly<Record<string, unknown>> = { flags: 5, ...session.session, ...session.rotation };
  let end = 0;
  for (const [part = "", offset, length] of rowsOf("The record of a session")) {
    const [at, bytes] = [Number(offset), Number(length)];
    expect([part, at]).toEqual([part, end]);
    end = at + bytes;
    const name = plain(part);
    const value = bytes === 8 ? record.toString("base64url", at, end) : record.readUIntBE(at, bytes);
    expect([name, value]).toEqual([name, known[name]]);
  }
  const { subject: name } = session.session;
  expect(record.readUInt16BE(end)).toBe(Buffer.byteLength(name));
  expect(record.toString("utf8", end + 2, end + 2 + Buffer.byteLength(name))).toBe(name);
});

test("examples of texts have the form of what is there", async () => {
  const forms = rowsOf("Keys").map(([key = "", , , , example = ""]) => ({ key: pattern(plain(key)), example }));
  const form = (text: string) =>
    text
      .replaceAll(/[A-Za-z0-9_-]{23}(?=[ "]|$)/g, "S")
      .replaceAll(/\d{13}/g, "T")
      .replaceAll(/\d+/g, "N");
  const texts = forms.filter(({ example }) => /^`\d+( \d+)?`$/.test(example));
  expect(texts.length).toBeGreaterThan(5);
  for (const { key, example } of texts) {
    const [found = ""] = (await redis.keys("*")).filter((name) => key.test(name));
    expect([found, form((await redis.get(found)) ?? "")]).toEqual([found, form(plain(example))]);
  }
});
