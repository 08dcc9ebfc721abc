/** Key sets that are broken, too large or at another URL. */
import { describe, expect, test } from "vitest";
import { generateSigningKey } from "../../../src/service/tokens/generate-key.ts";
import { follow } from "../../support/verifier/follow.ts";
import { startIssuer } from "../../support/verifier/issuer.ts";

/** Returns a valid public key. */
function publicKey(kid: string) {
  const { d: _, ...members } = generateSigningKey("ES256", 0).jwk ?? {};
  return { ...members, kid };
}

describe("keys", () => {
  test.each<[string, string]>([
    ["empty", ""],
    ["HTML", "<html>"],
    ["not a list", '{"keys":{}}'],
    ["an empty list", '{"keys":[]}'],
    ["longer than 100 keys", JSON.stringify({ keys: Array(101).fill(publicKey("k")) })],
    ["larger than 256 KiB", JSON.stringify({ keys: [publicKey("k")], pad: "x".repeat(300_000) })],
    ["a symmetric key", '{"keys":[{"kty":"oct","kid":"k","alg":"HS256","k":"AAAA"}]}'],
    ["an RSA key", '{"keys":[{"kty":"RSA","kid":"k","alg":"RS256","n":"AQAB","e":"AQAB"}]}'],
    [
      "a key for encryption",
      JSON.stringify({ keys: [{ ...generateSigningKey("ES256", 0).jwk, kid: "k", use: "enc" }] }),
    ],
    ["a key without a name", JSON.stringify({ keys: [generateSigningKey("ES256", 0).jwk] })],
    ["a point off the curve", '{"keys":[{"kty":"EC","crv":"P-256","kid":"k","x":"AAAA","y":"AAAA"}]}'],
    [
      "an algorithm that is not its curve's",
      JSON.stringify({ keys: [{ ...generateSigningKey("ES256", 0).jwk, kid: "k", alg: "EdDSA" }] }),
    ],
  ])("in a key set that is %s are not used", async (_, body) => {
    const issuer = await startIssuer();
    issuer.state.jwksBody = body;
    const { verdictOf, events } = follow(issuer);
    expect(await verdictOf(issuer.issue().token)).toBe("unavailable");
    expect(events.map(({ event }) => event)).toContain("keys_unreadable");
  });

  test("are read no further than the size limit", async () => {
    const issuer = await startIssuer();
    let pulls = 0;
    const endless = async () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            pulls += 1;
            if (pulls > 100) controller.close();
            else controller.enqueue(new Uint8Array(65_536).fill(0x20));
          },
        }),
      );
    const { verdictOf, events } = follow(issuer, { fetch: endless });
    expect(await verdictOf(issuer.issue().token)).toBe("unavailable");
    expect(events).toContainEqual({ event: "keys_unreadable", error: new Error("the key set is too large") });
    expect(pulls).toBeLessThan(10);
  });

  test("are not fetched from a redirect", async () => {
    const [issuer, attackerIssuer] = [await startIssuer(), await startIssuer()];
    issuer.state.jwksStatus = 302;
    issuer.state.jwksHeaders = { location: attackerIssuer.jwksUrl };
    const { verdictOf } = follow(issuer);
    expect(await verdictOf(attackerIssuer.issue().token)).toBe("unavailable");
    expect(attackerIssuer.seen.jwks).toBe(0);
  });

  test.each([
    ["for signing", { key_ops: ["sign"] }, "unknown_key"],
    ["for nothing", { key_ops: [] }, "unknown_key"],
    ["that are not a list", { key_ops: "verify" }, "unknown_key"],
    ["for verifying", { key_ops: ["verify"] }, "ok"],
  ])("with key_ops %s are used accordingly", async (_, declared, verdict) => {
    const issuer = await startIssuer();
    const [key, ...others] = issuer.jwks().keys;
    issuer.state.jwksBody = JSON.stringify({ keys: [{ ...key, ...declared }, ...others] });
    const { verifier, verdictOf } = follow(issuer);
    await verifier.ready;
    expect(await verdictOf(issuer.issue().token)).toBe(verdict);
  });

  test("are found among keys of other types", async () => {
    const issuer = await startIssuer();
    const keys = [{ kty: "RSA", kid: "r", n: "AQAB", e: "AQAB" }, null, "key", ...issuer.jwks().keys];
    issuer.state.jwksBody = JSON.stringify({ keys });
    const { verdictOf } = follow(issuer);
    expect(await verdictOf(issuer.issue().token)).toBe("ok");
  });
});
