/** gen/openapi.json and the running service agree: every operation responds as documented. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OAuthServiceRoutes } from "../../../gen/auth/v1/oauth_http.ts";
import { SessionServiceRoutes } from "../../../gen/auth/v1/session_http.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { ERRORS } from "../../../src/service/session/errors.ts";
import { generated } from "../../protoc-gen-http-openapi/describe.ts";
import {
  type Document,
  operationsOf,
  type Place,
  resolve,
  schemaChecker,
} from "../../protoc-gen-http-openapi/document.ts";
import { BOUND, challengeOf, deviceKey, REGISTER, registration } from "../../support/device.ts";
import { type RawRequest, type RawResponse, request } from "../../support/raw-http.ts";
import { type Service, startService } from "../../support/service.ts";
import { bearer, cookie, type LoggedIn, logIn, somebody } from "../../support/sessions.ts";

let service: Service;
beforeAll(async () => {
  service = await startService(BOUND);
});
afterAll(async () => {
  await service.stop();
});

/** The OpenAPI document, changed so that a response with a member that its schema does not declare is invalid. */
const closed: Document = structuredClone(generated);
for (const schema of Object.values(closed.components.schemas)) Object.assign(schema, { additionalProperties: false });
const check = schemaChecker(closed);

/** The operations other than those of OAuth, whose forms and errors `test/service/composition/oauth.test.ts` checks. */
const places = operationsOf(generated).filter(({ operation }) => operation.tags[0] === "SessionService");
const titleOf = ({ method, path }: Place) => `${method} ${path}`;
const titled = places.map((place) => [titleOf(place), place] as const);
/** The operations that are not RPCs: the key set. */
const pages = operationsOf(generated).filter(({ operation }) => operation.tags[0] === "Verification");

/** Sends the request that an operation describes, with the required credential. */
function ask({ method, path, operation }: Place, who: LoggedIn | undefined, change: Partial<RawRequest> = {}) {
  const [scheme = ""] = Object.keys(operation.security?.[0] ?? {});
  const { type, in: place, name } = generated.components.securitySchemes?.[scheme] ?? {};
  let credential: Record<string, string> = {};
  if (who !== undefined) credential = type === "http" ? bearer(who.accessToken) : cookie(who.refreshToken);
  if (type !== "http") expect([place, name]).toEqual(["cookie", "refresh_token"]);
  const body = operation.requestBody === undefined ? undefined : "{}";
  const content: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  return request(service.publicUrl, {
    method,
    path: path.replace("{session_id}", who?.sid ?? "nobody"),
    body,
    ...change,
    headers: { ...content, ...credential, ...change.headers },
  });
}

/** Checks a response against its description in the document: that of its status, or `default` if there is none. */
function expectAsDescribed({ operation }: Place, response: RawResponse, status: number) {
  expect(response.status, response.body).toBe(status);
  expect(Object.keys(operation.responses)).toContain(String(status));
  const { headers = {}, content = {} } = resolve(
    generated,
    operation.responses[status] as Document["components"]["responses"][""],
  );
  for (const [name, { required }] of Object.entries(headers)) {
    if (required) expect(response.headers.get(name), name).not.toBeNull();
  }
  expect(Object.keys(content)).toContain(response.headers.get("content-type"));
  expect(check(content["application/json"]?.schema ?? { not: {} }, JSON.parse(response.body))).toEqual([]);
}

test("every route is an operation, and every operation a route", () => {
  const routes = [...SessionServiceRoutes.routes, ...OAuthServiceRoutes.routes];
  const titles = operationsOf(generated).map(titleOf);
  const described = [...routes.map(({ method, template }) => `${method} ${template}`), ...pages.map(titleOf)];
  expect(titles.sort()).toEqual(described.sort());
  expect(new Set(SessionServiceRoutes.routes.map(({ rpc }) => rpc)).size).toBe(SessionService.methods.length);
});

test("the key set is served as described, without a credential", async () => {
  expect(pages.map(titleOf)).toEqual(["GET /.well-known/jwks.json"]);
  for (const { path, operation } of pages) {
    expect(operation.security).toEqual([{}]);
    const response = await request(service.publicUrl, { path });
    const { headers = {}, content = {} } = operation.responses[200] as Document["components"]["responses"][""];
    for (const name of Object.keys(headers)) expect(response.headers.get(name), name).not.toBeNull();
    const schema = content[response.headers.get("content-type") ?? ""]?.schema;
    expect(check(schema ?? { not: {} }, JSON.parse(response.body))).toEqual([]);
  }
});

