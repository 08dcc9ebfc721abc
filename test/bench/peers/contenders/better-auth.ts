/** better-auth (../better-auth.js). */
import { join } from "node:path";
import { freePort } from "../../../support/free-port.ts";
import { scratch } from "../../../support/service.ts";
import {
  asking,
  json,
  lifeOfJwt,
  offline,
  type Running,
  redisWithFile,
  send,
  sendRefresh,
  succeed,
  withCookies,
} from "./contender.ts";
import { startPeer } from "./peer.ts";

/** How long the cookie that `cookieCache` sets is trusted, in s. */
const CACHE_SECONDS = 300;

export function startBetterAuth(settings: "default" | "renewed" | "cached" | "token") {
  return async (): Promise<Running> => {
    const [port, database] = [await freePort(), join(scratch(), "auth.db")];
    const redis = settings === "default" ? undefined : await redisWithFile();
    const origin = `http://127.0.0.1:${port}`;
    const url = `${origin}/api/auth`;
    const program = await startPeer("better-auth.js", port, "/api/auth/ok", {
      ...{ DATABASE: database, SETTINGS: settings, CACHE_SECONDS: String(CACHE_SECONDS) },
      ...(redis && { REDIS_URL: redis.url }),
    });
    const isToken = settings === "token";
    let users = 0;
    const lookUp = async (cookie: string) => {
      const { status, text } = await send(`${url}/get-session`, { headers: { cookie } });
      return status === 200 && text !== "null";
    };
    return {
      pid: program.pid,
      store: redis,
      async logIn() {
        const user = { email: `user-${++users}@example.com`, password: "a password of a user", name: "A user" };
        const request = { method: "POST", headers: { ...json, origin }, body: JSON.stringify(user) };
        const { headers } = await succeed(`${url}/sign-up/email`, request);
        return { kept: withCookies("", headers), access: "" };
      },
      refresh: (held) =>
        sendRefresh(
          held,
          (init) => send(url + (isToken ? "/token" : "/get-session"), { ...init, headers: { cookie: held.kept } }),
          ({ headers, text }) => {
            const kept = withCookies(held.kept, headers);
            if (text !== "null") return { kept, access: isToken ? JSON.parse(text).token : kept };
          },
        ),
      async logOut({ kept }) {
        await succeed(`${url}/sign-out`, { method: "POST", headers: { ...json, origin, cookie: kept }, body: "{}" });
      },
      ...(isToken
        ? { checkedBy: "JWT", startServices: offline(`${url}/jwks`), lifeSeconds: lifeOfJwt }
        : { checkedBy: "session lookup", startServices: asking(lookUp), lifeSeconds: () => CACHE_SECONDS }),
      async stop() {
        await program.stop();
        await redis?.stop();
      },
    };
  };
}
