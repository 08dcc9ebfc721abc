/** Both listeners over TLS: every protocol, chosen by ALPN. */

import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { selfSigned } from "../../support/certificate.ts";
import { type Caller, PUBLIC_PROTOCOLS, RPC_PROTOCOLS } from "../../support/clients.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, scratch, startService, waitFor } from "../../support/service.ts";
import { admin, bearer, cookie, message, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logout } = SessionService.method;
const REFRESH = { method: "POST", path: "/v1/auth/refresh" };
const { cert, key } = selfSigned();
const ca = Buffer.from(cert);

let service: Service;
beforeAll(async () => {
  const directory = scratch();
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  writeFileSync(TLS_CERT_FILE, cert);
  writeFileSync(TLS_KEY_FILE, key);
  service = await startService({ TLS_CERT_FILE, TLS_KEY_FILE });
});
afterAll(() => service.stop());

test("the ready line has https URLs", () => {
  expect(service.publicUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(service.adminUrl).toMatch(/^https:/);
});

async function created(caller: Caller) {
  return message(await caller.call(admin.createSession, { subject: somebody() }, bearer(service.adminToken)));
}

describe.each(PUBLIC_PROTOCOLS.map((kind, at) => ({ ...kind, admin: RPC_PROTOCOLS[at] ?? RPC_PROTOCOLS[0] })))(
  "$name",
  (kind) => {
    test("a session is created, refreshed and ended", async () => {
      const adminListener = kind.admin?.open(service.adminUrl, ca) as Caller;
      const publicListener = kind.open(service.publicUrl, ca);
      const { accessToken, refreshToken } = await created(adminListener);
      const origin = { "sec-fetch-site": "same-origin" };
      message(await publicListener.call(refresh, {}, { ...cookie(refreshToken), ...origin }));
      message(await publicListener.call(logout, {}, { ...bearer(accessToken), ...origin }));
      adminListener.close();
      publicListener.close();
    });
  },
);

test("the own origin is the secure one", async () => {
  const from = (origin: string) => request(service.publicUrl, { ...REFRESH, headers: { origin }, ca });
  expect((await from(service.publicUrl)).status).toBe(401);
  expect((await from(service.publicUrl.replace("https:", "http:"))).status).toBe(403);
});

test.each([
  [["h2", "http/1.1"], "h2"],
  [["http/1.1"], "http/1.1"],
  [[], false],
])("a client that offers %j gets %s", async (ALPNProtocols: string[], chosen) => {
  const { port } = new URL(service.publicUrl);
  const socket = connect({ port: Number(port), host: "127.0.0.1", ca, ALPNProtocols });
  await once(socket, "secureConnect");
  expect(socket.alpnProtocol).toBe(chosen);
  expect(["TLSv1.2", "TLSv1.3"]).toContain(socket.getProtocol());
  socket.destroy();
});

test("a client that speaks no TLS hears nothing of use, and the next one is served", async () => {
  const plain = service.publicUrl.replace("https:", "http:");
  await expect(request(plain, { path: "/healthz" })).rejects.toThrow();
  expect((await request(service.publicUrl, { path: "/healthz", ca })).status).toBe(200);
});

describe("certificate files that change", () => {
  const files = async (env: Record<string, string> = {}) => {
    const directory = scratch();
    const [certFile, keyFile] = [join(directory, "cert.pem"), join(directory, "key.pem")];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    return {
      certFile,
      keyFile,
      running: await startService({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, ...env }),
    };
  };
  const logged = (running: Service, event: string) =>
    waitFor(running, () => running.stderr().includes(`"${event}"`) || undefined);

  test("a certificate that is replaced is used for new connections, and open ones stay", async () => {
    const { certFile, keyFile, running } = await files();
    const open = connectHttp2(running.publicUrl, { ca });
    const ask = () => {
      const stream = open.request({ ":path": "/healthz" });
      stream.resume();
      return once(stream, "response");
    };
    await ask();
    const next = selfSigned();
    writeFileSync(certFile, next.cert);
    writeFileSync(keyFile, next.key);
    await logged(running, "certificate_changed");
    for (const url of [running.publicUrl, running.adminUrl]) {
      expect((await request(url, { path: "/healthz", ca: Buffer.from(next.cert) })).status).toBe(200);
      await expect(request(url, { path: "/healthz", ca })).rejects.toThrow();
      const session = connectHttp2(url, { ca: Buffer.from(next.cert) });
      await once(session, "connect");
      session.destroy();
    }
    expect((await ask())[0][":status"]).toBe(200);
    open.destroy();
    await running.stop();
  });

  test.each([
    ["another certificate", "certFile", (): string => selfSigned().cert],
    ["no certificate", "certFile", (): string => "nonsense"],
    ["an empty certificate", "certFile", (): string => ""],
    ["an empty key", "keyFile", (): string => ""],
  ] as const)("a broken file is refused, and the certificate before stays in force: %s", async (_, file, broken) => {
    const { running, ...paths } = await files();
    writeFileSync(paths[file], broken());
    await logged(running, "certificate_refused");
    expect((await request(running.publicUrl, { path: "/healthz", ca })).status).toBe(200);
    expect(running.stderr().match(/"certificate_refused"/g)).toHaveLength(1);
    expect(running.stderr()).not.toContain("certificate_changed");
    await running.stop();
  });

  test("files that are restored after a fault are recorded, as they were before", async () => {
    const { running, certFile } = await files();
    rmSync(certFile);
    await logged(running, "certificate_refused");
    writeFileSync(certFile, cert);
    await logged(running, "file_recovered");
    await until(() => expect(running.stderr()).toContain('"file_recovered","variable":"TLS_KEY_FILE"'));
    expect(running.stderr()).not.toContain("certificate_changed");
    await running.stop();
  });
});
