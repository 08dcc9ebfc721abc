/**
 * A minimal server, with which the service is compared. It does a rotating refresh and a logout at the least cost that is possible in Node.
 * It uses the service's own MAC, Lua scripts, record format, key ring and Redis, so the service accepts its sessions and tokens. It leaves
 * out configuration, routing, reading the body, cross-site defence, messages, errors, audit, metrics, and handling of a Redis that fails.
 *
 * Environment: REDIS_PORT, KEYS_FILE, REUSE_INTERVAL (ms), ISSUER.
 */
import { createPrivateKey, createPublicKey, randomBytes, sign, timingSafeEqual, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Redis } from "ioredis";
import type { SessionId } from "../../../src/service/session/model.ts";
import { decodeRotation, decodeSession, nonceWords } from "../../../src/service/store/redis/encoding/record.ts";
import { TAGS, tagOfSession } from "../../../src/service/store/redis/partitions.ts";
import { loadScripts } from "../../../src/service/store/redis/scripts.ts";
import { createMac } from "../../../src/service/tokens/refresh-token.ts";
import { parseRing } from "../../../src/service/tokens/ring.ts";

const { REDIS_PORT, KEYS_FILE = "", REUSE_INTERVAL = "0", ISSUER } = process.env;

const ring = parseRing(readFileSync(KEYS_FILE, "utf8"));
const macKey = ring.mac.find((key) => key.state === "signing");
const signingKey = ring.signing.find((key) => key.state === "signing");
if (macKey?.jwk === undefined || signingKey?.jwk === undefined) throw new Error("no keys");
const mac = createMac(Buffer.from(macKey.jwk.k ?? "", "base64url"), 40);
const key = {
  key: createPrivateKey({ key: signingKey.jwk, format: "jwk" }),
  dsaEncoding: "ieee-p1363",
} as const;
const publicKey = { key: createPublicKey(key.key), dsaEncoding: "ieee-p1363" } as const;
const jwtHeader = Buffer.from(JSON.stringify({ typ: "at+jwt", alg: "ES256", kid: signingKey.kid })).toString(
  "base64url",
);

// The types of ioredis lack the methods that return buffers.
type Buffers = { evalshaBuffer(sha: string, keys: number, ...rest: (string | number)[]): Promise<unknown> };
const redis = new Redis({ host: "127.0.0.1", port: Number(REDIS_PORT), enableAutoPipelining: true }) as Redis & Buffers;
const scripts = loadScripts();
for (const { text } of [scripts.rotate, scripts.end]) await redis.script("LOAD", text);

type Claims = { readonly iss: string; readonly exp: number; readonly sid: SessionId };

const RECORD = 7;
const MARKER_LIFE = 360_000;

async function refresh(cookie: string): Promise<{ accessToken: string; setCookie: string } | undefined> {
  const token = Buffer.from(cookie, "base64url");
  const body = token.subarray(0, 40);
  if (token.length !== 72 || !timingSafeEqual(token.subarray(40), Buffer.from(mac(body), "latin1"))) return undefined;
  const sid = token.toString("base64url", 5, 22) as SessionId;
  const partition = TAGS[token[5] ?? 0] ?? "";
  const [n1, n2] = nonceWords(token.toString("base64url", 26, 34));
  const fresh = randomBytes(8);
  const reply = (await redis.evalshaBuffer(
    scripts.rotate.sha,
    1,
    partition,
    sid,
    token.readUInt32BE(22),
    n1,
    n2,
    token.readUIntBE(34, 6),
    fresh.readUInt32BE(0),
    fresh.readUInt32BE(4),
    REUSE_INTERVAL,
    MARKER_LIFE,
    0,
    1e15,
    0,
  )) as Buffer;
  if (!"prhv".includes(String.fromCharCode(reply[0] ?? 0))) return undefined;

  const now = reply.readUIntBE(1, 6);
  const session = decodeSession(sid, reply, RECORD);
  const { generation, childNonce, childMintedAt } = decodeRotation(reply, RECORD);
  token.writeUInt32BE(generation + 1, 22);
  token.write(childNonce, 26, "base64url");
  token.writeUIntBE(childMintedAt, 34, 6);
  token.write(mac(body), 40, "latin1");
  const iat = Math.floor(now / 1000);
  const payload = JSON.stringify({
    iss: ISSUER,
    sub: session.subject,
    aud: session.audience,
    exp: iat + 300,
    iat,
    jti: randomBytes(16).toString("base64url"),
    sid,
    client_id: session.clientId,
  });
  const input = `${jwtHeader}.${Buffer.from(payload).toString("base64url")}`;
  const secondsLeft = Math.floor((session.idleExpiresAt - now) / 1000);
  return {
    accessToken: `${input}.${sign("sha256", Buffer.from(input), key).toString("base64url")}`,
    setCookie: `refresh_token=${token.toString("base64url")}; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=${secondsLeft}`,
  };
}

async function logout(bearer: string): Promise<boolean> {
  const [header, payload = "", signature = ""] = bearer.split(".");
  const input = Buffer.from(`${header}.${payload}`);
  if (header !== jwtHeader || !verify("sha256", input, publicKey, Buffer.from(signature, "base64url"))) return false;
  const { iss, exp, sid } = JSON.parse(Buffer.from(payload, "base64url").toString()) as Claims;
  if (iss !== ISSUER || Date.now() >= exp * 1000) return false;
  const args = [sid, "logout", MARKER_LIFE, "", "", "", 0, 1e15, 0];
  const [outcome] = (await redis.evalsha(scripts.end.sha, 1, tagOfSession(sid), ...args)) as string[];
  return outcome === "ended";
}

const server = createServer(async (request, response) => {
  if (request.method === "DELETE") {
    if (!(await logout((request.headers.authorization ?? "").slice("Bearer ".length)))) {
      response.writeHead(401).end();
      return;
    }
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": 11,
      "cache-control": "no-store",
      "set-cookie": "refresh_token=; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
    });
    response.end('{"data":{}}');
    return;
  }
  const [, cookie = ""] = /(?:^|; )refresh_token=([^;]*)/.exec(request.headers.cookie ?? "") ?? [];
  const refreshed = await refresh(cookie);
  if (refreshed === undefined) {
    response.writeHead(401).end();
    return;
  }
  const body = JSON.stringify({ data: { accessToken: refreshed.accessToken } });
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "set-cookie": refreshed.setCookie,
  });
  response.end(body);
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
