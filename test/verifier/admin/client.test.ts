/** The verifier limits what it reads from the admin API, because a wrong address may lead to another server. */
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { Code, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, onTestFinished, test, vi } from "vitest";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { createClientBy } from "../../../src/verifier/admin/api.ts";
import { createAdminClient } from "../../../src/verifier/admin/client.ts";
import { Closing } from "../../../src/verifier/closing.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { inTime } from "../../support/until.ts";

const MAX_BYTES = 4_194_304;

/** Starts an admin API that responds to each call with one message that has this flag and these bytes. */
async function start(flag: number, bytes: Buffer) {
  const server = createServer();
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {});
    stream.respond({
      ":status": 200,
      "content-type": "application/connect+proto",
      ...(flag === 1 && { "connect-content-encoding": "gzip" }),
    });
    const prefix = Buffer.alloc(5);
    prefix[0] = flag;
    prefix.writeUInt32BE(bytes.length, 1);
    stream.write(Buffer.concat([prefix, bytes]));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const closing = new Closing();
  onTestFinished(() => {
    closing.close();
    server.close();
  });
  const adminUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return createAdminClient({ adminUrl, adminToken: "t" }, closing);
}

test("after a feed that was given up as silent, no call waits for its connection, which may be dead", async () => {
  // The sockets and the turns of the event loop are real.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const server = createServer(
    connectNodeAdapter({
      routes: ({ service }) =>
        service(SessionAdminService, {
          async *watchRevocations(_, { signal }) {
            yield { cursor: "1", caughtUp: true };
            await once(signal, "abort");
          },
          introspectToken: () => ({ active: true }),
        }),
    }),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  const network = await startFaultyProxy((server.address() as AddressInfo).port);
  const closing = new Closing();
  onTestFinished(async () => {
    closing.close();
    await network.stop();
    server.close();
  });
  const client = createAdminClient({ adminUrl: `http://127.0.0.1:${network.port}`, adminToken: "t" }, closing);
  const given = new AbortController();
  const batches = client?.watchRevocations({}, { signal: given.signal })[Symbol.asyncIterator]();
  await inTime("a batch", Promise.resolve(batches?.next()));
  network.forget();
  await vi.advanceTimersByTimeAsync(3000);
  given.abort(new Error("the feed is silent"));
  await expect(batches?.next()).rejects.toThrow("the feed is silent");
  const introspected = await inTime("a response", Promise.resolve(client?.introspectToken({ token: "any" })));
  expect(introspected?.active).toBe(true);
  expect(network.opened()).toBe(2);
});

test("an admin token that no header can carry is refused without a word of it", async () => {
  const client = createAdminClient({ adminUrl: "http://127.0.0.1:1", adminToken: "a-secret\nb" }, new Closing());
  const batches = client?.watchRevocations({})[Symbol.asyncIterator]();
  const error: unknown = await batches?.next().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: Code.Unauthenticated });
  expect(inspect(error)).not.toContain("secret");
});

test.each([
  ["is too large", 0, Buffer.alloc(MAX_BYTES + 1)],
  ["is too large when it is decompressed", 1, gzipSync(Buffer.alloc(MAX_BYTES + 1))],
])("a batch that %s ends the stream", async (_, flag, bytes) => {
  const client = await start(flag, bytes);
  const batches = client?.watchRevocations({})[Symbol.asyncIterator]();
  await expect(batches?.next()).rejects.toMatchObject({ code: Code.ResourceExhausted });
});

/** Returns a transport to an admin API that records what authorizes its calls. */
function recording(seen: (string | null)[], interceptors: Interceptor[] = []) {
  const introspectToken = (_: unknown, { requestHeader }: { requestHeader: Headers }) => {
    seen.push(requestHeader.get("authorization"));
    return { active: true };
  };
  return createRouterTransport(({ service }) => service(SessionAdminService, { introspectToken }), {
    transport: { interceptors },
  });
}

test.each([
  ["a text", " t\n", "Bearer t"],
  ["what a function returns", () => "t ", "Bearer t"],
  ["absent, beside a client certificate", undefined, null],
])("an admin token that is %s is sent without white space", async (_, adminToken, authorization) => {
  const seen: (string | null)[] = [];
  const options = { adminUrl: "http://127.0.0.1:1", nodeOptions: {}, ...(adminToken !== undefined && { adminToken }) };
  const client = createClientBy(options, (_url, interceptors) => recording(seen, interceptors));
  await client?.introspectToken({ token: "x" });
  expect(seen).toEqual([authorization]);
});

test("a transport of the caller is used as it is", async () => {
  const seen: (string | null)[] = [];
  const client = createClientBy({ transport: recording(seen), adminUrl: "http://127.0.0.1:1", adminToken: "t" }, () => {
    throw new Error("no other transport is needed");
  });
  await client?.introspectToken({ token: "x" });
  expect(seen).toEqual([null]);
});
