/** On every protocol the service checks the credential first, and reads nothing of the message unless the credential is authentic. */
import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { badRefreshTokens, forgedAccessTokens } from "../../support/bad-tokens.ts";
import { aService } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { bearer, cookie, logIn } from "../../support/sessions.ts";

const service = aService({
  RATE_LIMIT_FAILURES: "off",
  RATE_LIMIT_REFRESH: "off",
  DEVICE_BINDING: "on",
  TRUST_PROXY: "1",
});
let good: Record<string, string>;
/** Credentials that are not authentic: absent, malformed, forged, or under an unknown key. */
let bad: (readonly [string, Record<string, string>])[];
beforeAll(async () => {
  const { refreshToken, accessToken } = await logIn(service);
  good = { ...cookie(refreshToken), ...bearer(accessToken) };
  const cookies = badRefreshTokens(refreshToken).map(([what, text]) => [what, cookie(text)] as const);
  const bearers = forgedAccessTokens(accessToken).map(([what, text]) => [what, bearer(text)] as const);
  bad = [["absent", {}], ...cookies, ...bearers];
});

/**
 * The RPCs that refuse a credential that is not authentic. `RenewDevice` is not among them: it responds with success that there is nothing
 * to renew.
 */
const RPCS = SessionService.methods.filter(({ name }) => name !== "RenewDevice").map(({ name }) => name);
const TYPES = [
  ...["application/json", "application/proto", "application/grpc+proto", "application/grpc+json"],
  "application/grpc-web+proto",
] as const;
const ROUTES = [
  ["POST", "/v1/auth/refresh"],
  ["DELETE", "/v1/auth/logout"],
  ["POST", "/v1/auth/logout"],
  ["DELETE", "/v1/auth/sessions/x"],
  ["POST", "/v1/auth/sessions:revokeOthers"],
  ["POST", "/v1/auth/device"],
] as const;
const FORMS: readonly (readonly [method: string, path: string, type: string])[] = [
  ...RPCS.flatMap((name) => TYPES.map((type) => ["POST", `/auth.v1.SessionService/${name}`, type] as const)),
  ...ROUTES.map(([method, path]) => [method, path, "application/json"] as const),
];

/** Sends the head of a request without its body. Returns the response up to the error code. */
async function refusedWithoutBody(method: string, path: string, headers: Record<string, string>): Promise<string> {
  const { hostname, port } = new URL(service.publicUrl);
  const socket = connect(Number(port), hostname);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 400\r\n${lines.join("")}\r\n`);
  let received = "";
  while (!/grpc-status-details-bin|E\d{3}_/i.test(received)) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    received += chunk.toString("latin1");
  }
  socket.destroy();
  return received;
}

describe.each(FORMS)("%s %s as %s", (method, path, type) => {
  test("is refused before its body arrives", async () => {
    for (const [what, headers] of bad) {
      const sent = { "content-type": type, "content-encoding": "gzip", "grpc-encoding": "gzip", ...headers };
      const response = await refusedWithoutBody(method, path, sent);
      const isGrpc = type.startsWith("application/grpc");
      expect({ what, response }).toMatchObject({
        response: expect.stringMatching(isGrpc ? /grpc-status: 16/i : /^HTTP\/1\.1 401 [\s\S]*E001_AUTH_FAILURE/),
      });
    }
  });
});

/** The routes that read a body. Other routes have no body that could be invalid. */
const READING = ROUTES.filter(([method, path]) => !(method === "POST" && /logout|device/.test(path)));
describe.each(READING)("%s %s", (method, path) => {
  const send = (headers: Record<string, string>, body: string | Buffer) =>
    request(service.publicUrl, { method, path, headers: { "content-type": "application/json", ...headers }, body });
  const BAD: readonly (readonly [number, Record<string, string>, string | Buffer])[] = [
    [400, {}, "{"],
    [400, { "content-encoding": "gzip" }, gzipSync("[")],
    [400, { "content-encoding": "gzip" }, "no gzip"],
    [415, { "content-type": "text/plain" }, "{}"],
    [413, {}, " ".repeat(70_000)],
    [413, { "content-encoding": "gzip" }, gzipSync(" ".repeat(60_000))],
  ];

  test.each(BAD)("with a credential gets %d for what is wrong, without one 401", async (status, headers, body) => {
    expect((await send({ ...headers, ...good }, body)).status).toBe(status);
    for (const [, credential] of bad) expect((await send({ ...headers, ...credential }, body)).status).toBe(401);
  });
});
