/**
 * node-oidc-provider on Redis, as a process of its own. It signs everybody in without a form. Plain JavaScript, so that its memory is not
 * that of a compiler. Tokens are signed by ES256, as this service's are.
 *
 * ROTATION=default: opaque access tokens, and the library's rule of rotation, which for public clients is the same as `true`.
 * ROTATION=off: access tokens are JWTs, and refresh tokens stay.
 */
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { Redis } from "ioredis";
import { Provider } from "oidc-provider";

const { PORT, REDIS_URL, ROTATION, SERVICE_SECRET } = process.env;
const issuer = `http://127.0.0.1:${PORT}`;
const redis = new Redis(REDIS_URL).on("error", () => {});

/** What the library stores. Each record is a hash in Redis, and each grant lists its records. */
class RedisAdapter {
  constructor(name) {
    this.name = name;
  }
  keyOf(id) {
    return `${this.name}:${id}`;
  }
  async upsert(id, payload, expiresIn) {
    const key = this.keyOf(id);
    const commands = redis.multi().hset(key, "payload", JSON.stringify(payload));
    if (expiresIn) commands.expire(key, expiresIn);
    if (payload.uid) commands.set(`uid:${payload.uid}`, id, "EX", expiresIn);
    if (payload.grantId && this.name !== "Grant") {
      const grant = `grant:${payload.grantId}`;
      commands.rpush(grant, key);
      if (expiresIn) commands.expire(grant, expiresIn, "NX").expire(grant, expiresIn, "GT");
    }
    await commands.exec();
  }
  async find(id) {
    const { payload, consumed } = await redis.hgetall(this.keyOf(id));
    return payload && { ...JSON.parse(payload), ...(consumed && { consumed: Number(consumed) }) };
  }
  async findByUid(uid) {
    const id = await redis.get(`uid:${uid}`);
    return id === null ? undefined : this.find(id);
  }
  async consume(id) {
    await redis.hset(this.keyOf(id), "consumed", Math.floor(Date.now() / 1000));
  }
  async destroy(id) {
    await redis.del(this.keyOf(id));
  }
  async revokeByGrantId(grantId) {
    const grant = `grant:${grantId}`;
    await redis.del(grant, ...(await redis.lrange(grant, 0, -1)));
  }
}

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = { ...privateKey.export({ format: "jwk" }), kid: "1", alg: "ES256", use: "sig" };
const api = { scope: "api", audience: "urn:api", accessTokenFormat: "jwt", jwt: { sign: { alg: "ES256" } } };
const [resource, scope] = ["urn:api", "openid api"];

// The library warns that a key and cookies of its own would be needed in production.
console.warn = console.info = () => {};
const provider = new Provider(issuer, {
  adapter: RedisAdapter,
  jwks: { keys: [key] },
  cookies: { keys: ["a key of the peer, which only this comparison uses"] },
  clients: [
    {
      client_id: "app",
      token_endpoint_auth_method: "none",
      redirect_uris: ["https://app.example/callback"],
      grant_types: ["authorization_code", "refresh_token"],
    },
    // The services, which ask whether a token is valid.
    {
      ...{ client_id: "service", client_secret: SERVICE_SECRET, token_endpoint_auth_method: "client_secret_post" },
      ...{ redirect_uris: [], grant_types: [], response_types: [] },
    },
  ],
  clientDefaults: { id_token_signed_response_alg: "ES256" },
  scopes: scope.split(" "),
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  features: {
    devInteractions: { enabled: false },
    introspection: { enabled: true },
    revocation: { enabled: true },
    ...(ROTATION === "off" && {
      resourceIndicators: { enabled: true, getResourceServerInfo: () => api, useGrantedResource: () => true },
    }),
  },
  interactions: { url: (_, { uid }) => `/sign-in/${uid}` },
  async loadExistingGrant({ oidc }) {
    const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope(scope);
    grant.addResourceScope(resource, "api");
    await grant.save();
    return grant;
  },
  issueRefreshToken: async () => true,
  expiresWithSession: async () => false,
  ...(ROTATION === "off" && { rotateRefreshToken: false }),
});

let users = 0;
const serve = provider.callback();
createServer((request, response) => {
  if (!request.url.startsWith("/sign-in/")) return void serve(request, response);
  const result = { login: { accountId: `user-${++users}` } };
  provider.interactionFinished(request, response, result).catch(() => response.destroy());
}).listen(Number(PORT), "127.0.0.1");
