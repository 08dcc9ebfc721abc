import { expect, test } from "vitest";
import { parseProviders } from "../../../src/service/config/providers.ts";
import { userOf } from "../../../src/service/sign-in/user.ts";

function settings(more: object = {}) {
  const entry = { name: "staff", issuer: "https://login.example.com", client_id: "app", ...more };
  const [parsed] = parseProviders(JSON.stringify({ providers: [entry] }));
  if (parsed === undefined) throw new Error("there is no provider");
  return parsed;
}

test("claims are found by name before they are found by path", () => {
  const claims = {
    url: "https://example.com/role",
    roles: "realm.roles",
    absent: "realm.none",
    proto: "realm.__proto__",
  };
  const given = { sub: "alice", "https://example.com/role": "admin", realm: { roles: ["a"] } };
  expect(userOf(settings({ claims }), given, [""])).toMatchObject({ user: { claims: { url: "admin", roles: ["a"] } } });
});

test("a user has one of the required values in every required claim", () => {
  const required = settings({ require: { groups: ["a", "b"], email_verified: true } });
  const check = (claims: object) => userOf(required, { sub: "alice", ...claims }, [""]).ok;
  expect(check({ groups: ["c", "b"], email_verified: true })).toBe(true);
  for (const claims of [
    {},
    { groups: ["a"] },
    { groups: "ab", email_verified: true },
    { groups: ["a"], email_verified: "true" },
  ]) {
    expect(check(claims)).toBe(false);
  }
});

test("no user of one provider gets a subject of another", () => {
  const prefixes = ["", "guests:"];
  expect(userOf(settings(), { sub: "guests:bob" }, prefixes)).toMatchObject({ ok: false, reason: "subject" });
  const guests = settings({ subject_prefix: "guests:" });
  expect(userOf(guests, { sub: "bob" }, prefixes)).toMatchObject({ user: { subject: "guests:bob" } });
});

test("what a provider says about the authentication is bounded", () => {
  const amr = ["pwd", 1, "", "a".repeat(256), ...Array.from({ length: 30 }, (_, index) => `m${index}`)];
  const found = userOf(settings(), { sub: "a", amr, acr: "a\nb", auth_time: -1 }, [""]);
  if (!found.ok) throw new Error(found.reason);
  expect(found.user).toMatchObject({ contextClass: "", authTimeSeconds: undefined });
  expect([found.user.methods.length, found.user.methods[0]]).toEqual([16, "pwd"]);
  expect(userOf(settings(), { sub: "a".repeat(256) }, [""]).ok).toBe(false);
});
