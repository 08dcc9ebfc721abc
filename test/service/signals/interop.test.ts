/** The requirements of the CAEP interoperability profile 1.0 that go beyond SSF, on the running service. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SignalsAdminService, SubscriptionKind } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { createVerifier } from "../../../src/verifier/index.ts";
import { pemOf } from "../../support/rsa-key.ts";
import { runToExit, type Service, scratch, waitFor } from "../../support/service.ts";
import { bearer, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { ISSUER, PUSH, SESSION_REVOKED, type StreamReceiver } from "./stream-receiver.ts";
import { startTransmitter } from "./stream-world.ts";
import { startReceiver } from "./world.ts";

const VERIFICATION = "https://schemas.openid.net/secevent/ssf/event-type/verification";
const operator = "operator-".repeat(5);
const keyFile = join(scratch(), "signals.pem");

let service: Service;
let receiver: StreamReceiver;
beforeAll(async () => {
  writeFileSync(keyFile, pemOf("pkcs8") + pemOf("pkcs8"), { mode: 0o600 });
  ({ service, receiver } = await startTransmitter({ SIGNALS_RSA_KEY_FILE: keyFile }));
});
afterAll(() => service.stop());

const jwks = async () =>
  (await (await fetch(`${service.publicUrl}/.well-known/jwks.json`)).json()) as {
    readonly keys: readonly { readonly kid: string; readonly alg: string }[];
  };

const logOut = async () => {
  const { sid, accessToken } = await logIn({ ...service, adminToken: operator });
  message(await openPublic(service).call(SessionService.method.logout, {}, bearer(accessToken)));
  return sid;
};

/** Verifies a token by the JWKS that the metadata names, and returns the types of its events. */
async function eventOf(token: string): Promise<string[]> {
  const rsa = (await jwks()).keys.filter(({ alg }) => alg === "RS256");
  expect(decodeProtectedHeader(token)).toEqual({ typ: "secevent+jwt", alg: "RS256", kid: rsa[0]?.kid });
  return Object.keys((await receiver.verify(token, "receiver")).events as object);
}

test("the metadata offer OAuth 2.0 beside bearer tokens", async () => {
  const { authorization_schemes } = await receiver.discover();
  expect(authorization_schemes).toEqual([{ spec_urn: "urn:ietf:rfc:6749" }, { spec_urn: "urn:ietf:rfc:6750" }]);
});

test("every key of the file is published, behind those of the key ring", async () => {
  expect((await jwks()).keys.map(({ alg }) => alg)).toEqual(["ES256", "ES256", "RS256", "RS256"]);
});

test("events that are polled are signed by RS256", async () => {
  const { json } = await receiver.streams("POST", { body: {} });
  const { endpoint_url } = json.delivery as { readonly endpoint_url: string };
  expect((await receiver.post("verification_endpoint", { stream_id: json.stream_id })).status).toBe(204);
  await logOut();
  const polled = await receiver.call("POST", endpoint_url, { returnImmediately: true });
  const types = await Promise.all(Object.values(polled.json.sets as Record<string, string>).map(eventOf));
  expect(types.flat()).toEqual([VERIFICATION, SESSION_REVOKED]);
});

test("events that are pushed are signed by RS256", async () => {
  const endpoint = await startReceiver(() => 202);
  const { json } = await receiver.streams("POST", { body: { delivery: { method: PUSH, endpoint_url: endpoint.url } } });
  await receiver.post("verification_endpoint", { stream_id: json.stream_id });
  await until(async () => expect(endpoint.received).toHaveLength(1));
  await until(async () => {
    await logOut();
    expect(endpoint.received.length).toBeGreaterThan(1);
  });
  const types = await Promise.all(endpoint.received.map(({ body }) => eventOf(body)));
  expect(new Set(types.flat())).toEqual(new Set([VERIFICATION, SESSION_REVOKED]));
  await endpoint.close();
});