test("the error table is that of the service", () => {
  const { Error: envelope, ...schemas } = generated.components.schemas;
  expect(JSON.stringify(envelope)).toContain(JSON.stringify(Object.keys(ERRORS)));
  expect(Object.keys(generated.components.responses).sort()).toEqual([...Object.keys(ERRORS), "default"].sort());
  expect(Object.keys(schemas).every((name) => name.startsWith("auth.v1."))).toBe(true);
});

/** The operations that read a body. A DELETE may have a body although the document does not describe one. */
const withBody = titled.filter(([, { operation }]) => "415" in operation.responses);
const having = (kind: "path" | "query") =>
  titled.filter(([, { operation }]) => operation.parameters?.some((parameter) => parameter.in === kind));

/** Returns the header with a proof for the device routes. */
function proofFor({ path }: Place, { secureSessionRegistration }: LoggedIn): Record<string, string> {
  if (!path.startsWith(REGISTER)) return {};
  return { "secure-session-response": registration(deviceKey(), challengeOf(secureSessionRegistration) ?? "") };
}

test.each(titled)("%s succeeds as documented", async (_, place) => {
  const subject = somebody();
  await logIn(service, { subject, client: { userAgent: "u", ipAddress: "192.0.2.1", displayName: "d" } });
  const who = await logIn(service, { subject });
  expectAsDescribed(place, await ask(place, who, { headers: proofFor(place, who) }), 200);
});

const isOptional = ({ operation }: Place) => operation.security?.some((one) => Object.keys(one).length === 0);

test.each(titled.filter(([, place]) => !isOptional(place)))("%s asks for its credential", async (_, place) => {
  expectAsDescribed(place, await ask(place, undefined), 401);
});

test.each(titled.filter(([, place]) => isOptional(place)))("%s needs no credential", async (_, place) => {
  expectAsDescribed(place, await ask(place, undefined), 200);
});

test("the admin API asks for the body of each operation, if only an empty message", async () => {
  const document = JSON.parse(readFileSync("gen/openapi-admin.json", "utf8")) as Document;
  // Annotated routes are left out, because they accept a request without a body as an empty message.
  const rpcs = operationsOf(document).filter(({ path }) => path.startsWith("/auth.admin.v1.SessionAdminService/"));
  for (const { path, operation } of rpcs) {
    const response = await request(service.adminUrl, { method: "POST", path, headers: bearer(service.adminToken) });
    expect([path, operation.requestBody?.required, response.status]).toEqual([path, true, 415]);
  }
});

test.each(titled)("%s refuses a foreign origin", async (_, place) => {
  const headers = { origin: "https://elsewhere.example" };
  expectAsDescribed(place, await ask(place, await logIn(service), { headers }), 403);
});

test.each(withBody)(
  "%s refuses a body that is not JSON, is called something else, or is too large",
  async (_, place) => {
    const who = await logIn(service);
    expectAsDescribed(place, await ask(place, who, { body: "{" }), 400);
    expectAsDescribed(place, await ask(place, who, { headers: { "content-type": "text/plain" } }), 415);
    expectAsDescribed(place, await ask(place, who, { body: `{"a":"${"a".repeat(70_000)}"}` }), 413);
  },
);

test.each(having("query"))("%s refuses a bad query", async (_, place) => {
  const path = `${place.path}?pageSize=many&sessionId=a&sessionId=b`;
  expectAsDescribed(place, await ask(place, await logIn(service), { path }), 400);
});

test.each(having("path"))("%s does not know what is somebody else's", async (_, place) => {
  const { sid } = await logIn(service);
  const path = place.path.replace("{session_id}", sid);
  expectAsDescribed(place, await ask(place, await logIn(service), { path }), 404);
});

test.each(titled)("%s is among the methods that its path allows, and PUT is not", async (_, place) => {
  const response = await ask(place, undefined, { method: "PUT" });
  expect(response.status).toBe(405);
  expect(response.headers.get("allow")?.split(", ")).toContain(place.method);
});
