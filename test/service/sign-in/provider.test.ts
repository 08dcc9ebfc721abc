import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { oneProvider } from "../../../src/service/config/providers.ts";
import { createProvider } from "../../../src/service/sign-in/provider.ts";
import { freePort } from "../../support/free-port.ts";
import { startProvider } from "../../support/oidc-provider.ts";
import { scratch } from "../../support/service.ts";

const CALLBACK = "https://app.example.com/v1/auth/callback";
const pair = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const { publicKey, privateKey } = pair();
let provider: Awaited<ReturnType<typeof startProvider>>;

beforeAll(async () => {
  provider = await startProvider({
    enabledJWA: { clientAuthSigningAlgValues: ["ES256"] },
    clients: [
      {
        client_id: "app",
        token_endpoint_auth_method: "private_key_jwt",
        token_endpoint_auth_signing_alg: "ES256",
        jwks: { keys: [{ ...publicKey.export({ format: "jwk" }), alg: "ES256", kty: "EC" }] },
        redirect_uris: [CALLBACK],
      },
    ],
  });
});
afterAll(() => provider?.stop());

function providerWith(key: KeyObject) {
  const path = join(scratch(), "key.pem");
  writeFileSync(path, key.export({ type: "pkcs8", format: "pem" }));
  const credential = { kind: "key_file", path, algorithm: "ES256" } as const;
  return createProvider(oneProvider({ issuer: provider.issuer, clientId: "app", credential }));
}

test("a client with a private key pushes its request, and no other does", async () => {
  const begun = await providerWith(privateKey).begin(CALLBACK, { maxAgeSeconds: 60 });
  if (!begun.ok) throw new Error(begun.code);
  // The browser carries a reference alone (RFC 9126), so that nothing of the request can be changed on the way.
  expect([...begun.url.searchParams.keys()].sort()).toEqual(["client_id", "request_uri"]);
  const refused = await providerWith(pair().privateKey).begin(CALLBACK, {});
  expect(refused).toMatchObject({ ok: false, reason: "invalid", code: "invalid_client" });
});

test("many logins at once read the metadata once", async () => {
  const one = providerWith(privateKey);
  const before = provider.requests.filter((path) => path.startsWith("/.well-known")).length;
  await Promise.all(Array.from({ length: 20 }, () => one.begin(CALLBACK, {})));
  expect(provider.requests.filter((path) => path.startsWith("/.well-known")).length - before).toBe(1);
});

test("metadata without end, of another issuer, or none at all are failures", async () => {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  let body = "";
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(body);
  }).listen(port, "127.0.0.1");
  const begin = () =>
    createProvider(oneProvider({ issuer, clientId: "app", credential: { kind: "none" } })).begin(CALLBACK, {});
  const metadata = { issuer, authorization_endpoint: `${issuer}/auth` };
  body = JSON.stringify(metadata);
  expect(await begin()).toMatchObject({ ok: true });
  body = JSON.stringify({ ...metadata, more: "a".repeat(300_000) });
  expect(await begin()).toMatchObject({ ok: false });
  body = JSON.stringify({ issuer: "https://login.example.com", authorization_endpoint: "https://login.example.com/" });
  expect(await begin()).toMatchObject({ ok: false, reason: "invalid" });
  server.close();
  server.closeAllConnections();
  expect(await begin()).toMatchObject({ ok: false, reason: "unavailable" });
});
