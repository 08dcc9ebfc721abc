import { describe, expect, test } from "vitest";
import { parseProviders } from "../../../src/service/config/providers.ts";
import { SettingsFileFault } from "../../../src/service/config/settings-file.ts";

const ONE = { name: "staff", issuer: "https://login.example.com", client_id: "app" };
const OTHER = { ...ONE, name: "guests" };
const parse = (...providers: unknown[]) => parseProviders(JSON.stringify({ providers }));

test("one provider has no prefix, several have their names", () => {
  expect(parse(ONE)).toMatchObject([
    { title: "staff", subjectPrefix: "", scopes: ["openid"], credential: { kind: "none" } },
  ]);
  expect(parse(ONE, OTHER).map(({ subjectPrefix }) => subjectPrefix)).toEqual(["staff:", "guests:"]);
  expect(parse({ ...ONE, subject_prefix: "" }, OTHER)[0]?.subjectPrefix).toBe("");
});

test("requirements are texts, lists of texts, and truth values", () => {
  const require = { hd: "example.com", groups: ["a", "b"], email_verified: true };
  expect(parse({ ...ONE, require })[0]?.require).toEqual({
    hd: ["example.com"],
    groups: ["a", "b"],
    email_verified: [true],
  });
});

test("a transmitter of security events is by default the provider", () => {
  const audience = "https://app.example.com";
  expect(parse({ ...ONE, security_events: { audience } })[0]?.securityEvents).toEqual({ issuer: ONE.issuer, audience });
  const given = { issuer: "https://events.example.com", audience };
  expect(parse({ ...ONE, security_events: given })[0]?.securityEvents).toEqual(given);
  expect(parse(ONE)[0]?.securityEvents).toBeUndefined();
  const poll = { poll_url: "https://events.example.com/poll", poll_token_file: "/token" };
  expect(parse({ ...ONE, security_events: { audience, ...poll } })[0]?.securityEvents?.poll).toEqual({
    url: poll.poll_url,
    tokenFile: "/token",
  });
});

test("a claim that the service sets is refused", () => {
  const text = JSON.stringify({ providers: [{ ...ONE, claims: { sid: "sid" } }] });
  expect(() => parseProviders(text, ["sid"])).toThrow("providers[0].claims.sid: is set by the service");
});

describe("refuses, by place and without the value", () => {
  test.each([
    ["providers: is empty", []],
    ['the entry has "client"', [{ ...ONE, client: "x" }], 'providers[0]: "client" is not known'],
    ["providers[0].name: must be 1 to 32", [{ ...ONE, name: "A b" }]],
    ["providers[0].issuer: must be an https URL", [{ ...ONE, issuer: "http://login.example.com" }]],
    ["providers[0].client_id: is required", [{ ...ONE, client_id: undefined }]],
    ["providers[0].userinfo: must be true or false", [{ ...ONE, userinfo: "yes" }]],
    ["providers[0].scopes[0]: is not a scope", [{ ...ONE, scopes: ["a b"] }]],
    ["providers[0].private_key_algorithm: must be one of", [{ ...ONE, private_key_algorithm: "HS256" }]],
    ["has both client_secret_file", [{ ...ONE, client_secret_file: "/a", private_key_file: "/b" }]],
    ["providers[1].name: is there twice", [ONE, ONE]],
    [
      "providers[1].subject_prefix: is there twice",
      [
        { ...ONE, subject_prefix: "" },
        { ...OTHER, subject_prefix: "" },
      ],
    ],
    ["providers[0].security_events.audience: is required", [{ ...ONE, security_events: {} }]],
    [
      "providers[0].security_events.issuer: must be an https URL",
      [{ ...ONE, security_events: { issuer: "http://a.example", audience: "a" } }],
    ],
    [
      "providers[0].security_events.issuer: must be a text of 1 to 255 bytes without control characters",
      [{ ...ONE, security_events: { issuer: null, audience: "a" } }],
    ],
    [
      "providers[0].security_events.poll_token_file: is required",
      [{ ...ONE, security_events: { audience: "a", poll_url: "https://a.example/poll" } }],
    ],
    [
      "providers[0].security_events.poll_url: must be an https URL",
      [{ ...ONE, security_events: { audience: "a", poll_url: "http://a.example", poll_token_file: "/a" } }],
    ],
    ['the entry has "jwks"', [{ ...ONE, security_events: { jwks: "x" } }], '"jwks" is not known'],
    ["providers[0].claims: must be an object", [{ ...ONE, claims: ["email"] }]],
    ["providers[0].require.hd: must be a text", [{ ...ONE, require: { hd: 1 } }]],
  ])("%s", (name, providers, fault = name) => {
    expect(() => parse(...providers)).toThrow(SettingsFileFault);
    expect(() => parse(...providers)).toThrow(fault);
  });
});
