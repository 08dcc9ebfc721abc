/**
 * The host names under which the admin listener may be called. Others are refused, because a hostile page could resolve its own name to
 * the listener (DNS rebinding).
 */

import { writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { acceptsHost } from "../../../src/platform/listener/hosts.ts";
import { clientAuthority } from "../../support/certificate.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, scratch, startService, waitFor } from "../../support/service.ts";

describe("by default a name is accepted", () => {
  const accepts = acceptsHost([]);
  test.each([
    ...["127.0.0.1:8081", "10.1.2.3", "[::1]:8081", "[fd00::1]", "localhost", "localhost:8081", "LOCALHOST"],
    ...["session-service-admin", "session-service-admin:8081", "api.localhost", "a.b.svc", "a.b.svc.cluster.local"],
    ...["a.b.svc.cluster.local.:8081", "auth.internal", "auth.service.consul", "nas.home.arpa"],
  ])("that public DNS does not have, or is an address: %s", (host) => {
    expect(accepts(host)).toBe(true);
  });

  test.each([
    ...["attacker.example.com", "attacker.com:8081", "localhost.attacker.com", "127.0.0.1.attacker.com", "svc.com"],
    ...["a.prod", "xn--80ak6aa92e.com", "", "::1::", "a b", "127.0.0.1@attacker.com:x"],
  ])("and no other: %j", (host) => {
    expect(accepts(host)).toBe(false);
  });
});

describe("with names", () => {
  test("those are accepted beside the others, in whatever case, with whatever port", () => {
    const accepts = acceptsHost(["admin.example.com", "*.corp.example.com"]);
    for (const host of ["Admin.Example.com:1", "a.corp.example.com", "a.b.corp.example.com", "127.0.0.1"]) {
      expect([host, accepts(host)]).toEqual([host, true]);
    }
    for (const host of ["example.com", "b.admin.example.com", "corp.example.com", "evilcorp.example.com"]) {
      expect([host, accepts(host)]).toEqual([host, false]);
    }
  });

  test("all are accepted by *", () => {
    expect(acceptsHost(["*"])("attacker.com")).toBe(true);
  });
});

describe("the admin listener", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ ADMIN_ALLOWED_HOSTS: "admin.example.com" });
  });
  afterAll(() => service.stop());

  const get = (path: string, host: string) => request(service.adminUrl, { path, headers: { host } });

  test("serves no page, no metrics and no call by another name, and says what to set", async () => {
    const create = {
      path: "/auth.admin.v1.SessionAdminService/CreateSession",
      method: "POST",
      body: '{"subject":"alice"}',
      headers: {
        host: "attacker.example.com",
        authorization: `Bearer ${service.adminToken}`,
        "content-type": "application/json",
      },
    };
    const refused = [request(service.adminUrl, create)];
    for (const path of ["/metrics", "/console", "/docs", "/openapi.json", "/.well-known/jwks.json", "/nothing"]) {
      refused.push(get(path, "attacker.example.com:8081"));
    }
    for (const { status, body, headers } of await Promise.all(refused)) {
      expect([status, JSON.parse(body)]).toEqual([
        421,
        { code: "failed_precondition", message: expect.stringContaining("ADMIN_ALLOWED_HOSTS") },
      ]);
      expect(headers.get("cache-control")).toBe("no-store");
    }
    const line = await waitFor(service, () =>
      service
        .stderr()
        .split("\n")
        .find((text) => text.includes('"event":"host_refused"')),
    );
    expect(JSON.parse(line)).toMatchObject({ level: "warn", api: "admin", host: expect.stringContaining("attacker") });
  });

  test("serves all of it by the names that it is configured for, and by addresses", async () => {
    for (const host of ["admin.example.com", "127.0.0.1", "10.0.0.7:8081", "session-service-admin", hostname()]) {
      expect([host, (await get("/metrics", host)).status]).toEqual([host, 200]);
    }
  });

  test("responds to probes by any name", async () => {
    for (const path of ["/healthz", "/readyz"]) expect((await get(path, "lb.example.net")).status).toBe(200);
  });

  test("goes by the authority of HTTP/2", async () => {
    const client = connect(service.adminUrl);
    onTestFinished(() => client.destroy());
    const statusBy = (authority: string) =>
      new Promise((resolve, reject) => {
        const stream = client.request({ ":path": "/metrics", ":authority": authority });
        stream.once("response", (headers) => resolve(headers[":status"])).once("error", reject);
        stream.resume().end();
      });
    expect([await statusBy("attacker.example.com"), await statusBy("admin.example.com")]).toEqual([421, 200]);
  });

  test("is not what the public listener does", async () => {
    const response = await request(service.publicUrl, { path: "/healthz", headers: { host: "anything.example.com" } });
    expect(response.status).toBe(200);
  });
});

test("with TLS any name will do unless some are named: browsers compare it with the certificate", async () => {
  const { cert, key } = clientAuthority().issue({ commonName: "a", dns: "localhost" });
  const directory = scratch();
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  writeFileSync(TLS_CERT_FILE, cert);
  writeFileSync(TLS_KEY_FILE, key, { mode: 0o600 });
  const statusOf = async (more: Record<string, string>) => {
    const service = await startService({ TLS_CERT_FILE, TLS_KEY_FILE, NODE_TLS_REJECT_UNAUTHORIZED: "0", ...more });
    onTestFinished(() => void service.kill("SIGKILL"));
    const client = connect(service.adminUrl, { rejectUnauthorized: false });
    onTestFinished(() => client.destroy());
    return new Promise((resolve, reject) => {
      const stream = client.request({ ":path": "/metrics", ":authority": "auth.example.com" });
      stream.once("response", (headers) => resolve(headers[":status"])).once("error", reject);
      stream.resume().end();
    });
  };
  expect(await statusOf({})).toBe(200);
  expect(await statusOf({ ADMIN_ALLOWED_HOSTS: "admin.example.com" })).toBe(421);
});
