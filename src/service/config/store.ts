import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { AddFault, Read } from "./reader.ts";
import { parseRedisUrl, type RedisTarget, type TlsFiles } from "./redis-url.ts";
import { readSecret, readSecretFile } from "./secrets.ts";
import { duration, integer, invalid, type Parsed, readableFile, SECOND_MS, text, unreadable, valid } from "./values.ts";

function certificates(path: string): Parsed<string> {
  let pem: Buffer;
  try {
    pem = readFileSync(path);
  } catch (error) {
    return unreadable(error);
  }
  try {
    new X509Certificate(pem);
    return valid(path);
  } catch {
    return invalid("names a file that is no PEM certificate");
  }
}

/** Checks a file with a password, and returns its path: the store reads the file whenever it needs the password. */
function passwordFile(path: string): Parsed<string> {
  const password = readSecretFile(path, text(MAX_PASSWORD_LENGTH));
  return password.ok ? valid(path) : password;
}

/** Passwords of rented Redis servers may be signed tokens with some thousand characters. */
const MAX_PASSWORD_LENGTH = 32_768;

/** Reads a URL from a file. The store follows its password, but not the server that it names. */
function urlInFile(path: string): Parsed<RedisTarget> {
  const parsed = readSecretFile(path, parseRedisUrl);
  return parsed.ok && parsed.value.password !== undefined ? valid({ ...parsed.value, urlFile: path }) : parsed;
}

/** Braces would be another hash tag, and some other characters are special in ACL rules. */
function keyPrefixOf(text: string): Parsed<string> {
  return /^[A-Za-z0-9:._-]{1,64}$/.test(text) ? valid(text) : invalid("is not 1 to 64 of A-Z a-z 0-9 : . _ -");
}

function readRedis(read: Read, addFault: AddFault): RedisTarget | undefined {
  const target = readSecret(read, addFault, "REDIS_URL", parseRedisUrl, urlInFile);
  const account = readAccount(read, addFault, target);
  const sentinels = readSentinels(read, addFault, target);
  const tlsFiles = readTlsFiles(read, addFault, target);
  const keyPrefix = read("REDIS_KEY_PREFIX", keyPrefixOf, undefined);
  if (keyPrefix !== undefined && target === undefined) addFault("REDIS_KEY_PREFIX needs REDIS_URL");
  return target === undefined ? undefined : { ...target, ...account, ...sentinels, tlsFiles, keyPrefix };
}

function readAccount(read: Read, addFault: AddFault, target: RedisTarget | undefined) {
  const username = read("REDIS_USERNAME", text(255), undefined);
  const file = read("REDIS_PASSWORD_FILE", passwordFile, undefined);
  if (target === undefined) {
    if (username !== undefined) addFault("REDIS_USERNAME needs REDIS_URL");
    if (file !== undefined) addFault("REDIS_PASSWORD_FILE needs REDIS_URL");
    return {};
  }
  if (username !== undefined && target.username !== undefined) {
    addFault("REDIS_USERNAME and a user in REDIS_URL exclude each other");
  }
  if (file !== undefined && target.password !== undefined) {
    addFault("REDIS_PASSWORD_FILE and a password in REDIS_URL exclude each other");
  }
  if (username !== undefined && file === undefined && target.password === undefined) {
    addFault("REDIS_USERNAME needs REDIS_PASSWORD_FILE, or a password in REDIS_URL");
  }
  return { username: username ?? target.username, passwordFile: file };
}

function readSentinels(read: Read, addFault: AddFault, target: RedisTarget | undefined) {
  const sentinelUsername = read("REDIS_SENTINEL_USERNAME", text(255), undefined);
  const sentinelPassword = read("REDIS_SENTINEL_PASSWORD", text(1024), undefined);
  const sentinelPasswordFile = read("REDIS_SENTINEL_PASSWORD_FILE", passwordFile, undefined);
  const passwords = { REDIS_SENTINEL_PASSWORD: sentinelPassword, REDIS_SENTINEL_PASSWORD_FILE: sentinelPasswordFile };
  const set = Object.entries(passwords).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (target?.kind !== "sentinel") {
    for (const name of set) addFault(`${name} needs a REDIS_URL with redis+sentinel:// or rediss+sentinel://`);
  }
  if (set.length > 1) addFault("REDIS_SENTINEL_PASSWORD and REDIS_SENTINEL_PASSWORD_FILE exclude each other");
  if (sentinelUsername !== undefined && set.length === 0) {
    addFault("REDIS_SENTINEL_USERNAME needs REDIS_SENTINEL_PASSWORD or REDIS_SENTINEL_PASSWORD_FILE");
  }
  return { sentinelUsername, sentinelPassword, sentinelPasswordFile };
}

function readTlsFiles(read: Read, addFault: AddFault, target: RedisTarget | undefined): TlsFiles {
  const files = {
    ca: read("REDIS_TLS_CA_FILE", certificates, undefined),
    cert: read("REDIS_TLS_CERT_FILE", certificates, undefined),
    key: read("REDIS_TLS_KEY_FILE", readableFile, undefined),
  };
  const given = Object.entries(files).filter(([, path]) => path !== undefined);
  if (target?.tls !== true) {
    for (const [name] of given) addFault(`REDIS_TLS_${name.toUpperCase()}_FILE needs a REDIS_URL with rediss://`);
  }
  if ((files.cert === undefined) !== (files.key === undefined)) {
    addFault("REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE must be set together");
  } else if (files.cert !== undefined && files.key !== undefined && !isKeyOf(files.key, files.cert)) {
    addFault("REDIS_TLS_KEY_FILE is not the key of the certificate in REDIS_TLS_CERT_FILE");
  }
  return Object.fromEntries(given);
}

function isKeyOf(keyFile: string, certFile: string): boolean {
  try {
    return new X509Certificate(readFileSync(certFile)).checkPrivateKey(createPrivateKey(readFileSync(keyFile)));
  } catch {
    return false;
  }
}

/** Parses a number of processes, or `auto`: one for each core that the process may use. */
function workers(text: string): Parsed<number> {
  return text.toLowerCase() === "auto"
    ? valid(Math.min(MAX_WORKERS, availableParallelism()))
    : integer(1, MAX_WORKERS)(text);
}

/** No machine has so many cores. The limit keeps a mistyped number from starting thousands of processes. */
const MAX_WORKERS = 256;

export function readStore(read: Read, addFault: AddFault) {
  const store = {
    redis: readRedis(read, addFault),
    redisWaitReplicas: read("REDIS_WAIT_REPLICAS", integer(0, 16), 0),
    redisCommandTimeoutMs: read("REDIS_COMMAND_TIMEOUT", duration(10, 10 * SECOND_MS), 500),
    workers: read("WORKERS", workers, 1),
    dataDir: read("DATA_DIR", text(4096), "./data"),
  };
  if (store.redis === undefined && store.redisWaitReplicas > 0) addFault("REDIS_WAIT_REPLICAS needs REDIS_URL");
  if (store.redis === undefined && store.workers > 1) {
    addFault("WORKERS needs REDIS_URL: processes on the embedded store would wait for each other's writes");
  }
  return store;
}
