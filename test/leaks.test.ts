/** Runs after all other tests, and checks that no log, metric, page, event or error of their services contains a credential. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { readEmissions } from "./support/emissions/leaks.ts";
import { request } from "./support/raw-http.ts";
import { recording, scratch, startService } from "./support/service.ts";
import { cookie, logIn } from "./support/sessions.ts";

const directory = process.env.EMISSIONS_DIR ?? "";

test("a credential in a log line or in a response is found, also a part of one", () => {
  const place = scratch();
  const token = randomBytes(72).toString("base64url");
  const code = `
    import { ServerResponse } from "node:http";
    const response = (method, url) => new ServerResponse({ method, url });
    response("POST", "/v1/auth/refresh").setHeader("set-cookie", "refresh_token=${token}; Path=/");
    console.log("the token ended with ${token.slice(-24)}");
    response("GET", "/metrics").end("clean_total 1\\nleaky_total{token=\\"${token}\\"} 1\\n");`;
  // DATA_DIR is an empty directory, because the default one may hold the data of a service that a developer runs.
  const env = { ...process.env, EMISSIONS_DIR: place, DATA_DIR: place };
  execFileSync(process.execPath, [...recording().options, "--input-type=module", "--eval", code], { env });
  expect(readEmissions(place)).toMatchObject({
    credentials: 1,
    leaks: [
      expect.stringMatching(/^stdout: 24 characters .* response to POST \/v1\/auth\/refresh/),
      expect.stringMatching(/^response to GET \/metrics \(200\): 96 characters/),
    ],
  });
});

test("no service of this run emitted a credential that any of them made", async () => {
  const service = await startService();
  const { refreshToken } = await logIn(service);
  await request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers: cookie(refreshToken) });
  await service.stop();
  const { credentials, words, leaks } = readEmissions(directory);
  // At least eight credentials must be found: the service of this test alone has four keys, an admin token, and the tokens of two
  // responses.
  expect(credentials).toBeGreaterThanOrEqual(8);
  expect(words).toBeGreaterThan(0);
  expect(leaks).toEqual([]);
});
