/** Named admin tokens: each may do exactly what its scopes allow, through every protocol. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OAuthAdminService } from "../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SharedSignalsService } from "../../../gen/auth/admin/v1/shared_signals_pb.ts";
import { SignalsAdminService } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { ServerReflection as Reflection } from "../../../gen/grpc/reflection/v1/reflection_pb.ts";
import { scopeOf } from "../../../src/service/api/admin/scopes.ts";
import { SCOPES, type Scope } from "../../../src/service/session/admin/access.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { request } from "../../support/raw-http.ts";
import { runToExit, type Service, scratch, startService, waitFor } from "../../support/service.ts";
import { admin, bearer, message, openAdmin, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const SERVICES = [SessionAdminService, OAuthAdminService, SignalsAdminService, SharedSignalsService];
const METHODS = SERVICES.flatMap(({ methods }) => methods);

const FULL = "full-".repeat(8);
const tokenOf = (scope: string) => `token-of-${scope}-`.padEnd(40, "x").replace(":", "-");
const entryOf = (scope: Scope, name = scope) => ({
  name,
  hash: createHash("sha256").update(tokenOf(scope)).digest("hex"),
  scopes: [scope],
});

const file = join(scratch(), "admins.json");
function write(admins: readonly object[]): void {
  writeFileSync(`${file}.new`, JSON.stringify({ admins }));
  renameSync(`${file}.new`, file);
}

let service: Service;
beforeAll(async () => {
  write(SCOPES.map((scope) => entryOf(scope)));
  service = await startService({
    ADMIN_TOKENS_FILE: file,
    ADMIN_TOKENS: FULL,
    METRICS_AUTH: "true",
    SIGNALS: "on",
    SIGNALS_URL: "https://signals.example",
  });
});
afterAll(() => service.stop());

test("every RPC of the admin API has a scope", () => {
  for (const method of METHODS) expect(SCOPES, method.name).toContain(scopeOf(method));
});

test("a service that has no scopes is for nobody, except reflection, which is for every admin", () => {
  for (const method of Reflection.methods) expect(scopeOf(method)).toBeUndefined();
  for (const method of SessionService.methods) {
    expect(() => scopeOf(method)).toThrow(`${SessionService.typeName} has no scopes`);
  }
});

test("the documentation has the same table", () => {
  const page = readFileSync(new URL("../../../docs/tasks/admin-tokens.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `([a-z:]+)` \| (.*) \|$/gm)].map(([, scope, rpcs = ""]) => {
    const names = [...rpcs.matchAll(/`([A-Z][A-Za-z]+)`/g)].map(([, name = ""]) => name);
    return [scope, names.sort()];
  });
  const namesOf = (scope: Scope) => METHODS.filter((method) => scopeOf(method) === scope).map(({ name }) => name);
  const table = SCOPES.map((scope) => [scope, namesOf(scope).sort()]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(table));
});

const UNARY = METHODS.filter((method) => method.methodKind === "unary");

describe.each(RPC_PROTOCOLS)("over $name", (kind) => {
  test.each(UNARY.map((method) => [method.name, method as DescMethodUnary] as const))(
    "%s is for its own scope, one that includes it, and full tokens",
    async (_, method) => {
      const caller = kind.open(service.adminUrl);
      const wanted = scopeOf(method);
      for (const scope of SCOPES) {
        const response = await caller.call(method, {}, bearer(tokenOf(scope)));
        const isIncluded = scope === "signals:manage" && wanted === "signals:receive";
        if (scope === wanted || isIncluded) expect(response, scope).not.toMatchObject({ rpc: "permission_denied" });
        else {
          expect(response, scope).toMatchObject({
            code: "E403_FORBIDDEN",
            rpc: "permission_denied",
            text: "not allowed",
          });
        }
        expect(response).not.toMatchObject({ rpc: "unauthenticated" });
      }
      expect(await caller.call(method, {}, bearer(FULL))).not.toMatchObject({ rpc: "permission_denied" });
      caller.close();
    },
  );

  test("the feed is for the scope watch, and ends when the token is withdrawn", async () => {
    const caller = kind.open(service.adminUrl);
    const watch = (token: string) => caller.stream(admin.watchRevocations, {}, bearer(token))[Symbol.asyncIterator]();
    const refused = await watch(tokenOf("introspect")).next().catch(ConnectError.from);
    expect(refused).toMatchObject({ code: Code.PermissionDenied });
    const [withdrawn, kept] = [watch(tokenOf("watch")), watch(FULL)];
    await Promise.all([withdrawn.next(), kept.next()]);
    write(SCOPES.filter((scope) => scope !== "watch").map((scope) => entryOf(scope)));
    const end = await (async () => {
      while (!(await withdrawn.next()).done);
    })().catch(ConnectError.from);
    expect(end).toMatchObject({ code: Code.Unauthenticated });
    expect((await kept.next()).done).toBe(false);
    await kept.return?.();
    write(SCOPES.map((scope) => entryOf(scope)));
    const again = () => caller.call(admin.getSession, {}, bearer(tokenOf("watch")));
    await until(async () => expect(await again()).toMatchObject({ rpc: "permission_denied" }));
    caller.close();
  });
});

test("the log names the admin who created and ended a session, and who was refused", async () => {
  const caller = openAdmin(service);
  const subject = somebody();
  const created = message(await caller.call(admin.createSession, { subject }, bearer(tokenOf("sessions:create"))));
  const sessionId = created.session?.sessionId ?? "";
  message(await caller.call(admin.revokeSession, { sessionId }, bearer(FULL)));
  const lines = () =>
    service
      .stderr()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const events = await waitFor(service, () => {
    const own = lines().filter(({ sid }) => sid === sessionId);
    return own.length === 2 ? own : undefined;
  });
  expect(events).toMatchObject([
    { event: "session_created", by: "sessions:create" },
    { event: "session_ended", by: "ADMIN_TOKENS[0]" },
  ]);
  // The call is repeated until its log line appears. The log accepts only some refusals per second, and earlier tests may have used these
  // up.
  await until(async () => {
    await caller.call(admin.revokeSession, { sessionId }, bearer(tokenOf("watch")));
    const refused = { event: "authz_failed", operation: "RevokeSession", by: "watch", scope: "sessions:revoke" };
    expect(lines()).toContainEqual(expect.objectContaining(refused));
  });
});

test("a changed file is recorded, and so is a broken one", async () => {
  const before = service.stderr().length;
  const valid = readFileSync(file, "utf8");
  writeFileSync(file, "{");
  await waitFor(service, () => service.stderr().includes('"event":"admin_tokens_refused"') || undefined);
  writeFileSync(file, valid);
  await waitFor(
    service,
    () => service.stderr().includes('"event":"file_recovered","variable":"ADMIN_TOKENS_FILE"') || undefined,
  );
  write([...SCOPES.map((scope) => entryOf(scope)), { name: "more", certificate: "more", scopes: ["watch"] }]);
  const changed = () => service.stderr().slice(before).includes('"event":"admin_tokens_changed"') || undefined;
  await waitFor(service, changed);
});

test("metrics can be closed: 401 without a credential, 403 outside the scope", async () => {
  const metrics = (headers: Record<string, string>) => request(service.adminUrl, { path: "/metrics", headers });
  expect((await metrics({})).status).toBe(401);
  expect((await metrics(bearer("x".repeat(40)))).status).toBe(401);
  expect((await metrics(bearer(tokenOf("watch")))).status).toBe(403);
  expect((await metrics(bearer(FULL))).status).toBe(200);
  const allowed = await metrics(bearer(tokenOf("metrics")));
  expect([allowed.status, allowed.body]).toEqual([200, expect.stringContaining("session_authz_failed_total")]);
});

describe("at the start", () => {
  test("a file that is broken is refused in one line", async () => {
    const broken = join(scratch(), "admins.json");
    writeFileSync(broken, "{}");
    const { code, stderr } = await runToExit({ ADMIN_TOKENS_FILE: broken });
    expect([code, stderr]).toEqual([1, `ADMIN_TOKENS_FILE: ${broken}: the file: admins is missing\n`]);
  });

  test("with a file alone no token with every scope is made", async () => {
    const alone = await startService({ ADMIN_TOKENS_FILE: file });
    expect(existsSync(join(alone.dataDir, "admin-token"))).toBe(false);
    expect(alone.stdout()).not.toContain("Try it");
    await alone.stop();
  });
});
