/** Tests the stream of revocations through a Connect handler, without a network connection. */
import { create } from "@bufbuild/protobuf";
import { createHandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { SessionAdminService, WatchRevocationsRequestSchema } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { watchRevocations } from "../../../../src/service/api/admin/watch-revocations.ts";
import { RequestContext, requestContextOf } from "../../../../src/service/api/request-context.ts";
import { storeMs } from "../../../../src/service/session/time.ts";

const BATCH = {
  revocations: [],
  staleMarks: [],
  cursor: "a",
  revokedUntil: storeMs(0),
  caughtUp: true,
  asOf: storeMs(1),
};

/** Creates the context of a watcher's call. Its connection accepts no direct writes, so messages go through Connect. */
function openContext() {
  const source = {
    ...{
      origin: () => null,
      address: () => undefined,
      userAgent: () => undefined,
      certificate: () => undefined,
    },
    ...{ correlation: () => ({ requestId: "a" }), output: () => undefined, noteUnauthenticated() {}, abort() {} },
  };
  return createHandlerContext({
    ...{ service: SessionAdminService, method: SessionAdminService.method.watchRevocations },
    ...{ protocolName: "connect", requestMethod: "POST", url: "https://auth.example/" },
    contextValues: new RequestContext(() => source),
  });
}

test("a watcher whose scope is withdrawn gets no further batch", async () => {
  const feed = {
    async *watch() {
      yield BATCH;
      yield BATCH;
    },
  };
  const context = openContext();
  let isAllowed = true;
  requestContextOf(context).admin = { name: "watcher", clientId: undefined, may: () => isAllowed };
  const request = create(WatchRevocationsRequestSchema);
  const batches = watchRevocations({ feed, revokedKeyIds: () => [] }, request, context);
  expect((await batches.next()).value).toMatchObject({ cursor: "a" });
  isAllowed = false;
  await expect(batches.next()).rejects.toMatchObject({ code: "E001_AUTH_FAILURE" });
});
