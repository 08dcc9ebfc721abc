/** Ory Hydra, whose program is built elsewhere, on PostgreSQL. Its login page is played by the client: everybody is signed in. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../support/free-port.ts";
import { startProgram, whileRunning } from "../../../support/processes.ts";
import { scratch } from "../../../support/service.ts";
import { APP, authorizationCode } from "./authorization-code.ts";
import { introspecting, json, type Running, succeed } from "./contender.ts";
import { startPostgres } from "./postgres.ts";

/** Where Hydra sends browsers for a login. Nothing listens there. */
const LOGIN = "http://127.0.0.1:9";

/** @param postgres the directory with the programs of PostgreSQL */
export function startHydra(command: string, postgres: string, gracePeriod: string) {
  return async (): Promise<Running> => {
    const [store, port, adminPort] = [await startPostgres(postgres), await freePort(), await freePort()];
    const [url, admin] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}/admin`];
    const config = {
      dsn: `${store.url}&max_conns=50&max_idle_conns=50`,
      secrets: { system: ["a secret of the peer, which only this comparison uses"] },
      urls: { self: { issuer: url }, login: `${LOGIN}/login`, consent: `${LOGIN}/consent` },
      serve: { public: { port, host: "127.0.0.1" }, admin: { port: adminPort, host: "127.0.0.1" } },
      oauth2: { grant: { refresh_token: { rotation_grace_period: gracePeriod } } },
      log: { level: "error" },
      sqa: { opt_out: true },
    };
    const file = join(scratch(), "hydra.json");
    writeFileSync(file, JSON.stringify(config));
    execFileSync(command, ["migrate", "sql", "--yes", "--config", file, "-e"], {
      stdio: "ignore",
      env: { DSN: config.dsn },
    });
    const program = startProgram(command, ["serve", "all", "--dev", "--config", file]);
    await whileRunning(program, () => succeed(`${url}/health/ready`));
    const ask = async (path: string, method: string, body: object) =>
      JSON.parse((await succeed(admin + path, { method, headers: json, body: JSON.stringify(body) })).text);
    // Of its own, it makes one for RS256 at the first login. All contenders sign by ES256.
    await ask("/keys/hydra.openid.id-token", "POST", { alg: "ES256", use: "sig", kid: "1" });
    await ask("/clients", "POST", {
      ...{ client_id: APP.client_id, redirect_uris: [APP.redirect_uri], token_endpoint_auth_method: "none" },
      ...{ grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], scope: "openid offline" },
    });
    let users = 0;
    const follow = async ({ origin, pathname, searchParams }: URL): Promise<string | undefined> => {
      if (origin !== LOGIN) return undefined;
      const what = pathname.slice(1);
      const body = what === "login" ? { subject: `user-${++users}` } : { grant_scope: ["openid", "offline"] };
      const challenge = `${what}_challenge=${searchParams.get(`${what}_challenge`)}`;
      return (await ask(`/oauth2/auth/requests/${what}/accept?${challenge}`, "PUT", body)).redirect_to;
    };
    const endpoints = { authorize: `${url}/oauth2/auth`, token: `${url}/oauth2/token`, revoke: `${url}/oauth2/revoke` };
    const client = authorizationCode(endpoints, { scope: "openid offline" }, follow);
    return {
      pid: program.pid,
      store,
      ...client,
      checkedBy: "introspection",
      startServices: introspecting(`${admin}/oauth2/introspect`, {}),
      lifeSeconds: () => Number.NaN,
      async stop() {
        await program.stop();
        await store.stop();
      },
    };
  };
}
