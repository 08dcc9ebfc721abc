/** Attacks that change or omit the claims of a token. */
import { afterAll, describe, expect, test } from "vitest";
import type { Refusal } from "../../src/verifier/index.ts";
import { claims, head, json, now, raw, signed, token } from "../support/verifier/forge.ts";
import { AUDIENCE, ISSUER } from "../support/verifier/issuer.ts";
import { startTarget } from "../support/verifier/target.ts";

const target = await startTarget();
const { verdictOf } = target;
afterAll(() => target.close());

describe("every attack is rejected with a closed reason", () => {
  const header = json(head);

  test.each<[string, string, Refusal]>([
    ["another issuer", token({}, { iss: "https://evil.example" }), "wrong_issuer"],
    ["an issuer with one more slash", token({}, { iss: `${ISSUER}/` }), "wrong_issuer"],
    ["a list of issuers", token({}, { iss: [ISSUER] }), "wrong_issuer"],
    ["no issuer", token({}, { iss: undefined }), "wrong_issuer"],
    ["another audience", token({}, { aud: "https://other.example" }), "wrong_audience"],
    ["no audience", token({}, { aud: undefined }), "malformed"],
    ["an empty list of audiences", token({}, { aud: [] }), "wrong_audience"],
    ["an audience with the expected prefix", token({}, { aud: `${AUDIENCE}.evil.example` }), "wrong_audience"],
    ["an audience that is not a string", token({}, { aud: [AUDIENCE, 1] }), "malformed"],
    [
      "a token bound to a key",
      token({}, { cnf: { jkt: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" } }),
      "not_bearer",
    ],
    ["a token bound to nothing", token({}, { cnf: null }), "not_bearer"],
    ["no exp", token({}, { exp: undefined }), "malformed"],
    ["exp as text", token({}, { exp: String(now + 86_400) }), "malformed"],
    ["exp null", token({}, { exp: null }), "malformed"],
    ["exp infinite", signed(header, raw(JSON.stringify(claims).replace(/"exp":\d+/, '"exp":1e999'))), "malformed"],
    ["iat infinite", signed(header, raw(JSON.stringify(claims).replace(/"iat":\d+/, '"iat":1e999'))), "malformed"],
    ["nbf negative infinity", signed(header, raw(`{"nbf":-1e999,${JSON.stringify(claims).slice(1)}`)), "not_yet_valid"],
    ["exp before iat", token({}, { exp: now + 86_400, iat: now + 86_401 }), "malformed"],
    ["exp now", token({}, { exp: now }), "expired"],
    ["exp in the past", token({}, { exp: now - 1 }), "expired"],
    ["exp negative", token({}, { exp: -1 }), "expired"],
    ["nbf in the future", token({}, { nbf: now + 86_400 }), "not_yet_valid"],
    ["nbf as text", token({}, { nbf: "0" }), "not_yet_valid"],
    ["no iat", token({}, { iat: undefined }), "malformed"],
    ["no sub", token({}, { sub: undefined }), "malformed"],
    ["sub an object", token({}, { sub: { id: 1 } }), "malformed"],
    ["no sid, so that no revocation could match", token({}, { sid: undefined }), "malformed"],
    ["an empty sid", token({}, { sid: "" }), "malformed"],
    ["sid a list", token({}, { sid: [claims.sid] }), "malformed"],
    ["no jti", token({}, { jti: undefined }), "malformed"],
    ["no client_id", token({}, { client_id: undefined }), "malformed"],
    ["sv as text", token({}, { sv: "9" }), "malformed"],
    ["sv null", token({}, { sv: null }), "malformed"],
    ["sv negative", token({}, { sv: -1 }), "malformed"],
    ["sv with a fraction", token({}, { sv: 1.5 }), "malformed"],
    ["sv greater than any mark", token({}, { sv: 2 ** 32 }), "malformed"],
    ["act as text", token({}, { act: "support-1" }), "malformed"],
    ["act null", token({}, { act: null }), "malformed"],
    ["act without sub", token({}, { act: {} }), "malformed"],
    ["act with an empty sub", token({}, { act: { sub: "" } }), "malformed"],
    ["act of somebody whose own act is null", token({}, { act: { sub: "support-1", act: null } }), "malformed"],
  ])("%s", async (_, attack, reason) => {
    expect(await verdictOf(attack)).toBe(reason);
  });

  test.each([
    { sv: 0 },
    { sv: 2 ** 32 - 1 },
    { act: { sub: "support-1" } },
    { sv: 1, act: { sub: "agent-1", act: { sub: "support-1", iss: ISSUER } } },
  ])("but not a token with %j", async (more) => {
    expect(await verdictOf(token({}, more))).toBe("ok");
  });
});
