/**
 * Clients that public generators make from both OpenAPI documents: they compile, log a user in, refresh, log out and call the admin API.
 */
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GENERATORS, runProgram } from "../../support/generated-client.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { somebody } from "../../support/sessions.ts";

const DOCUMENTS = { public: "gen/openapi.json", admin: "gen/openapi-admin.json" } as const;
type Api = keyof typeof DOCUMENTS;

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

/**
 * The code of a program that logs a user in, refreshes and logs out. It calls `create`, `refresh`, `list` and `logout`, which each
 * generated client provides in its own way.
 */
const STEPS = `
  const login = await create({ subject, client: { displayName: "generated" } });
  const cookie = login.setCookie.split(";")[0] ?? "";
  const renewed = await refresh(cookie);
  const before = await list({ subject });
  await logout(renewed.accessToken);
  const after = await list({ subject });
  const names = (sessions: typeof before) => sessions.map(({ client }) => client?.displayName ?? "");
  console.log(JSON.stringify({ renewed: renewed.accessToken !== login.accessToken, before: names(before), after: names(after) }));`;

const ENVIRONMENT = `
  declare const process: { readonly env: Readonly<Record<string, string>> };
  const { PUBLIC_URL = "", ADMIN_URL = "", ADMIN_TOKEN = "", subject = "" } = process.env;`;

const PROGRAMS: Readonly<Record<"openapi-ts" | "orval", string>> = {
  "openapi-ts": `
    import { createClient, createConfig } from "./public/client";
    import * as api from "./public";
    import * as adminApi from "./admin";
    import type { AuthAdminV1CreateSessionRequest, AuthAdminV1ListSessionsRequest } from "./admin";
    ${ENVIRONMENT}
    const client = createClient(createConfig({ baseUrl: PUBLIC_URL }));
    const admin = { client: createClient(createConfig({ baseUrl: ADMIN_URL, auth: ADMIN_TOKEN })), throwOnError: true } as const;
    const create = async (body: AuthAdminV1CreateSessionRequest) =>
      (await adminApi.sessionAdminServiceCreateSession({ ...admin, body })).data;
    const list = async (body: AuthAdminV1ListSessionsRequest) =>
      (await adminApi.sessionAdminServiceListSessions({ ...admin, body })).data.sessions;
    const refresh = async (cookie: string) =>
      (await api.sessionServiceRefresh({ client, headers: { cookie }, throwOnError: true })).data.data;
    const logout = (auth: string) => api.sessionServiceLogout({ client, auth, throwOnError: true });
    ${STEPS}`,
  orval: `
    import * as api from "./public";
    import * as adminApi from "./admin";
    import type { AuthAdminV1CreateSessionRequest, AuthAdminV1ListSessionsRequest } from "./admin";
    ${ENVIRONMENT}
    const bearer = (token: string) => ({ headers: { authorization: \`Bearer \${token}\` } });
    function ok<R extends { readonly status: number }>(response: R): Extract<R, { readonly status: 200 }> {
      if (response.status !== 200) throw new Error(JSON.stringify(response));
      return response as Extract<R, { readonly status: 200 }>;
    }
    const create = async (body: AuthAdminV1CreateSessionRequest) =>
      ok(await adminApi.sessionAdminServiceCreateSession(body, bearer(ADMIN_TOKEN))).data;
    const list = async (body: AuthAdminV1ListSessionsRequest) =>
      ok(await adminApi.sessionAdminServiceListSessions(body, bearer(ADMIN_TOKEN))).data.sessions;
    const refresh = async (cookie: string) => ok(await api.sessionServiceRefresh({}, { headers: { cookie } })).data.data;
    const logout = async (token: string) => ok(await api.sessionServiceLogout(bearer(token)));
    ${STEPS}`,
};

test.each(["openapi-ts", "orval"] as const)("a client by %s compiles, and works", async (generator) => {
  const directory = scratch();
  const urls: Readonly<Record<Api, string>> = { public: service.publicUrl, admin: service.adminUrl };
  for (const api of ["public", "admin"] as const) {
    await GENERATORS[generator](resolve(DOCUMENTS[api]), join(directory, api), urls[api]);
  }
  const env = { PUBLIC_URL: service.publicUrl, ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken };
  const printed = await runProgram(directory, PROGRAMS[generator], { ...env, subject: somebody() });
  expect(printed).toEqual({ renewed: true, before: ["generated"], after: [] });
});
