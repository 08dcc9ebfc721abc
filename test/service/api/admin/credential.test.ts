import { describe, expect, test } from "vitest";
import type { PeerCertificate } from "../../../../src/platform/listener/client-certificate.ts";
import { identifyAdmin } from "../../../../src/service/api/admin/credential.ts";
import type { Admin, AdminAccess } from "../../../../src/service/session/admin/access.ts";

const admins = new Map<string, Admin>();
const access: AdminAccess = {
  byToken: (token) => admins.get(token),
  holds: (admin) => [...admins.values()].includes(admin),
  byCertificate: ([name = ""]) => admins.get(name),
};
const watcher: Admin = { name: "watcher", scopes: new Set(["watch"]) };
const certificate: PeerCertificate = { verified: true, names: ["cert"], expiresAt: 2_000 };
const identify = (authorization: string | null, presented?: PeerCertificate, now = () => 1_000) =>
  identifyAdmin(access, authorization, presented, now);

test.each([
  ["nothing", null, undefined, "absent"],
  ["another scheme", "Basic x", undefined, "absent"],
  ["another scheme beside a certificate", "Basic x", certificate, "absent"],
  ["an empty token", "Bearer", certificate, "malformed"],
  ["an unknown token", "Bearer unknown", certificate, "forged"],
  ["a certificate that is not verified", null, { ...certificate, verified: false }, "forged"],
  ["a certificate that has expired", null, { ...certificate, expiresAt: 1_000 }, "expired"],
] as const)("%s identifies nobody", (_, authorization, presented, reason) => {
  expect(identify(authorization, presented)).toEqual({ ok: false, reason });
});

test("an empty token is none even where an entry has its hash", () => {
  admins.set("", watcher);
  expect(identify("Bearer ")).toMatchObject({ ok: false, reason: "malformed" });
  admins.clear();
});

describe("a credential that is withdrawn", () => {
  test.each([
    ["token", "Bearer secret", undefined, "secret"],
    ["certificate", null, certificate, "cert"],
  ] as const)("(%s) loses its scopes at once", (_, authorization, presented, key) => {
    admins.set(key, watcher);
    const identified = identify(authorization, presented);
    if (!identified.ok) throw new Error("not identified");
    const { name, may } = identified.caller;
    expect([name, may("watch"), may("metrics")]).toEqual(["watcher", true, false]);
    admins.clear();
    expect(may("watch")).toBe(false);
  });

  test("a certificate that expires while its connection lasts is one", () => {
    admins.set("cert", watcher);
    let now = 1_000;
    const identified = identify(null, certificate, () => now);
    if (!identified.ok) throw new Error("not identified");
    now = 2_000;
    expect(identified.caller.may("watch")).toBe(false);
    admins.clear();
  });
});

test("a certificate without an entry is named by its own name, and may do nothing", () => {
  const identified = identify(null, certificate);
  if (!identified.ok) throw new Error("not identified");
  expect(identified.caller.name).toBe("certificate of cert");
  expect(identified.caller.may("watch")).toBe(false);
});
