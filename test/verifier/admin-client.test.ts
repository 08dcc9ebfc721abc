/** The verifier limits what it reads from the admin API, because a wrong address may lead to another server. */
import { once } from "node:events";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { createAdminClient } from "../../src/verifier/admin-client.ts";
import { Closing } from "../../src/verifier/closing.ts";

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
