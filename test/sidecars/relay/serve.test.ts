/**
 * The batches that watchers of a relay receive over HTTP/2 with TLS. The feed of the relay is real; the test moves the clocks of its
 * store.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import type { RevocationFeed } from "../../../src/session/feed.ts";
import { serveRelay } from "../../../src/sidecars/relay/serve.ts";
import { startRelay } from "../../../src/sidecars/relay/start.ts";
import { loadAdminAccess } from "../../../src/tokens/admin-access.ts";
import { selfSigned } from "../../support/certificate.ts";
import { http2Client } from "../../support/http2-client.ts";
import { request } from "../../support/raw-http.ts";
import { scratch } from "../../support/service.ts";
import { createFeedWorld, type FeedWorld, open } from "../../support/session/feed.ts";
import { bearer } from "../../support/sessions.ts";

const TOKEN = "a-token-of-a-watcher-of-32-characters";
const WATCH = "/auth.admin.v1.SessionAdminService/WatchRevocations";
const pem = selfSigned();

const access = await loadAdminAccess([{ name: "test", token: TOKEN }], undefined);

let world: FeedWorld;
let feed: RevocationFeed;
beforeEach(async () => {
  world = createFeedWorld();
  feed = world.follow();
  onTestFinished(() => world.close());
  const first = await open(feed);
  await first.watch.return();
});

async function serve(ageMs = () => 0, port = 0) {
  const bugs: unknown[] = [];
  const deps = {
    ...{ feed, access, audit() {}, upstream: { revokedKeyIds: [], ageMs } },
    ...{ failureLimit: { take: () => undefined, giveBack() {} }, onBug: (error: unknown) => void bugs.push(error) },
  };
  const relay = await serveRelay(deps, { host: "127.0.0.1", port, tls: pem });
  onTestFinished(() => relay.close());
  return { ...relay, bugs };
}

function ask(session: ClientHttp2Session, token: string) {
  const headers = { ...bearer(token), "content-type": "application/connect+json" };
  const stream = session.request({ ":method": "POST", ":path": WATCH, ...headers });
  stream.end(Buffer.from("\0\0\0\0\x02{}"));
  return stream;
}

/**
 * Returns a watch that has received its first batch. Until the test reads from the watch again, the watch accepts only as many bytes as its
 * HTTP/2 window allows.
 */
async function watch(url: string, windowBytes = 1_000_000) {
  const session = connect(url, { ca: pem.cert, settings: { initialWindowSize: windowBytes } });
  onTestFinished(() => session.destroy());
  const stream = ask(session, TOKEN);
  const [head] = await once(stream, "response");
  let text = "";
  const read = () => stream.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  const seen = async (part: string) => {
    while (!text.includes(part)) await once(stream, "data");
  };
  return { head, session, read, seen, text: () => text, ended: once(stream, "end") };
}

test.each(["constructor", "__proto__", "toString"])(
  "a path that is the name of a property, %s, is not found",
  async (path) => {
    // HTTP/2 restricts the form of a path only for the schemes http and https, so another scheme allows any path.
    const { url, bugs } = await serve();
    const client = http2Client(url, { ca: pem.cert });
    onTestFinished(() => client.close());
    expect((await client.send({ ":path": path, ":scheme": "other" })).status).toBe(404);
    expect(bugs).toEqual([]);
  },
);

test("a watcher that reads nothing holds up no other, and is cut off when it reads on too late", async () => {
  const { url, bugs } = await serve();
  const [slow, fast] = [await watch(url, 100), await watch(url)];
  expect(fast.head["cache-control"]).toBe("no-store");
  fast.read();
  // The loop ends more sessions than fit into the buffer of a response (64 KiB), so the response has to wait.
  for (let i = 0; i < 800; i++) await world.end();
  await fast.seen(await world.end());
  expect(feed.state().watchers).toBe(2);
  world.advanceProcess(10_001);
  slow.read();
  await slow.ended;
  expect(slow.text()).toContain('"code":"resource_exhausted"');
  await fast.seen(await world.end());
  expect(feed.state().watchers).toBe(1);
  expect(bugs).toEqual([]);
});

test("a relay is ready while what it knows is at most two seconds old", async () => {
  let ageMs = 2_000;
  const { url } = await serve(() => ageMs);
  const status = async () => (await request(url, { path: "/readyz", ca: Buffer.from(pem.cert) })).status;
  expect(await status()).toBe(200);
  ageMs = 2_001;
  expect(await status()).toBe(503);
});

test("a relay that ends sends its watchers elsewhere, and is not ready", async () => {
  const { url, close } = await serve();
  const { session, read, ended, text } = await watch(url);
  read();
  const over = close();
  const probe = session.request({ ":path": "/readyz" });
  const [head] = await once(probe, "response");
  expect(head[":status"]).toBe(503);
  probe.resume();
  await ended;
  expect(text()).toContain('"code":"unavailable"');
  session.close();
  await over;
  await expect(request(url, { path: "/livez", ca: Buffer.from(pem.cert) })).rejects.toThrow("ECONNREFUSED");
});

test("an address may send a thousand requests without a valid credential in a minute", async () => {
  const relay = await startRelay({
    ...{ upstream: { adminUrl: "http://127.0.0.1:1", adminToken: TOKEN }, host: "127.0.0.1", port: 0, instance: "i" },
    ...{ access, report() {}, audit() {}, onBug() {}, onRefused() {} },
  });
  onTestFinished(() => relay.close());
  const session = connect(relay.url);
  onTestFinished(() => session.destroy());
  const replies: string[] = [];
  for (let batch = 0; batch < 21; batch++) {
    replies.push(...(await Promise.all(Array.from({ length: 50 }, () => text(ask(session, `${TOKEN}-x`))))));
  }
  const codes = replies.map((reply) => /"code":"(\w+)"/.exec(reply)?.[1]);
  expect([...new Set(codes.slice(0, 1_000))]).toEqual(["unauthenticated"]);
  expect([...new Set(codes.slice(1_000))]).toEqual(["resource_exhausted"]);
});

test("a certificate that is replaced is used for new connections; a broken one is refused", async () => {
  const [certFile, keyFile] = [join(scratch(), "cert.pem"), join(scratch(), "key.pem")];
  writeFileSync(certFile, pem.cert);
  writeFileSync(keyFile, pem.key);
  const [changed, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<Error>()];
  const relay = await startRelay({
    // No service listens at the upstream address, so this relay never has anything to serve.
    ...{ upstream: { adminUrl: "http://127.0.0.1:1", adminToken: TOKEN }, host: "127.0.0.1", port: 0, instance: "i" },
    certificate: { certFile, keyFile, onChange: changed.resolve, onRefusal: refused.resolve },
    ...{ access, report() {}, audit() {}, onBug() {}, onRefused() {} },
  });
  onTestFinished(() => relay.close());
  const next = selfSigned();
  const livez = (ca: string) => request(relay.url, { path: "/livez", ca: Buffer.from(ca) });
  expect((await livez(pem.cert)).status).toBe(200);
  writeFileSync(certFile, next.cert);
  writeFileSync(keyFile, next.key);
  await changed.promise;
  expect((await livez(next.cert)).status).toBe(200);
  await expect(livez(pem.cert)).rejects.toThrow();
  writeFileSync(certFile, pem.cert);
  expect(await refused.promise).toBeInstanceOf(Error);
  expect((await livez(next.cert)).status).toBe(200);
});

test("a port that is taken is reported with the listener's name", async () => {
  const { port } = new URL((await serve()).url);
  await expect(serve(undefined, Number(port))).rejects.toThrow(/the relay listener .*the port is taken/);
});
