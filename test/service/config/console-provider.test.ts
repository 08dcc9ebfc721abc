import { expect, test } from "vitest";
import { readConfig } from "../../../src/service/config/config.ts";
import { parseConsoleProvider } from "../../../src/service/config/console-provider.ts";

const GRANT = { require: { groups: "support" }, scopes: ["sessions:read"] };
const PROVIDER = { name: "staff", issuer: "https://login.example.com", client_id: "console", grants: [GRANT] };
const parse = (change: object) => parseConsoleProvider(JSON.stringify({ ...PROVIDER, ...change }));

test("operators are named by their subject unless another claim is configured", () => {
  expect(parse({})).toMatchObject({ title: "staff", operatorName: "sub", scopes: ["openid"] });
  expect(parse({ operator_name: "email" }).operatorName).toBe("email");
});

test.each<[string, object, string]>([
  ["no grant", { grants: [] }, "grants: is empty"],
  ["a grant for everybody", { grants: [{ ...GRANT, require: {} }] }, "grants[0].require: is empty"],
  ["a grant of nothing", { grants: [{ ...GRANT, scopes: [] }] }, "grants[0].scopes: is empty"],
  [
    "a scope that the console has no use for",
    { grants: [{ ...GRANT, scopes: ["sessions:create"] }] },
    "must be one of",
  ],
  ["a member that only users have", { claims: {} }, "is not known"],
  ["a provider that anybody in between can be", { issuer: "http://login.example.com" }, "must be an https URL"],
])("%s is refused", (_, change, message) => {
  expect(() => parse(change)).toThrow(message);
});

test("a provider without a console is refused", () => {
  const env = { CONSOLE: "off", CONSOLE_PROVIDER_FILE: import.meta.filename };
  expect(() => readConfig(env)).toThrow("CONSOLE_PROVIDER_FILE needs CONSOLE=on");
});
