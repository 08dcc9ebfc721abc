import { expect, test } from "vitest";
import { sealAnew } from "../../../src/service/signals/seal-anew.ts";
import { generateMacKey } from "../../../src/service/tokens/generate-key.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { createSecretSeal } from "../../../src/service/tokens/sealed-secret.ts";
import { NOW, someKeys } from "../../support/tokens.ts";
import { MemoryStore } from "../signals/delivery/memory-store.ts";

const SECRET = `whsec_${"A".repeat(32)}`;
const keys = someKeys();
const seal = createSecretSeal(keys);

test("a sealed secret is opened under its key, does not show it, and is never the same twice", () => {
  const sealed = seal.seal(SECRET);
  expect(seal.open(sealed)).toBe(SECRET);
  expect(Buffer.from(sealed, "base64url").includes(SECRET)).toBe(false);
  expect(seal.seal(SECRET)).not.toBe(sealed);
});

test("a sealed secret that was changed, or is of another ring, is not opened", () => {
  const bytes = Buffer.from(seal.seal(SECRET), "base64url");
  for (const at of bytes.keys()) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] as number) ^ 1;
    expect(() => seal.open(changed.toString("base64url")), String(at)).toThrow();
  }
  expect(() => createSecretSeal({ current: keys.foreign }).open(seal.seal(SECRET))).toThrow("the ring does not have");
  expect(() => seal.open("")).toThrow("malformed");
});

test("a secret that was sealed for one purpose is not opened for another", () => {
  const [one, other] = ["one", "other"].map((purpose) => createSecretSeal(keys, purpose));
  const sealed = one?.seal(SECRET) ?? "";
  expect(one?.open(sealed)).toBe(SECRET);
  for (const each of [other, seal]) expect(() => each?.open(sealed)).toThrow();
});

test("what cannot be a sealed secret is malformed and outdated, and an empty secret is neither", () => {
  const empty = Buffer.from(seal.seal(""), "base64url");
  const short = empty.subarray(0, -1).toString("base64url");
  const version = Buffer.from(empty).fill(2, 0, 1).toString("base64url");
  for (const text of ["", short, version]) expect(() => seal.open(text)).toThrow("malformed");
  expect(["", short].map((text) => seal.isOutdated(text))).toEqual([true, true]);
  const sealed = empty.toString("base64url");
  expect([seal.open(sealed), seal.isOutdated(sealed)]).toEqual(["", false]);
  expect([seal.isOutdated(seal.seal(SECRET)), createSecretSeal({ current: keys.foreign }).isOutdated(sealed)]).toEqual([
    false,
    true,
  ]);
});

test("after a rotation of the ring secrets are sealed anew, so that the earlier key can be removed", async () => {
  const [earlier] = keys.ring.mac;
  if (earlier === undefined) throw new Error("no MAC key");
  const next = { ...generateMacKey(NOW), state: "signing" } as const;
  const both = readyKeys({ ...keys.ring, mac: [next, { ...earlier, state: "retired" }] });
  const after = createSecretSeal({ current: readyKeys({ ...keys.ring, mac: [next] }) });
  const store = new MemoryStore();
  const { subscriptions } = store.seenBy({ alive: true });
  store.add("a", { filter: { subject: "alice" }, sealedSecret: seal.seal(SECRET), stream: { owner: "receiver" } });
  const { sealedSecret: _, ...definition } = (await subscriptions.get("a")) ?? {};
  await sealAnew(subscriptions, createSecretSeal({ current: both }));
  const { sealedSecret = "", ...rest } = (await subscriptions.get("a")) ?? {};
  expect(after.open(sealedSecret)).toBe(SECRET);
  expect(rest).toEqual(definition);
});

test("a secret whose key is gone keeps no other from being sealed anew", async () => {
  const next = { ...generateMacKey(NOW), state: "signing" } as const;
  const [earlier] = keys.ring.mac;
  if (earlier === undefined) throw new Error("no MAC key");
  const both = readyKeys({ ...keys.ring, mac: [next, { ...earlier, state: "retired" }] });
  const store = new MemoryStore();
  const { subscriptions } = store.seenBy({ alive: true });
  const lost = createSecretSeal({ current: keys.foreign }).seal(SECRET);
  store.add("a", { filter: {}, sealedSecret: lost });
  store.add("b", { filter: {}, sealedSecret: seal.seal(SECRET) });
  await sealAnew(subscriptions, createSecretSeal({ current: both }));
  expect((await subscriptions.get("a"))?.sealedSecret).toBe(lost);
  const after = createSecretSeal({ current: readyKeys({ ...keys.ring, mac: [next] }) });
  expect(after.open((await subscriptions.get("b"))?.sealedSecret ?? "")).toBe(SECRET);
});
