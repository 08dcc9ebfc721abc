import { expect, test } from "vitest";
import { parseProviders } from "../../../src/service/config/providers.ts";
import { userOf } from "../../../src/service/sign-in/user.ts";

function settings(more: object = {}) {
  const entry = { name: "staff", issuer: "https://login.example.com", client_id: "app", ...more };
  const [parsed] = parseProviders(JSON.stringify({ providers: [entry] }));
  if (parsed === undefined) throw new Error("there is no provider");
  return parsed;
}

const NOW_MS = 1_800_000_000_000;
const read = (from: ReturnType<typeof settings>, given: Parameters<typeof userOf>[1], prefixes = [""]) =>
  userOf(from, given, prefixes, NOW_MS);

test("claims are found by name before they are found by path", () => {
  const claims = {
    url: "https://example.com/role",
    roles: "realm.roles",
    absent: "realm.none",
    proto: "realm.__proto__",
  };
  const given = { sub: "alice", "https://example.com/role": "admin", realm: { roles: ["a"] } };
  expect(read(settings({ claims }), given)).toMatchObject({ user: { claims: { url: "admin", roles: ["a"] } } });
});

test("a user has one of the required values in every required claim", () => {
  const required = settings({ require: { groups: ["a", "b"], email_verified: true } });
  const check = (claims: object) => read(required, { sub: "alice", ...claims }).ok;
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
  expect(read(settings(), { sub: "guests:bob" }, prefixes)).toMatchObject({ ok: false, reason: "subject" });
  const guests = settings({ subject_prefix: "guests:" });
  expect(read(guests, { sub: "bob" }, prefixes)).toMatchObject({ user: { subject: "guests:bob" } });
});

test("what a provider says about the authentication is bounded", () => {
  const amr = ["pwd", 1, "", "a".repeat(256), ...Array.from({ length: 30 }, (_, index) => `m${index}`)];
  const found = read(settings(), { sub: "a", amr, acr: "a\nb", auth_time: -1 });
  if (!found.ok) throw new Error(found.reason);
  expect(found.user).toMatchObject({ contextClass: "", authTimeSeconds: undefined });
  expect([found.user.methods.length, found.user.methods[0]]).toEqual([16, "pwd"]);
  expect(read(settings(), { sub: "a".repeat(256) }).ok).toBe(false);
});

test("a subject is not empty: all users without one would be the same", () => {
  expect(read(settings(), { sub: "" })).toMatchObject({ ok: false, reason: "subject" });
  expect(read(settings({ subject_prefix: "staff:" }), { sub: "" })).toMatchObject({ ok: false, reason: "subject" });
});

test.each([
  [NOW_MS / 1000 - 1, NOW_MS / 1000 - 1],
  [NOW_MS / 1000 + 1, NOW_MS / 1000],
  [Number.MAX_SAFE_INTEGER, NOW_MS / 1000],
  [1e300, undefined],
  ["1800000000", undefined],
])("the time of an authentication is not in the future: %s is %s", (auth_time, expected) => {
  const found = read(settings(), { sub: "alice", auth_time });
  expect(found.ok && found.user.authTimeSeconds).toBe(expected);
});

test.each([
  [undefined, undefined],
  [null, undefined],
  [NOW_MS / 1000 + 60, NOW_MS + 60_000],
  [NOW_MS / 1000 + 0.5, NOW_MS + 500],
])("with session_expiry %s, sessions end at %s", (session_expiry, expected) => {
  const found = read(settings(), { sub: "alice", session_expiry });
  expect(found.ok).toBe(true);
  expect(found.ok && found.user.endsAtMs).toBe(expected);
});

test.each([
  [NOW_MS / 1000, "over"],
  [0, "over"],
  [-1, "over"],
  ["1900000000", "malformed"],
  [{}, "malformed"],
  [true, "malformed"],
  [Number.NaN, "malformed"],
])("with session_expiry %s, a login is %s", (end, reason) => {
  expect(read(settings(), { sub: "alice", session_expiry: end })).toMatchObject({ ok: false, reason });
});

test("a provider that ends sessions in the far future does not limit them", () => {
  const found = read(settings(), { sub: "alice", session_expiry: 1e308 });
  expect(found.ok && found.user.endsAtMs).toBe(Number.MAX_SAFE_INTEGER);
});

test("half a surrogate pair is no part of an identity: stores would replace each of them by the same character", () => {
  expect(read(settings(), { sub: "a\ud800" })).toMatchObject({ ok: false, reason: "subject" });
  expect(read(settings(), { sub: "\ude00a" })).toMatchObject({ ok: false, reason: "subject" });
  const found = read(settings(), { sub: "\ud83d\ude00", sid: "s\ud801", acr: "\udc00", amr: ["\ud802", "pwd"] });
  expect(found).toMatchObject({ ok: true, user: { subject: "\u{1f600}", methods: ["pwd"], contextClass: "" } });
  expect(found.ok && found.user.upstream.sessionId).toBeUndefined();
});
