import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextValues,
  createHandlerContext,
  type HandlerContext,
} from "@connectrpc/connect";
import { expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { errorCodeOf } from "../../../src/service/api/errors/connect-errors.ts";
import { withOutcomes } from "../../../src/service/api/outcomes.ts";
import type { Implementation } from "../../../src/service/api/router.ts";

const { logout } = SessionService.method;

/** Returns what a router registers for an implementation of Logout, and the calls that are measured. */
function measured(implementation: Implementation) {
  const registered: Implementation[] = [];
  const router: ConnectRouter = {
    handlers: [],
    service: () => router,
    rpc(_method, call) {
      registered.push(call as Implementation);
      return router;
    },
  };
  const handled: string[] = [];
  const onBug = (bug: unknown) => expect.unreachable(String(bug));
  const metrics = {
    handled: (method: string, code: string) => void handled.push(`${method} ${code}`),
    streamOpened: onBug,
    streamClosed: onBug,
  };
  withOutcomes(router, { metrics, reports: { onBug, onUnavailable: onBug } }).rpc(logout, implementation as never);
  const [call] = registered;
  if (call === undefined) throw new Error("nothing was registered");
  return { call: async (context: HandlerContext) => await call({}, context), handled };
}

const contextOf = (requestSignal?: AbortSignal) =>
  createHandlerContext({
    ...{ service: SessionService, method: logout, protocolName: "connect", requestMethod: "POST", url: "http://a/" },
    ...{ contextValues: createContextValues(), ...(requestSignal && { requestSignal }) },
  });

test.each([
  ["its caller has reset the stream", Code.Internal, "E499_CANCELED"],
  ["its deadline has passed", Code.DeadlineExceeded, "E504_DEADLINE_EXCEEDED"],
])("a call that fails since %s is no bug, whatever the code", async (_, code, expected) => {
  const reason = new ConnectError("http/2 stream closed", code);
  const { call } = measured(() => Promise.reject(reason));
  const failure = await call(contextOf(AbortSignal.abort(reason))).catch((error: unknown) => error);
  expect(errorCodeOf(failure as ConnectError)).toBe(expected);
});

test("each call is measured once, with its code", async () => {
  const { call, handled } = measured(() => ({}));
  await call(contextOf());
  expect(handled).toEqual(["Logout ok"]);
  const failing = measured(() => {
    throw new ConnectError("gone", Code.NotFound);
  });
  await expect(failing.call(contextOf())).rejects.toThrow();
  expect(failing.handled).toEqual(["Logout not_found"]);
});
