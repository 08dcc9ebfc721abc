import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createTokenVerifier } from "../../../src/service/sign-in/signed-token.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { LOGOUT_EVENTS } from "../../support/logout-token.ts";
import { claims, ring, token } from "../../support/verifier/forge.ts";

const { iss: ISSUER, aud: AUDIENCE } = claims;

test("the keys are read at most once a second, also while that fails, and a token counts once they can be read", async () => {
  let isDown = true;
  const server = createServer((_, response) => {
    if (isDown) response.writeHead(500).end();
    else response.end(JSON.stringify(readyKeys(ring).jwks));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  let nowMs = 0;
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    waits.push(ms);
    nowMs += ms;
  };
  const verify = createTokenVerifier(ISSUER, AUDIENCE, url, 600, "logout+jwt", () => nowMs, sleep);
  const iat = Math.floor(Date.now() / 1000);
  const own = { iat, jti: "one", sid: "a login", events: LOGOUT_EVENTS };
  const text = token({ typ: "logout+jwt" }, own);

  for (let times = 0; times < 3; times++) expect(await verify(text)).toEqual({ ok: false, reason: "unavailable" });
  expect(waits).toEqual([1_000, 1_000]);
  nowMs += 400;
  isDown = false;
  expect(await verify(text)).toMatchObject({ ok: true });
  expect(waits).toEqual([1_000, 1_000, 600]);
});
