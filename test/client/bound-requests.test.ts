/** The repetition of calls with a proof when the server demands another nonce. */
import { expect, test } from "vitest";
import { boundCall } from "../../src/client/bound-requests.ts";
import { generateProofKey, importProofKey } from "../../src/client/proof-key.ts";
import { createProofs } from "../../src/client/proofs.ts";

const key = await importProofKey(await generateProofKey());
const payload = Buffer.from(JSON.stringify({ cnf: { jkt: "a" }, sub: "???~~~" })).toString("base64url");

const nonceOf = (header: Headers) => {
  const [, claims = ""] = (header.get("dpop") ?? "").split(".");
  return JSON.parse(Buffer.from(claims, "base64url").toString()).nonce;
};

/** Makes a call to a server that demands a nonce. Returns the nonces that it received. */
async function nonces(stream: boolean) {
  const received: unknown[] = [];
  const deps = { proofs: createProofs({ now: () => 0 }), key: async () => key };
  const call = boundCall(deps, async ({ header }: { url: string; stream: boolean; header: Headers }) => {
    received.push(nonceOf(header));
    if (nonceOf(header) === "wanted") return "served";
    throw Object.assign(new Error("refused"), { metadata: new Headers({ "dpop-nonce": "wanted" }) });
  });
  const header = new Headers({ authorization: `Bearer a.${payload}.c` });
  const outcome = await call({ url: "https://api.example/call", stream, header }).catch(
    (error: Error) => error.message,
  );
  return { received, outcome };
}

test("the payload has both characters in which base64url differs from base64", () => {
  expect(payload).toMatch(/-.*_|_.*-/);
});

test("a call that is refused for its nonce is made again with the nonce of the refusal", async () => {
  expect(await nonces(false)).toEqual({ received: [undefined, "wanted"], outcome: "served" });
});

test("a stream is not made again, because its messages are gone", async () => {
  expect(await nonces(true)).toEqual({ received: [undefined], outcome: "refused" });
});
