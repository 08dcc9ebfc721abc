/**
 * The service that a good team would write by hand in a day: Fastify, its cookie plugin, jsonwebtoken, ioredis. A refresh token is a
 * random text, stored under its hash; a refresh reads it by GET and replaces it by MULTI. The service has no reuse detection, no reuse
 * interval and no revocation.
 *
 * Environment: REDIS_PORT, ISSUER, SESSIONS (how many to create). The ready line holds their tokens.
 */
import { createHash, generateKeyPairSync, randomBytes, randomUUID } from "node:crypto";
import cookie from "@fastify/cookie";
import Fastify from "fastify";
import { Redis } from "ioredis";
import jwt from "jsonwebtoken";

type Session = { readonly sid: string; readonly subject: string; readonly clientId: string };

const { REDIS_PORT, ISSUER = "", SESSIONS = "0" } = process.env;
const IDLE = 14 * 86_400;

const redis = new Redis({ host: "127.0.0.1", port: Number(REDIS_PORT), enableAutoPipelining: true });
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const newToken = () => randomBytes(32).toString("base64url");
const keyOf = (token: string) => `by-hand:${createHash("sha256").update(token).digest("base64url")}`;

const app = Fastify();
await app.register(cookie);

app.post("/v1/auth/refresh", async (request, reply) => {
  const presented = request.cookies.refresh_token;
  const text = presented === undefined ? null : await redis.get(keyOf(presented));
  if (presented === undefined || text === null) {
    return reply.code(401).send({ error: { code: "E001_AUTH_FAILURE", message: "authentication failed" } });
  }
  const { sid, subject, clientId } = JSON.parse(text) as Session;
  const successor = newToken();
  await redis.multi().del(keyOf(presented)).set(keyOf(successor), text, "EX", IDLE).exec();
  const accessToken = jwt.sign({ sid, client_id: clientId }, privateKey, {
    algorithm: "ES256",
    keyid: "by-hand",
    issuer: ISSUER,
    audience: ISSUER,
    subject,
    jwtid: randomUUID(),
    expiresIn: "5m",
  });
  return reply
    .header("cache-control", "no-store")
    .setCookie("refresh_token", successor, {
      path: "/v1/auth",
      httpOnly: true,
      secure: true,
      sameSite: "lax",
      maxAge: IDLE,
    })
    .send({ data: { accessToken } });
});

const tokens = Array.from({ length: Number(SESSIONS) }, newToken);
for (const [index, token] of tokens.entries()) {
  const session: Session = { sid: randomUUID(), subject: `subject-${index}`, clientId: "bench" };
  await redis.set(keyOf(token), JSON.stringify(session), "EX", IDLE);
}
const url = await app.listen({ port: 0, host: "127.0.0.1" });
process.stdout.write(`${JSON.stringify({ port: Number(new URL(url).port), tokens })}\n`);
