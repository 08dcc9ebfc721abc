/** node-oidc-provider (../oidc-provider.js). */
import { freePort } from "../../../support/free-port.ts";
import { authorizationCode } from "./authorization-code.ts";
import { introspecting, lifeOfJwt, offline, type Running, redisWithFile } from "./contender.ts";
import { startPeer } from "./peer.ts";

export function startOidcProvider(rotation: "default" | "off") {
  return async (): Promise<Running> => {
    const [redis, port] = [await redisWithFile(), await freePort()];
    const url = `http://127.0.0.1:${port}`;
    const secret = "a secret of the services";
    const env = { REDIS_URL: redis.url, ROTATION: rotation, SERVICE_SECRET: secret };
    const program = await startPeer("oidc-provider.js", port, "/.well-known/openid-configuration", env);
    const endpoints = { authorize: `${url}/auth`, token: `${url}/token`, revoke: `${url}/token/revocation` };
    // Without `openid` there is no ID token: a refresh signs one token in each form, as this service does.
    const more: Record<string, string> =
      rotation === "off" ? { scope: "api", resource: "urn:api" } : { scope: "openid" };
    const credential = { client_id: "service", client_secret: secret };
    return {
      pid: program.pid,
      store: redis,
      ...authorizationCode(endpoints, more),
      ...(rotation === "off"
        ? { checkedBy: "JWT", startServices: offline(`${url}/jwks`), lifeSeconds: lifeOfJwt }
        : {
            checkedBy: "introspection",
            startServices: introspecting(`${url}/token/introspection`, credential),
            lifeSeconds: () => Number.NaN,
          }),
      async stop() {
        await program.stop();
        await redis.stop();
      },
    };
  };
}
