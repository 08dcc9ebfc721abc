/**
 * What holds for the keys of a Redis store at any time, whatever has happened: no key expires before what is in it, no index names a session
 * that is gone, and the sessions of a login at a provider are found by it.
 */
import { Cluster, type Redis } from "ioredis";
import { expect } from "vitest";
import { loginsOf, type Session } from "../../../src/service/session/model.ts";
import { decodeSession } from "../../../src/service/store/redis/encoding/record.ts";
import { sessionId } from "../../../src/service/store/redis/encoding/replies.ts";
import { loginNameOf } from "../../../src/service/store/redis/upstream.ts";

const SID = 23;
const ENTRY = 6 + SID;
const ATTACHED = 2 * SID + 6;
const NOBODY = "-".repeat(SID);
/** What has no expiry, because nothing would restore it. */
const KEPT = "hengpjfbcq";
const HASHES = "ur";
const ZSETS = "ioUl";

/** A key `{a7}<letter><name>` (docs/reference/redis-schema.md), and its members, the values of its fields, or its text. */
type Key = {
  readonly letter: string;
  readonly name: string;
  readonly expiry: number;
  readonly values: readonly Buffer[];
};

/** @param now the store's time @param shiftMs by how much the clock of Redis is ahead of it */
export async function expectSoundKeys(admin: Redis | Cluster, now: number, shiftMs: number): Promise<void> {
  const nodes = admin instanceof Cluster ? admin.nodes("master") : [admin];
  const names = (await Promise.all(nodes.map((node) => node.keys("{*")))).flat();
  for (const [tag, keys] of Map.groupBy(names, (name) => name.slice(0, 4))) {
    const found = await Promise.all(keys.map((key) => read(admin, key)));
    expect([tag, faultsOf(found, now, shiftMs)]).toEqual([tag, []]);
  }
}

/** Returns the keys of a partition that contain a text, in their name or their value. */
export async function keysWith(admin: Redis | Cluster, tag: string, text: string): Promise<string[]> {
  const nodes = admin instanceof Cluster ? admin.nodes("master") : [admin];
  const names = (await Promise.all(nodes.map((node) => node.keys(`${tag}*`)))).flat();
  const texts = await Promise.all(names.map((key) => textOf(admin, key)));
  return names.filter((name, at) => name.includes(text) || texts[at]?.includes(text));
}

async function textOf(admin: Redis | Cluster, key: string): Promise<string> {
  const type = await admin.type(key);
  if (type === "hash") return JSON.stringify(await admin.hgetall(key));
  return type === "zset" ? (await admin.zrange(key, "0", "-1")).join() : ((await admin.get(key)) ?? "");
}

async function read(admin: Redis | Cluster, key: string): Promise<Key> {
  const [letter = "", name] = [key[4], key.slice(5)];
  return { letter, name, expiry: await admin.pexpiretime(key), values: await valuesOf(admin, letter, key) };
}

async function valuesOf(admin: Redis | Cluster, letter: string, key: string): Promise<readonly Buffer[]> {
  if (HASHES.includes(letter)) return admin.hvalsBuffer(key);
  if (letter === "C") return (await admin.hkeysBuffer(key)).filter((field) => field.length === SID);
  if (ZSETS.includes(letter)) return admin.zrangeBuffer(key, "0", "-1");
  if (KEPT.includes(letter) || "az".includes(letter)) return [];
  return [(await admin.getBuffer(key)) ?? Buffer.alloc(0)];
}

function faultsOf(keys: readonly Key[], now: number, shiftMs: number): string[] {
  const sessions = new Map<string, Session>();
  for (const { letter, name, values } of keys) {
    for (const record of letter === "s" ? values : []) {
      sessions.set(name, decodeSession(sessionId(Buffer.from(name)), record, 0));
    }
  }
  const expiryOf = new Map(keys.map(({ letter, name, expiry }) => [letter + name, expiry]));
  const index = new Map(keys.map((key) => [key.letter + key.name, new Set(sessionsIn(key))]));
  const early = keys.filter(({ letter, expiry }) => expiry >= 0 && KEPT.includes(letter));
  const faults = early.map(({ letter, name }) => `${letter}${name} expires`);
  for (const key of keys) {
    const id = key.letter + key.name;
    const needed = timesIn(key, sessions).map((time) => time + shiftMs);
    if (key.letter === "w") needed.push(...sidsIn(key.values).map((sid) => expiryOf.get(`v${sid}`) ?? 0));
    if (key.expiry >= 0 && key.expiry < Math.max(0, ...needed)) faults.push(`${id} expires before what is in it`);
    for (const sid of index.get(id) ?? []) {
      // The entry of a session that has expired goes with the next creation for its login.
      if (!sessions.has(sid) && key.letter !== "U") faults.push(`${id} names ${sid}, which is gone`);
    }
  }
  for (const { sid, upstream, absoluteExpiresAt } of sessions.values()) {
    if (upstream === undefined || now >= absoluteExpiresAt) continue;
    for (const name of loginsOf(upstream).map(loginNameOf)) {
      if (!index.get(`U${name}`)?.has(sid)) faults.push(`U${name} does not name ${sid}`);
    }
  }
  return faults;
}

/** Returns the times of the store until which a key must live. */
function timesIn(key: Key, sessions: ReadonlyMap<string, Session>): number[] {
  const { letter, name, values } = key;
  const texts = values.map(String);
  if (letter === "s") return [sessions.get(name)?.idleExpiresAt ?? 0];
  if ("mtT".includes(letter)) return texts.map(Number);
  if (letter === "y") return texts.map((text) => Number(text.split(" ")[1]));
  if (letter === "l") return texts.map((text) => Number(text.split(" ")[2]));
  if (letter === "r") return texts.map((text) => Number(text.split("\n")[0]));
  if (letter === "A" && name === "") return split(values, ATTACHED).map((entry) => entry.readUIntBE(2 * SID, 6));
  return sessionsIn(key).map((sid) => sessions.get(sid)?.absoluteExpiresAt ?? 0);
}

/** Returns the sessions that an index names, and those for whose end others wait. */
function sessionsIn({ letter, name, values }: Key): string[] {
  if (letter === "u") return sidsIn(values);
  if ("UC".includes(letter)) return values.map(String);
  if ("io".includes(letter)) return split(values, ENTRY).map((entry) => entry.toString("latin1", 6));
  if (letter !== "A" || name !== "") return [];
  return split(values, ATTACHED)
    .map((entry) => entry.toString("latin1", 0, SID))
    .filter((actor) => actor !== NOBODY);
}

const sidsIn = (values: readonly Buffer[]) => split(values, SID).map(String);

function split(values: readonly Buffer[], size: number): Buffer[] {
  return values.flatMap((bytes) =>
    Array.from({ length: bytes.length / size }, (_, at) => bytes.subarray(at * size, (at + 1) * size)),
  );
}
