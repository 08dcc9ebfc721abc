/** The client learns from responses what its next proofs need: the nonce and the time of each origin. */
import { expect, test } from "vitest";
import { generateProofKey, importProofKey } from "../../src/client/proof-key.ts";
import { createProofs } from "../../src/client/proofs.ts";

const NOW = 1_800_000_000_000;
const HOUR = 3_600_000;
const key = await importProofKey(await generateProofKey());

const proofs = () => createProofs({ now: () => NOW });
const at = (time: number, more: Record<string, string> = {}) =>
  new Headers({ date: new Date(time).toUTCString(), ...more });
async function claimsFor(from: ReturnType<typeof proofs>, url: string) {
  const proof = await from.create(key, { method: "GET", url });
  const { iat, nonce } = JSON.parse(Buffer.from(proof.split(".")[1] ?? "", "base64url").toString());
  return { aheadMs: iat * 1000 - NOW, nonce };
}

test("each origin has its own clock and its own nonce", async () => {
  const own = proofs();
  expect(own.learn("https://auth.example/token", at(NOW, { "dpop-nonce": "a" }))).toBe(true);
  expect(own.learn("https://api.example/things", at(NOW + HOUR, { "dpop-nonce": "b" }))).toBe(true);
  expect(await claimsFor(own, "https://auth.example/revoke")).toEqual({ aheadMs: 0, nonce: "a" });
  expect(await claimsFor(own, "https://api.example/others")).toEqual({ aheadMs: HOUR, nonce: "b" });
  expect(await claimsFor(own, "https://new.example/")).toEqual({ aheadMs: 0, nonce: undefined });
  expect(own.learn("https://api.example/", at(NOW - HOUR))).toBe(false);
  expect(await claimsFor(own, "https://api.example/")).toEqual({ aheadMs: -HOUR, nonce: "b" });
});

test("the response of a cache says nothing about the time", async () => {
  const own = proofs();
  own.learn("https://api.example/", at(NOW + 1000));
  own.learn("https://api.example/", at(NOW - HOUR, { age: "3600" }));
  expect((await claimsFor(own, "https://api.example/")).aheadMs).toBe(1000);
});
