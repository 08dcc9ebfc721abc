import { expect, test } from "vitest";
import { createSignInRecords, createSignIns } from "../../../../src/service/pages/console/sign-ins.ts";
import { SCOPES } from "../../../../src/service/session/admin/access.ts";

const MINUTE = 60_000;

function setUp() {
  let now = 0;
  let setBackMs = 0;
  let count = 0;
  const tokens = new Set(["token", "other token"]);
  const admin = { name: "admin", scopes: new Set(SCOPES) };
  const signIns = createSignIns({
    adminOf: (credential) => (credential.kind === "operator" || tokens.has(credential.token) ? admin : undefined),
    records: createSignInRecords(
      () => now - setBackMs,
      () => now,
    ),
    secret: () => `secret-${count++}`,
  });
  const add = async (token = "token") => (await signIns.add({ kind: "token", token })) ?? "";
  return { signIns, tokens, add, wait: (ms: number) => (now += ms), setBack: (ms: number) => (setBackMs += ms) };
}

test("a sign-in ends after 30 minutes without use, and after 8 hours in any case", async () => {
  const { signIns, add, wait } = setUp();
  const [unused, used] = [await add(), await add()];
  for (let minutes = 0; minutes < 8 * 60; minutes += 20) {
    expect((await signIns.find(used))?.admin.name, `${minutes} minutes`).toBe("admin");
    wait(20 * MINUTE);
  }
  expect(await signIns.find(used)).toBeUndefined();
  expect(await signIns.find(unused)).toBeUndefined();
});

test.each([
  ["an hour", 60, 60],
  ["a quarter of an hour", 15, 15],
  ["a day", 24 * 60, 8 * 60],
])("an operator whose login at the provider ends in %s", async (_, minutes, expected) => {
  const { signIns, wait } = setUp();
  const operator = { issuer: "https://login.example.com", subject: "a", name: "staff:a", satisfied: ["x"] };
  const cookie = await signIns.add({ kind: "operator", operator: { ...operator, endsAtMs: minutes * MINUTE } });
  let passed = 0;
  while ((await signIns.find(cookie ?? "")) !== undefined) {
    wait(5 * MINUTE);
    passed += 5;
  }
  expect(passed).toBe(expected);
});

test("a clock that is set back makes no sign-in longer", async () => {
  const { signIns, add, wait, setBack } = setUp();
  const [unused, used] = [await add(), await add()];
  setBack(24 * 60 * MINUTE);
  for (let minutes = 0; minutes < 8 * 60; minutes += 20) {
    expect((await signIns.find(used))?.admin.name, `${minutes} minutes`).toBe("admin");
    wait(20 * MINUTE);
  }
  expect(await signIns.find(used)).toBeUndefined();
  expect(await signIns.find(unused)).toBeUndefined();
});

test("a token that is withdrawn ends its sign-ins", async () => {
  const { signIns, tokens, add } = setUp();
  const cookie = await add();
  tokens.clear();
  expect(await signIns.find(cookie)).toBeUndefined();
  tokens.add("token");
  expect(await signIns.find(cookie)).toBeUndefined();
});

test("a token has only so many: its oldest one makes room, and those of others stay", async () => {
  const { signIns, add } = setUp();
  const others = await add("other token");
  const cookies = await Promise.all(Array.from({ length: 201 }, () => add()));
  expect(await signIns.find(others)).toBeDefined();
  expect(await signIns.find(cookies[0] ?? "")).toBeUndefined();
  expect(await signIns.find(cookies[1] ?? "")).toBeDefined();
  expect(await signIns.find(cookies[200] ?? "")).toBeDefined();
});
