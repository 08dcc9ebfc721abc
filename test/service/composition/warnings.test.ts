/** The warnings of the service about settings with which browsers cannot use it. */
import { expect, test } from "vitest";
import { request } from "../../support/raw-http.ts";
import { runToExit, startService, waitFor, withKeys } from "../../support/service.ts";
import { commandHere } from "../cli/command.ts";

const eventsOf = (text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("the start warns of what is allowed and will not work", async () => {
  const service = await startService({
    ALLOWED_ORIGINS: "http://localhost:3000",
    SIGNALS_URL: "https://signals.example.com",
    SHUTDOWN_TIMOUT: "5s",
  });
  const warnings = eventsOf(service.stderr()).filter(({ event }) => event === "config_warning");
  expect(warnings.map(({ msg }) => msg)).toEqual([
    expect.stringMatching(/^SHUTDOWN_TIMOUT is not a variable of this service: is SHUTDOWN_TIMEOUT meant\? /),
    expect.stringContaining("SIGNALS_URL has no effect without SIGNALS=on"),
    expect.stringContaining("browsers take localhost and 127.0.0.1 for two sites"),
  ]);
  await service.stop();
});

test("the start warns of an algorithm that no key of the ring has", async () => {
  const [ring, other] = [withKeys(), withKeys()];
  const warned = async (alg: string, DATA_DIR = ring) => {
    const service = await startService({ SIGNING_ALGORITHM: alg, DATA_DIR });
    const warnings = eventsOf(service.stderr()).filter(({ event }) => event === "config_warning");
    await service.stop();
    return warnings.map(({ msg }) => msg);
  };
  const found = "SIGNING_ALGORITHM=EdDSA has no effect on the key ring that exists";
  expect(await warned("EdDSA")).toEqual([`${found} (session-service keys rotate signing --alg EdDSA)`]);
  expect(await warned("ES256")).toEqual([]);
  await commandHere(["keys", "rotate", "signing", "--alg", "EdDSA", "--force"], { env: { DATA_DIR: other } });
  expect(await warned("EdDSA", other)).toEqual([]); // a key of this algorithm is to follow
});

test("a start that is refused names what looks misspelt beside the faults", async () => {
  const { code, stderr } = await runToExit({ MAX_BODY_BYTES: "many", ACCESS_TOKEN_TLL: "5m" });
  expect([code, stderr.trimEnd().split("\n")]).toEqual([
    1,
    [
      "MAX_BODY_BYTES is not a whole number",
      expect.stringMatching(/^ACCESS_TOKEN_TLL is not a variable of this service: is ACCESS_TOKEN_TTL meant\? /),
    ],
  ]);
});

test("the start warns of a token life in which a thief may stay unseen, and of no other", async () => {
  const warned = async (accessTokenTtl: string) => {
    const service = await startService({ REUSE_INTERVAL: "10s", ACCESS_TOKEN_TTL: accessTokenTtl });
    const found = eventsOf(service.stderr()).some(({ event }) => event === "token_life_short");
    await service.stop();
    return found;
  };
  expect(await warned("89s")).toBe(true);
  expect(await warned("90s")).toBe(false);
});

test("the start warns of a reuse interval that is shorter than the stalls it has to cover, and of no other", async () => {
  const warned = async (reuseInterval: string) => {
    const service = await startService({ REUSE_INTERVAL: reuseInterval });
    const found = eventsOf(service.stderr()).some(({ event }) => event === "reuse_interval_short");
    await service.stop();
    return found;
  };
  expect(await warned("1999ms")).toBe(true);
  expect(await warned("2s")).toBe(false);
  expect(await warned("0")).toBe(false);
});

test.each([
  ["a foreign origin", { origin: "https://a.example" }, ["ALLOWED_ORIGINS with this origin"]],
  [
    "another site",
    { origin: "https://a.example", "sec-fetch-site": "cross-site" },
    ["COOKIE_SAMESITE=None", "ALLOWED_ORIGINS with this origin"],
  ],
  ["a sibling", { "sec-fetch-site": "same-site" }, ["ALLOW_SAME_SITE=true"]],
  ["an opaque origin", { origin: "null" }, []],
  [
    "the own host from a browser without Fetch Metadata, behind a proxy that replaces the port",
    { origin: "http://localhost:5173", host: "localhost:8080" },
    [
      "a proxy in front that passes on Host as it came, and TRUST_PROXY where it ends TLS",
      "ALLOWED_ORIGINS with this origin",
    ],
  ],
])("a refusal of %s names the settings that would let it in", async (_, headers, allowedBy) => {
  const service = await startService({ ALLOW_SAME_SITE: "false" });
  expect((await request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers })).status).toBe(403);
  const found = await waitFor(service, () =>
    eventsOf(service.stderr()).find(({ event }) => event === "cross_site_refused"),
  );
  expect(found.allowedBy).toEqual(allowedBy);
  if ("host" in headers) expect(found.ownOrigin).toBe(`http://${headers.host}`);
  await service.stop();
});

test("a fraction of a second is cut off from the age of the key set", async () => {
  const service = await startService({ JWKS_MAX_AGE: "1500ms" });
  const { headers } = await request(service.publicUrl, { path: "/.well-known/jwks.json" });
  expect(headers.get("cache-control")).toBe("public, max-age=1");
  await service.stop();
});
