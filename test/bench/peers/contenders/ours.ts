/** This service, as it is published, with its verifier in each service. */
import { join } from "node:path";
import { createVerifier } from "../../../../src/verifier/index.ts";
import { freePort } from "../../../support/free-port.ts";
import { startProgram, whileRunning } from "../../../support/processes.ts";
import { scratch } from "../../../support/service.ts";
import { json, lifeOfJwt, type Running, redisWithFile, send, sendRefresh, succeed, withCookies } from "./contender.ts";

const COMMAND = join(import.meta.dirname, "../../../../dist/packages/service/bin/session-service.cjs");
const ADMIN_TOKEN = "bench-admin-token-bench-admin-token";
// A few sessions carry the load of many, and the load of the machine is no reason to refuse calls.
const LIMITS = { RATE_LIMIT_REFRESH: "1000000/1s", OVERLOAD_MAX_LOOP_DELAY: "10s" };

export function startOurs(store: "redis" | "embedded") {
  return async (): Promise<Running> => {
    const redis = store === "redis" ? await redisWithFile() : undefined;
    const [port, adminPort, directory] = [await freePort(), await freePort(), scratch()];
    const [url, adminUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`];
    const keys = startProgram(process.execPath, [COMMAND, "keys", "create", "--file", join(directory, "keys.json")]);
    await keys.exited;
    const program = startProgram(process.execPath, [COMMAND], {
      env: {
        ...{ PORT: String(port), ADMIN_PORT: String(adminPort), ADMIN_TOKENS: ADMIN_TOKEN, ISSUER: url, ...LIMITS },
        ...{ KEYS_FILE: join(directory, "keys.json"), DATA_DIR: join(directory, "data") },
        ...(redis && { REDIS_URL: redis.url }),
      },
    });
    await whileRunning(program, () => succeed(`${url}/readyz`));
    let users = 0;
    return {
      pid: program.pid,
      store: redis,
      async logIn() {
        const { text } = await succeed(`${adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`, {
          method: "POST",
          headers: { ...json, authorization: `Bearer ${ADMIN_TOKEN}` },
          body: JSON.stringify({ subject: `user-${++users}` }),
        });
        return { kept: `refresh_token=${JSON.parse(text).refreshToken}`, access: "" };
      },
      refresh: (held) =>
        sendRefresh(
          held,
          (init) => send(`${url}/v1/auth/refresh`, { ...init, method: "POST", headers: { cookie: held.kept } }),
          ({ headers, text }) => ({ kept: withCookies(held.kept, headers), access: JSON.parse(text).data.accessToken }),
        ),
      async logOut({ access }) {
        await succeed(`${url}/v1/auth/logout`, { method: "DELETE", headers: { authorization: `Bearer ${access}` } });
      },
      checkedBy: "verifier with the feed",
      async startServices(count) {
        const options = { adminUrl, adminToken: ADMIN_TOKEN, issuer: url, audience: url };
        const verifiers = Array.from({ length: count }, () => createVerifier(options));
        await Promise.all(verifiers.map(({ ready }) => ready));
        return {
          services: verifiers.map((verifier) => async (access: string) => (await verifier.verify(access)).ok),
          stop: () => verifiers.forEach((verifier) => void verifier.close()),
        };
      },
      lifeSeconds: lifeOfJwt,
      async stop() {
        await program.stop();
        await redis?.stop();
      },
    };
  };
}
