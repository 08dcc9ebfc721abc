/** The command `forward-auth` while the certificates of the service are replaced. */
import { once } from "node:events";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Pem, selfSigned } from "../../support/certificate.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { bearer, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { commandHere } from "../cli/command.ts";
import { launchForwardAuth, startForwardAuth } from "./command.ts";

const ISSUER = "https://app.example.com";
const directory = scratch();
const caFile = join(directory, "ca.pem");

let service: Service;
beforeAll(async () => {
  service = await startService({ ISSUER });
});
afterAll(() => service?.stop());

/**
 * Starts TLS in front of the admin API. `use` presents another certificate, and closes all connections. While `keysAway` is true, only
 * connections for RPCs, which use HTTP/2, are served.
 */
async function startTls(first: Pem) {
  const sockets = new Set<Socket>();
  const state = { keysAway: false };
  const server = createServer({ ...first, ALPNProtocols: ["h2"] }, (socket) => {
    socket.on("error", () => {});
    if (state.keysAway && socket.alpnProtocol !== "h2") return void socket.destroy();
    const upstream = connect(Number(new URL(service.adminUrl).port), "127.0.0.1");
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
      from.pipe(to);
    }
  });
  server.on("tlsClientError", () => {}).listen(0, "127.0.0.1");
  await once(server, "listening");
  const closeConnections = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    state,
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    use(pem: Pem) {
      server.setSecureContext(pem);
      closeConnections();
    },
    close() {
      closeConnections();
      server.close();
    },
  };
}

test("connections use the authorities that --ca has now, and those before while the file is broken", async () => {
  const [before, after] = [selfSigned(), selfSigned()];
  writeFileSync(caFile, before.cert);
  const tls = await startTls(before);
  const forwardAuth = await startForwardAuth({ ...service, adminUrl: tls.url }, ISSUER, "--ca", caFile, "--refuse");
  const checkStatus = async (accessToken: string) =>
    (await request(forwardAuth.url, { path: "/check", headers: bearer(accessToken) })).status;
  /** Only a connection that is open brings the end of a session. */
  const seesLogouts = async () => {
    const { accessToken } = await logIn(service);
    await request(service.publicUrl, { method: "DELETE", path: "/v1/auth/logout", headers: bearer(accessToken) });
    await until(async () => expect(await checkStatus(accessToken)).toBe(401));
  };

  writeFileSync(caFile, "");
  tls.use(before);
  await seesLogouts();

  writeFileSync(`${caFile}.new`, after.cert);
  renameSync(`${caFile}.new`, caFile);
  tls.use(after);
  await seesLogouts();

  await forwardAuth.stop();
  tls.close();
});

test("the check is not ready before it has the key set", async () => {
  const pem = selfSigned();
  writeFileSync(caFile, pem.cert);
  const tls = await startTls(pem);
  tls.state.keysAway = true;
  const forwardAuth = await launchForwardAuth({ ...service, adminUrl: tls.url }, ISSUER, "--ca", caFile);
  const isReady = async () => (await request(forwardAuth.url, { path: "/readyz" })).status;
  await until(() => expect(forwardAuth.output()).toContain("feed_following"));
  expect(await isReady()).toBe(503);
  tls.state.keysAway = false;
  await until(async () => expect(await isReady()).toBe(200));
  await forwardAuth.stop();
  tls.close();
});

test.each([
  ["empty.pem", "--ca holds no certificate \\(PEM\\)"],
  ["absent.pem", "--ca: .*absent.pem cannot be read \\(ENOENT\\)"],
  ["directory", "--ca: .*directory cannot be read \\(EISDIR\\)"],
])("a command refuses an authority in %s before it calls", async (name, message) => {
  writeFileSync(join(directory, "empty.pem"), "");
  mkdirSync(join(directory, "directory"), { recursive: true });
  const args = [
    "sessions",
    "list",
    "--subject",
    "alice",
    "--url",
    "https://127.0.0.1:1",
    "--ca",
    join(directory, name),
  ];
  const { code, err } = await commandHere(args, { env: { ADMIN_TOKEN: service.adminToken } });
  expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(message) });
});
