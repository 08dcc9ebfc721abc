/** Tests the responses to errors that are thrown inside Connect, outside the handlers whose errors interceptors translate. */
import { Code, ConnectError, createConnectRouter } from "@connectrpc/connect";
import { readAllBytes, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { expect, test } from "vitest";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { withOurErrors } from "../../../../src/service/api/errors/framework-errors.ts";

const bug = new TypeError("a secret");

/** Calls a method whose handler rejects with an error. Returns the response, and the errors that were reported as bugs. */
async function call(type: string, error: Error) {
  const router = createConnectRouter().service(SessionService, {});
  const [first] = router.handlers;
  if (first === undefined) throw new Error("no handler");
  router.handlers[0] = Object.assign(() => Promise.reject(error), first);
  const bugs: unknown[] = [];
  const [handler] = withOurErrors(router, (found) => bugs.push(found)).handlers;
  const response = await handler?.({
    httpVersion: "2.0",
    method: "POST",
    url: `https://auth.example${first.requestPath}`,
    header: new Headers({ "content-type": type }),
    body: (async function* () {})(),
    signal: new AbortController().signal,
  });
  return { response: response as UniversalServerResponse, bugs };
}

test.each([
  "application/json",
  "application/proto",
  "application/connect+json",
  "application/grpc",
  "application/grpc-web",
])("a fault in the midst of a call over %s has a response, and is reported", async (type) => {
  const { response, bugs } = await call(type, bug);
  const body =
    response.body === undefined
      ? ""
      : Buffer.from(await readAllBytes(response.body as AsyncIterable<Uint8Array>, 10_000)).toString();
  const text = body + (response.trailer === undefined ? "" : findTrailerError(response.trailer)?.message);
  expect(text).toMatch(/internal(?: |%20)error/);
  expect(text).not.toContain("secret");
  expect([response.status, bugs]).toEqual([
    type === "application/json" || type === "application/proto" ? 500 : 200,
    [bug],
  ]);
});

test("a caller who has gone gets none", async () => {
  await expect(call("application/json", new ConnectError("gone", Code.Aborted))).rejects.toMatchObject({
    code: Code.Aborted,
  });
});
