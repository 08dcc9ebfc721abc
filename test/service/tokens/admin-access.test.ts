import { createHash } from "node:crypto";
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { SCOPES } from "../../../src/service/session/admin/access.ts";
import { loadAdminAccess } from "../../../src/service/tokens/admin-access.ts";
import { AdminTokensFault, parseAdminEntries } from "../../../src/service/tokens/admin-entries.ts";

const TOKEN = "token-".repeat(6);
const sha256 = (text: string) => createHash("sha256").update(text).digest();
const admins = (...entries: object[]) => JSON.stringify({ admins: entries });
const entry = (token: string, name = "gateway") => ({
  name,
  hash: sha256(token).toString("hex"),
  scopes: ["watch"],
});

let path = "";
beforeEach(() => {
  const directory = mkdtempSync(join(tmpdir(), "admins-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  path = join(directory, "admins.json");
});

describe("an entry", () => {
  test.each(["hex", "base64", "base64url"] as const)("may have its hash as %s", async (encoding) => {
    writeFileSync(path, admins({ name: "a", hash: sha256(TOKEN).toString(encoding), scopes: ["watch", "metrics"] }));
    const access = await loadAdminAccess([], path);
    expect(access.byToken(TOKEN)).toMatchObject({ name: "a", scopes: new Set(["watch", "metrics"]) });
    expect(access.byToken(`${TOKEN}x`)).toBeUndefined();
    expect(access.byToken(sha256(TOKEN).toString(encoding))).toBeUndefined();
  });

  const hash = sha256(TOKEN).toString("hex");
  test.each<[string, string]>([
    ["the file: not an object", "[]"],
    ["the file: not an object", "null"],
    ["the file: not an object", "1"],
    ["admins is missing", "{}"],
    ["the file: has members other than admins", '{"admins":[],"extra":1}'],
    ["admins: not a list", '{"admins":{}}'],
    ["not JSON", `{"admins":["${TOKEN}`],
    ["admins[0]: not an object", admins([] as object)],
    ["admins[0]: name is missing", admins({ hash, scopes: ["watch"] })],
    ["admins[0].name", admins({ name: "a b", hash, scopes: ["watch"] })],
    ["admins[0].name", admins({ name: "a".repeat(65), hash, scopes: ["watch"] })],
    ["admins[0].name", admins({ name: 7, hash, scopes: ["watch"] })],
    ["either hash or certificate", admins({ name: "a", scopes: ["watch"] })],
    ["either hash or certificate", admins({ name: "a", hash, certificate: "c", scopes: ["watch"] })],
    ["admins[0].hash", admins({ name: "a", hash: TOKEN, scopes: ["watch"] })],
    ["admins[0].hash", admins({ name: "a", hash: `${hash}0`, scopes: ["watch"] })],
    ["admins[0].hash", admins({ name: "a", hash: [hash], scopes: ["watch"] })],
    ["admins[0].certificate", admins({ name: "a", certificate: "", scopes: ["watch"] })],
    ["admins[0].certificate", admins({ name: "a", certificate: "c".repeat(256), scopes: ["watch"] })],
    ["admins[0].certificate", admins({ name: "a", certificate: 1, scopes: ["watch"] })],
    ["admins[0].scopes", admins({ name: "a", hash, scopes: [] })],
    ["admins[0].scopes", admins({ name: "a", hash, scopes: "watch" })],
    ["each must be one of sessions:create", admins({ name: "a", hash, scopes: ["all"] })],
    [
      "admins[0]: has members other than name, scopes, hash, certificate, client_id",
      admins({ name: "a", hash, scopes: ["watch"], token: TOKEN }),
    ],
    ["admins[1]: its hash", admins(entry(TOKEN), entry(TOKEN, "other"))],
    ["admins[0].client_id: must be", admins({ name: "a", hash, scopes: ["signals:receive"], client_id: "" })],
    ["admins[0].client_id: must be", admins({ name: "a", hash, scopes: ["signals:receive"], client_id: ["c"] })],
    ["admins[0].client_id: is for", admins({ name: "a", hash, scopes: ["watch"], client_id: "c" })],
    ["admins[0].client_id: is for", admins({ name: "a", hash, scopes: ["signals:receive", "watch"], client_id: "c" })],
    [
      "admins[1].client_id: differs",
      admins(
        { name: "a", hash, scopes: ["signals:receive"], client_id: "c" },
        { name: "a", certificate: "x", scopes: ["signals:receive"] },
      ),
    ],
  ])("that is wrong is refused: %s", (fault, text) => {
    expect(() => parseAdminEntries(text)).toThrow(AdminTokensFault);
    expect(() => parseAdminEntries(text)).toThrow(fault);
    expect(() => parseAdminEntries(text)).not.toThrow(TOKEN);
  });

  test("of a receiver may have a client", async () => {
    const receiving = { scopes: ["signals:receive"], client_id: "orders" };
    writeFileSync(path, admins({ name: "a", hash, ...receiving }, { name: "b", certificate: "b", ...receiving }));
    const access = await loadAdminAccess([], path);
    expect([access.byToken(TOKEN)?.clientId, access.byCertificate(["b"])?.clientId]).toEqual(["orders", "orders"]);
  });

  test("may have a certificate's name of 255 characters", () => {
    const certificate = "c".repeat(255);
    const [only] = parseAdminEntries(admins({ name: "a", certificate, scopes: ["watch"] }));
    expect(only?.credential).toEqual({ certificate });
  });
});

test("a name may have two tokens, so that they can be rotated; full tokens have every scope", async () => {
  writeFileSync(path, admins(entry(TOKEN), entry("next-".repeat(8))));
  const access = await loadAdminAccess([{ name: "ADMIN_TOKENS[0]", token: "full-".repeat(8) }], path);
  expect(access.byToken(TOKEN)?.name).toBe("gateway");
  expect(access.byToken("next-".repeat(8))?.name).toBe("gateway");
  expect(access.byToken("full-".repeat(8))).toMatchObject({ name: "ADMIN_TOKENS[0]", scopes: new Set(SCOPES) });
});

test("without a file, the full tokens are all there is", async () => {
  const access = await loadAdminAccess([{ name: "own", token: TOKEN }], undefined);
  const admin = access.byToken(TOKEN);
  expect(admin).toMatchObject({ name: "own", scopes: new Set(SCOPES) });
  expect(access.byToken("other")).toBeUndefined();
  expect(access.byCertificate(["own"])).toBeUndefined();
  expect([access.grants("own", "watch"), access.grants("other", "watch")]).toEqual([true, false]);
  access.watch({ onChange: () => {}, onRefusal: () => {} })();
});

test("a name holds and is granted what one of its entries has", async () => {
  writeFileSync(path, admins(entry(TOKEN), { ...entry("next-".repeat(8)), scopes: ["introspect"] }, entry("c", "c")));
  const access = await loadAdminAccess([], path);
  const granted = (["watch", "introspect", "metrics"] as const).map((scope) => access.grants("gateway", scope));
  expect(granted).toEqual([true, true, false]);
  expect(access.grants("c", "introspect")).toBe(false);
  const admin = access.byToken(TOKEN);
  if (admin === undefined) throw new Error("the token is not known");
  expect([access.holds(admin), access.holds({ ...admin })]).toEqual([true, false]);
});

test("the first entry that has one of a certificate's names counts, and a token is no name", async () => {
  const certificate = (name: string, scope: string) => ({ name, certificate: `${name}.internal`, scopes: [scope] });
  writeFileSync(path, admins(certificate("a", "watch"), certificate("b", "introspect"), entry(TOKEN)));
  const access = await loadAdminAccess([], path);
  expect(access.byCertificate(["b.internal", "a.internal"])?.name).toBe("a");
  expect(access.byCertificate(["A.internal", "b.internal.example", "gateway"])).toBeUndefined();
  expect(access.byCertificate([])).toBeUndefined();
  expect(access.byToken("a.internal")).toBeUndefined();
});

test.each([
  ["gone", () => {}, /cannot be read \(ENOENT\)/],
  ["for others to change", () => chmodSync(path, 0o666), /chmod 644/],
  ["broken", () => writeFileSync(path, "{"), /not JSON/],
])("a file that is %s is refused at the start", async (state, change, fault) => {
  if (state !== "gone") writeFileSync(path, admins(entry(TOKEN)));
  change();
  await expect(loadAdminAccess([], path)).rejects.toThrow(fault);
  await expect(loadAdminAccess([], path)).rejects.toThrow(AdminTokensFault);
});

test("a changed file is followed; one that is broken or gone is reported, and what was in force stays", async () => {
  writeFileSync(path, admins(entry(TOKEN)));
  const access = await loadAdminAccess([], path);
  const events: unknown[] = [];
  let wake = () => {};
  const report = (what: unknown) => {
    events.push(what);
    wake();
  };
  onTestFinished(access.watch({ onChange: report, onRefusal: (fault) => report(fault.message) }, 20));
  const next = async () => {
    while (events.length === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return events.shift();
  };
  writeFileSync(path, '{"admins":[{}]}');
  expect(await next()).toContain(`${path}: admins[0]: name is missing`);
  expect(access.byToken(TOKEN)?.name).toBe("gateway");
  rmSync(path);
  expect(await next()).toContain("cannot be read (ENOENT)");
  expect(access.byToken(TOKEN)?.name).toBe("gateway");
  writeFileSync(`${path}.new`, admins(entry("other".repeat(8), "other")));
  renameSync(`${path}.new`, path);
  expect(await next()).toEqual(["other"]);
  expect(access.byToken(TOKEN)).toBeUndefined();
  expect(access.byToken("other".repeat(8))?.name).toBe("other");
});