describe("the algorithm of a subscription", () => {
  const create = (given: {
    readonly endpoint: string;
    readonly signingAlg?: string;
    readonly kind?: SubscriptionKind;
  }) =>
    openAdmin(service).call(
      SignalsAdminService.method.createSubscription,
      { kind: SubscriptionKind.BACKCHANNEL, audience: ["app"], ...given },
      bearer(operator),
    );

  test("signs its logout tokens, and each has its own", async () => {
    const endpoint = await startReceiver(() => 200);
    for (const signingAlg of ["RS256", "ES256", ""]) {
      const { subscription } = message(await create({ endpoint: endpoint.url, signingAlg }));
      expect(subscription?.signingAlg).toBe(signingAlg);
    }
    await logOut();
    await until(async () => expect(endpoint.received).toHaveLength(3));
    const tokens = endpoint.received.map(({ body }) => new URLSearchParams(body).get("logout_token") ?? "");
    expect(tokens.map((token) => decodeProtectedHeader(token).alg).toSorted()).toEqual(["ES256", "ES256", "RS256"]);
    const keys = createLocalJWKSet((await jwks()) as JSONWebKeySet);
    for (const token of tokens) await jwtVerify(token, keys, { issuer: ISSUER, audience: "app", typ: "logout+jwt" });
    await endpoint.close();
  });

  test("is refused if no key signs by it, or nothing is signed", async () => {
    const endpoint = "http://127.0.0.1:1/";
    for (const signingAlg of ["EdDSA", "none", "HS256"]) {
      expect(await create({ endpoint, signingAlg })).toMatchObject({ ok: false, code: "E400_INVALID_REQUEST" });
    }
    const webhook = { endpoint, signingAlg: "RS256", kind: SubscriptionKind.WEBHOOK, audience: [] };
    expect(await create(webhook)).toMatchObject({ ok: false, code: "E400_INVALID_REQUEST" });
  });
});

test("access tokens are signed by the key ring, and verifiers pass over the RSA keys", async () => {
  const { accessToken } = await logIn({ ...service, adminToken: operator });
  expect(decodeProtectedHeader(accessToken).alg).toBe("ES256");
  const jwksUrl = `${service.publicUrl}/.well-known/jwks.json`;
  const verifier = createVerifier({ issuer: ISSUER, audience: ISSUER, jwksUrl });
  expect(await verifier.verify(accessToken)).toMatchObject({ ok: true });
  await verifier.close();
});

test("keys are rotated without a restart, and a broken file is refused", async () => {
  const replaceFile = (text: string) => {
    writeFileSync(`${keyFile}.new`, text, { mode: 0o600 });
    renameSync(`${keyFile}.new`, keyFile);
  };
  const logged = (event: string) =>
    waitFor(service, () => service.stderr().includes(`"event":"${event}"`) || undefined);
  const before = await jwks();
  replaceFile("broken");
  await logged("signals_keys_refused");
  expect(await jwks()).toEqual(before);
  replaceFile(pemOf("pkcs8"));
  await logged("signals_keys_changed");
  const [key, ...others] = (await jwks()).keys.filter(({ alg }) => alg === "RS256");
  expect(others).toEqual([]);
  expect(before.keys.map(({ kid }) => kid)).not.toContain(key?.kid);
  const { json } = await receiver.streams("POST", { body: {} });
  const { endpoint_url } = json.delivery as { readonly endpoint_url: string };
  await receiver.post("verification_endpoint", { stream_id: json.stream_id });
  const polled = await receiver.call("POST", endpoint_url, { returnImmediately: true });
  const [token = ""] = Object.values(polled.json.sets as Record<string, string>);
  expect(await eventOf(token)).toEqual([VERIFICATION]);
});

test("a file that is no key stops the start, in one line", async () => {
  const broken = join(scratch(), "signals.pem");
  writeFileSync(broken, "secret", { mode: 0o600 });
  const { code, stderr } = await runToExit({ SIGNALS: "on", SIGNALS_RSA_KEY_FILE: broken });
  expect([code, stderr]).toEqual([1, `SIGNALS_RSA_KEY_FILE: ${broken}: holds no private key in PEM\n`]);
});
