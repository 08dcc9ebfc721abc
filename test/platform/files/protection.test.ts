import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { protectionFault, readProtected } from "../../../src/platform/files/protection.ts";
import { mountedSecret } from "../../support/mounted-secret.ts";
import { scratch } from "../../support/service.ts";

let path = "";
beforeEach(() => {
  const directory = mkdtempSync(join(tmpdir(), "protection-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  path = join(directory, "secret");
  writeFileSync(path, "", { mode: 0o600 });
});

const secret = { forbids: "read", mode: 0o600 } as const;

describe("a secret", () => {
  test.each([0o600, 0o400, 0o640, 0o440])("with mode %o is accepted", async (mode) => {
    chmodSync(path, mode);
    expect(await protectionFault(path, secret)).toBeUndefined();
  });

  test.each([0o644, 0o604, 0o620, 0o602, 0o601, 0o777])("with mode %o is refused, with the command", async (mode) => {
    chmodSync(path, mode);
    const fault = `has mode ${mode.toString(8)}, which lets others read or change it: chmod 600 ${path}`;
    expect(await protectionFault(path, secret)).toBe(fault);
  });
});

test("what others may only read is accepted where that is no secret", async () => {
  chmodSync(path, 0o644);
  expect(await protectionFault(path, { forbids: "write", mode: 0o644 })).toBeUndefined();
  chmodSync(path, 0o664);
  expect(await protectionFault(path, { forbids: "write", mode: 0o644 })).toContain("lets others change it: chmod 644");
});

test("a directory is judged as a file is", async () => {
  const directory = join(path, "..");
  expect(await protectionFault(directory, { forbids: "read", mode: 0o700 })).toBeUndefined();
  chmodSync(directory, 0o755);
  expect(await protectionFault(directory, { forbids: "read", mode: 0o700 })).toContain(`chmod 700 ${directory}`);
});

test("no command is advised that would take a directory from others", async () => {
  const directory = join(path, "..");
  expect(await protectionFault(directory, secret)).toBe("is a directory, not a file");
  chmodSync(directory, 0o1777);
  const found = "has mode 777, which lets others read or change it: name a directory in it";
  expect(await protectionFault(directory, { forbids: "read", mode: 0o700 })).toBe(found);
});

test("neither chmod nor chown is advised for a directory that others keep their files in", async () => {
  const directory = join(path, "..");
  const judge = (ownNames: readonly string[]) => protectionFault(directory, { forbids: "read", mode: 0o700, ownNames });
  chmodSync(directory, 0o755);
  const found = "has mode 755, which lets others read or change it";
  expect(await judge(["keys.json"])).toBe(`${found}, and holds other files: name a directory in it`);
  expect(await judge(["keys.json", "secret"])).toBe(`${found}: chmod 700 ${directory}`);
  rmSync(path);
  mkdirSync(join(directory, "lost+found"));
  expect(await judge(["keys.json"])).toBe(`${found}: chmod 700 ${directory}`);
});

// Only root can give a directory to another user. `npm test` as another user leaves this test out; CI runs as root.
test.runIf(process.geteuid?.() === 0)(
  "a directory of another user with files of others is not to be taken over",
  async () => {
    const directory = join(path, "..");
    chownSync(directory, 12_345, 12_345);
    const protection = { forbids: "read", mode: 0o700, ownNames: ["keys.json"] } as const;
    expect(await protectionFault(directory, protection)).toMatch(
      /^belongs to another user .*: name a directory in it$/,
    );
    expect(await protectionFault(directory, { ...protection, ownNames: ["secret"] })).toContain(": chown 0 ");
  },
);

test("what is behind a link is judged, not the link's own mode", async () => {
  const link = join(path, "..", "link");
  symlinkSync(path, link);
  expect(await protectionFault(link, secret)).toBeUndefined();
  chmodSync(path, 0o644);
  expect(await protectionFault(link, secret)).toContain("mode 644");
});

test("a Secret that Kubernetes has mounted gets advice for its volume", async () => {
  const volume = mountedSecret(scratch(), { "keys.json": "{}" });
  const keys = join(volume, "keys.json");
  expect(await protectionFault(keys, secret)).toBe(
    "has mode 644, which lets others read or change it: " +
      "set `defaultMode: 0400` on the volume and `fsGroup` in the pod's securityContext",
  );
  chmodSync(keys, 0o440);
  expect(await protectionFault(keys, secret)).toBeUndefined();
});

test("what is not there is an error of the file system", async () => {
  await expect(protectionFault(join(path, "..", "none"), secret)).rejects.toThrow("ENOENT");
});

// Only root can give a file to another user. `npm test` as another user leaves these tests out; CI runs as root.
describe.runIf(process.geteuid?.() === 0)("run by root", () => {
  test("a file of another user is refused, but for an operator's command", async () => {
    chownSync(path, 12_345, 12_345);
    expect(await protectionFault(path, secret)).toContain(`belongs to another user (uid 12345; the service runs as 0)`);
    expect(await protectionFault(path, { ...secret, rootUsesAny: true })).toBeUndefined();
  });

  test("a link of another user is refused, wherever it leads", async () => {
    const directory = join(path, "..", "shared");
    mkdirSync(directory);
    symlinkSync(path, join(directory, "link"));
    lchownSync(join(directory, "link"), 12_345, 12_345);
    expect(await protectionFault(join(directory, "link"), secret)).toContain("chown 0");
  });

  test("a file of root says who cannot read it", async () => {
    chmodSync(join(path, ".."), 0o711);
    process.seteuid?.(12_345);
    onTestFinished(() => process.seteuid?.(0));
    const fault = "cannot be read by uid 12345 (EACCES)";
    expect(await readProtected(path, secret)).toEqual({ ok: false, fault, isAbsent: false });
  });
});
