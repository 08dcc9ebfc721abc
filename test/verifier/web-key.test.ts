/** In a runtime whose WebCrypto fails, no token is reported as forged, and no key is dropped. */
import { afterEach, expect, test, vi } from "vitest";
import { createVerifier } from "../../src/verifier/web/index.ts";
import { AUDIENCE, createForge, ISSUER, NOW_MS } from "../vectors/format.ts";
import { createSign, JWKS, publicJwk, UNPUBLISHED } from "../vectors/keys.ts";

const token = createForge(createSign([])).token();

/** Starts a verifier, with the key set of the vectors by default. */
function start(keys: object = JWKS) {
  const verifier = createVerifier({
    ...{ issuer: ISSUER, audience: AUDIENCE, jwksUrl: "http://127.0.0.1/jwks", clock: () => NOW_MS },
    fetch: async () => Response.json(keys),
  });
  return {
    close: () => verifier.close(),
    kids: () => verifier.state().kids,
    async verdict() {
      const verdict = await verifier.verify(token);
      return verdict.ok ? "accepted" : verdict.reason;
    },
  };
}

afterEach(() => void vi.restoreAllMocks());

test.each([
  ["that fails", new DOMException("out of memory", "OperationError")],
  ["without the algorithm", new DOMException("no such algorithm", "NotSupportedError")],
])("a WebCrypto %s makes tokens unavailable, when it imports and when it verifies", async (_, error) => {
  const importing = vi.spyOn(crypto.subtle, "importKey").mockRejectedValue(error);
  const without = start();
  expect(await without.verdict()).toBe("unavailable");
  without.close();
  importing.mockRestore();
  const failing = start();
  const verifying = vi.spyOn(crypto.subtle, "verify").mockRejectedValue(error);
  expect(await failing.verdict()).toBe("unavailable");
  verifying.mockRestore();
  expect(await failing.verdict()).toBe("accepted");
  failing.close();
});

test.each([
  ["that fails", new DOMException("out of memory", "OperationError")],
  ["with an error that only has the name", Object.assign(new Error("no key"), { name: "DataError" })],
])("a WebCrypto %s for one key leaves the key set unread", async (_, error) => {
  vi.spyOn(crypto.subtle, "importKey").mockRejectedValueOnce(error);
  const verifier = start({ keys: [publicJwk(UNPUBLISHED), ...JWKS.keys] });
  expect(await verifier.verdict()).toBe("unavailable");
  verifier.close();
});

test("a key that WebCrypto finds to be none is skipped, as is one of another use", async () => {
  const data = new DOMException("no key", "DataError");
  const importing = vi.spyOn(crypto.subtle, "importKey").mockRejectedValueOnce(data);
  const verifier = start({ keys: [publicJwk(UNPUBLISHED), { kty: "oct", kid: "k" }, ...JWKS.keys] });
  expect(await verifier.verdict()).toBe("accepted");
  expect(importing).toHaveBeenCalled();
  expect(verifier.kids()).toEqual(JWKS.keys.map(({ kid }) => kid));
  verifier.close();
});
