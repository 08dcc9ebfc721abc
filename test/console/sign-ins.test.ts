import { expect, test } from "vitest";
import { createSignIns } from "../../src/console/sign-ins.ts";
import { SCOPES } from "../../src/session/admin-access.ts";

const MINUTE = 60_000;

function setUp() {
  let now = 0;
  let count = 0;
  const tokens = new Set(["token", "other token"]);
  const admin = { name: "admin", scopes: new Set(SCOPES) };
  const signIns = createSignIns({
    access: { byToken: (token) => (tokens.has(token) ? admin : undefined) },
    clock: () => now,
    secret: () => `secret-${count++}`,
  });
  const add = (token = "token") => signIns.add(token) ?? "";
  return { signIns, tokens, add, wait: (ms: number) => (now += ms) };
}

test("a sign-in ends after 30 minutes without use, and after 8 hours in any case", () => {
  const { signIns, add, wait } = setUp();
  const [unused, used] = [add(), add()];
  for (let minutes = 0; minutes < 8 * 60; minutes += 20) {
    expect(signIns.find(used)?.admin.name, `${minutes} minutes`).toBe("admin");
    wait(20 * MINUTE);
  }
  expect(signIns.find(used)).toBeUndefined();
  expect(signIns.find(unused)).toBeUndefined();
});

test("a token that is withdrawn ends its sign-ins", () => {
  const { signIns, tokens, add } = setUp();
  const cookie = add();
  tokens.clear();
  expect(signIns.find(cookie)).toBeUndefined();
  tokens.add("token");
  expect(signIns.find(cookie)).toBeUndefined();
});

test("a token has only so many: its oldest one makes room, and those of others stay", () => {
  const { signIns, add } = setUp();
  const others = add("other token");
  const cookies = Array.from({ length: 201 }, () => add());
  expect(signIns.find(others)).toBeDefined();
  expect(signIns.find(cookies[0] ?? "")).toBeUndefined();
  expect(signIns.find(cookies[1] ?? "")).toBeDefined();
  expect(signIns.find(cookies[200] ?? "")).toBeDefined();
});
