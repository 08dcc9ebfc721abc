import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createCheck } from "../../../src/service/forward-auth/check.ts";
import { createHttpEndpoint, isCheck } from "../../../src/service/forward-auth/http-endpoint.ts";
import { Outcomes } from "../../../src/service/forward-auth/outcomes.ts";
import type { Claims } from "../../../src/verifier/index.ts";
import { request } from "../../support/raw-http.ts";

test.each([
  ["/check", true],
  ["/check/a", true],
  ["/check?a", true],
  ["/checks", false],
  ["/a/check", false],
  ["/", false],
  [undefined, false],
])("whether a path is that of the check: %s is %s", (url, expected) => {
  expect(isCheck(url)).toBe(expected);
});

/** Creates an endpoint whose verifier accepts every token, with the token itself as the subject. */
function createAccepting() {
  const verify = async (token: string) =>
    ({ ok: true, deviceBound: false, claims: { sub: token, sid: "s", client_id: "c" } as Claims }) as const;
  return createHttpEndpoint(createCheck({ verify, verifyBound: verify }, {}), new Outcomes(), () => {});
}

test("two headers `Authorization` are refused: the upstream may read the other one", async () => {
  const server = createServer(createAccepting());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const check = async (...authorization: string[]) => {
    const { status, headers } = await request(url, { path: "/check", headers: { authorization } });
    return [status, headers.get("x-auth-subject"), headers.get("x-auth-reason")];
  };
  expect(await check("Bearer a")).toEqual([200, "a", null]);
  expect(await check("Bearer a", "Bearer b")).toEqual([401, null, "malformed"]);
});
