/** Options that are missing or of the wrong type, as a variable of the environment that is not set makes them. */
import { describe, expect, test } from "vitest";
import { createFileStore, createTokenSession } from "../../src/client/index.ts";
import { createFetchHandler, createHttpHandler } from "../../src/connect-http-routes/index.ts";
import { createServerSessions } from "../../src/server/index.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { createVerifier as createWebVerifier } from "../../src/verifier/web/index.ts";
import { RelayServiceRoutes } from "../connect-http-routes/gen/relay/v1/relay_http.ts";

const RIGHT = { issuer: "https://a.example", audience: "https://b.example", jwksUrl: "http://127.0.0.1:9/jwks" };
const ADMIN = { adminUrl: "http://127.0.0.1:9", jwksUrl: undefined };

describe.each([
  ["Node", createVerifier],
  ["the web", createWebVerifier],
] as const)("the verifier of %s names the option", (_, create) => {
  test.each([
    [{ issuer: undefined }, "issuer must be a text that is not empty, and is undefined"],
    [{ issuer: " " }, "issuer must be a text that is not empty, and is a string"],
    [{ jwksUrl: new URL(RIGHT.jwksUrl) }, "jwksUrl must be an http:// or https:// URL"],
    [{ jwksUrl: "xhttp://a.example" }, "jwksUrl must be an http:// or https:// URL"],
    [
      { jwksUrl: "http://u:secret@a.example" },
      "jwksUrl must be an http:// or https:// URL without a password, and is a string",
    ],
    [{ jwksUrl: "http://u@a.example" }, "jwksUrl must be an http:// or https:// URL"],
    [{ maxStalenessMs: -1 }, "maxStalenessMs must be a number, at least 0"],
    [{ maxStalenessMs: Number.NaN }, "maxStalenessMs must be a number, at least 0"],
    [{ pollIntervalMs: -1 }, "pollIntervalMs must be a number from 0 to maxStalenessMs"],
    [{ pollIntervalMs: 5001 }, "pollIntervalMs must be a number from 0 to maxStalenessMs"],
    [{ cacheSize: 1 }, "cacheSize must be a whole number, at least 2"],
    [{ cacheSize: 2.5 }, "cacheSize must be a whole number, at least 2"],
    [{ issuer: "" }, "issuer must be a text that is not empty, and is empty"],
    [{ issuer: new URL(RIGHT.issuer) }, "issuer must be a text that is not empty, and is a object"],
    [{ audience: undefined }, "audience must be a text that is not empty, and is undefined"],
    [{ audience: ["a", undefined] }, "audience must be a text"],
    [{ audience: [] }, "audience must be a text, or a list of texts"],
    [{ jwksUrl: undefined }, "needs adminUrl or jwksUrl"],
    [{ jwksUrl: "keys" }, "jwksUrl must be an http:// or https:// URL"],
    [{ ...ADMIN, adminUrl: "localhost:8081", adminToken: "x" }, "adminUrl must be an http:// or https:// URL"],
    [{ ...ADMIN, adminToken: "" }, "adminToken must be a text that is not empty, and is empty"],
    [{ ...ADMIN, adminToken: null }, "adminToken must be a text that is not empty, and is null"],
    [{ ...ADMIN, adminToken: "x", policy: "reject" }, "policy must be one of introspect, refuse"],
    [{ revocations: "status-list" }, "revocations was removed: sessions that end are learned from adminUrl"],
    [{ report: console }, "report must be a function"],
  ])("%j", (change, message) => {
    const saying = expect.objectContaining({ message: expect.stringContaining(message) });
    expect(() => create({ ...RIGHT, ...change } as never)).toThrow(saying);
  });

  test.each([
    {},
    { maxStalenessMs: 0, pollIntervalMs: 0 },
    { pollIntervalMs: 5000 },
    { cacheSize: 2 },
    { ...ADMIN, adminToken: () => "x", policy: "refuse", report: () => {} },
  ])("and accepts what is right: %j", (change) => {
    create({ ...RIGHT, ...change } as never).close();
  });
});

test.each([
  ["createVerifier", () => createVerifier(undefined as never), "createVerifier needs options"],
  ["createVerifier", () => createVerifier(null as never), "createVerifier needs options"],
  ["createServerSessions without a service", () => createServerSessions({ verifier: {} } as never), "service must be"],
  [
    "createServerSessions without a verifier",
    () => createServerSessions({ service: "http://127.0.0.1:8080" } as never),
    "verifier must be a verifier",
  ],
  ["createServerSessions", () => createServerSessions(undefined as never), "service must be"],
  [
    "createTokenSession with a password in the URL",
    () => createTokenSession({ service: "http://:secret@a.example" } as never),
    "service must be",
  ],
  ["createTokenSession", () => createTokenSession({ service: undefined } as never), "service must be"],
  ["createTokenSession", () => createTokenSession({ service: "https://a.example" } as never), "clientId must be"],
  [
    "createTokenSession",
    () => createTokenSession({ service: "https://a.example", clientId: "cli", store: {} } as never),
    "store must have load, save and clear",
  ],
  ["createFileStore", () => createFileStore(undefined as never), "needs the path of a file"],
  ["createHttpHandler", () => createHttpHandler({ routes: () => {} } as never), "tables must be a list"],
  [
    "createHttpHandler",
    () => createHttpHandler({ tables: [RelayServiceRoutes] } as never),
    "routes must be a function",
  ],
  ["createFetchHandler", () => createFetchHandler({} as never), "tables must be a list"],
])("%s says what is missing", (_, create, message) => {
  expect(create).toThrow(message);
});
