/**
 * better-auth as a process of its own, with passwords. Plain JavaScript, so that its memory is not that of a compiler.
 *
 * SETTINGS=default: its defaults, on SQLite. A session's life is extended once a day. The others have sessions in Redis.
 * SETTINGS=renewed: each use extends the session's life, as a refresh does.
 * SETTINGS=cached: a signed cookie holds a copy of the session for CACHE_SECONDS.
 * SETTINGS=token: as `renewed`, and the JWT plugin signs a token that resource servers check offline.
 */
import { createServer } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { toNodeHandler } from "better-auth/node";
import { jwt } from "better-auth/plugins";
import { Redis } from "ioredis";

const { PORT, DATABASE, REDIS_URL, SETTINGS, CACHE_SECONDS } = process.env;

function inRedis() {
  const redis = new Redis(REDIS_URL).on("error", () => {});
  return {
    session:
      SETTINGS === "cached" ? { cookieCache: { enabled: true, maxAge: Number(CACHE_SECONDS) } } : { updateAge: 0 },
    secondaryStorage: {
      get: (key) => redis.get(key),
      set: (key, value, ttl) => (ttl ? redis.set(key, value, "EX", ttl) : redis.set(key, value)),
      delete: (key) => redis.del(key),
    },
  };
}

const auth = betterAuth({
  baseURL: `http://127.0.0.1:${PORT}`,
  secret: "a secret of the peer, which only this comparison uses",
  database: new DatabaseSync(DATABASE),
  // Its scrypt is left out: logins are not what is compared.
  emailAndPassword: {
    enabled: true,
    password: { hash: async (password) => password, verify: async ({ hash, password }) => hash === password },
  },
  // As in the other contenders: one address carries the load of many.
  rateLimit: { enabled: false },
  plugins:
    SETTINGS === "token" ? [jwt({ jwks: { keyPairConfig: { alg: "ES256" }, disablePrivateKeyEncryption: true } })] : [],
  ...(SETTINGS !== "default" && inRedis()),
});
const { runMigrations } = await getMigrations(auth.options);
await runMigrations();
createServer(toNodeHandler(auth)).listen(Number(PORT), "127.0.0.1");
