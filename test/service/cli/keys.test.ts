import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { parseRing, type Ring, type RingKey } from "../../../src/service/tokens/ring.ts";
import { compiled, PROGRAM } from "../../support/program.ts";

/** The directory of the key ring on which a test runs the command `keys`, as a separate process. */
let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keys-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
});

const file = () => join(directory, "keys.json");

function keys(args: string[], env: Record<string, string> = { KEYS_FILE: file() }) {
  const { PATH = "" } = process.env;
  const run = spawnSync(process.execPath, [PROGRAM, "keys", ...args], {
    encoding: "utf8",
    env: { PATH, ...compiled(), ...env },
    cwd: directory,
  });
  return { code: run.status, out: run.stdout, err: run.stderr };
}

const ring = (): Ring => parseRing(readFileSync(file(), "utf8"));
const kidOf = (keys: readonly RingKey[], state: string) => keys.find((key) => key.state === state)?.kid ?? "";

/** Changes all times in the key ring, so that it looks older by some minutes. */
function ageBy(minutes: number): void {
  const older = (_: string, value: unknown) =>
    typeof value === "string" && /^\d{4}-.*Z$/.test(value)
      ? new Date(Date.parse(value) - minutes * 60_000).toISOString()
      : value;
  writeFileSync(file(), JSON.stringify(JSON.parse(readFileSync(file(), "utf8"), older)));
}

describe("session-service keys", () => {
  test("creates a ring for its owner alone, and never a second one over it", () => {
    expect(keys(["create"])).toEqual({ code: 0, out: `created ${file()}\n`, err: "" });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    const before = ring();
    expect(keys(["create"])).toEqual({ code: 1, out: "", err: `${file()} is there already; nothing was changed\n` });
    expect(ring()).toEqual(before);
  });

  test("creates a ring where one is missing, leaves one that is there, and refuses one that is broken", () => {
    expect(keys(["create", "--if-missing"])).toMatchObject({ code: 0, out: `created ${file()}\n` });
    const before = ring();
    expect(keys(["create", "--if-missing"])).toEqual({ code: 0, out: `${file()} is there already\n`, err: "" });
    expect(ring()).toEqual(before);
    writeFileSync(file(), "{");
    expect(keys(["create", "--if-missing"]).code).toBe(1);
  });

  test("makes and rotates keys of RS256", () => {
    expect(keys(["create", "--alg", "RS256"]).code).toBe(0);
    expect(keys(["rotate", "signing", "--force"]).code).toBe(0);
    expect(ring().signing.map(({ alg, state }) => `${alg} ${state}`)).toEqual([
      "RS256 retired",
      "RS256 signing",
      "RS256 published",
    ]);
    for (const { jwk } of ring().signing) expect(Buffer.from(jwk?.n ?? "", "base64url")).toHaveLength(256);
  });

  test("goes on with the algorithm that a rotation has changed", () => {
    keys(["create"]);
    const rotate = (...more: readonly string[]) => keys(["rotate", "signing", "--force", ...more]);
    expect([rotate("--alg", "EdDSA"), rotate(), rotate()].map(({ code }) => code)).toEqual([0, 0, 0]);
    const current = ring().signing.filter(({ state }) => state !== "retired");
    expect(current.map(({ alg, state }) => `${alg} ${state}`)).toEqual(["EdDSA signing", "EdDSA published"]);
  });

  test("finds the ring by --file, by KEYS_FILE, or in DATA_DIR", () => {
    expect(keys(["create", "--file", file(), "--alg", "EdDSA"], { KEYS_FILE: "elsewhere" }).code).toBe(0);
    expect(ring().signing.map((key) => key.alg)).toEqual(["EdDSA", "EdDSA"]);
    // A key ring keeps its algorithm, even if the environment names another one.
    expect(keys(["rotate", "signing", "--force", "--file", file()], { SIGNING_ALGORITHM: "ES256" }).code).toBe(0);
    expect(new Set(ring().signing.map((key) => key.alg))).toEqual(new Set(["EdDSA"]));
    const listed = keys(["list"]);
    expect(keys(["list"], { DATA_DIR: directory }).out).toContain(kidOf(ring().signing, "signing"));
    expect(listed.code).toBe(0);
  });

  test("lists states, ages and what comes next, and no secret", () => {
    keys(["create"]);
    ageBy(30);
    const { out } = keys(["list"]);
    const lines = out
      .trim()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(lines[0]).toEqual(["kind", "kid", "alg", "state", "for", "next"]);
    const { signing, mac } = ring();
    expect(lines.slice(1)).toEqual([
      ["signing", signing[0]?.kid, "ES256", "signing", "30m", "rotate replaces it"],
      ["signing", signing[1]?.kid, "ES256", "published", "30m", "may sign now"],
      ["mac", mac[0]?.kid, "HS256", "signing", "30m", "rotate replaces it"],
      ["mac", mac[1]?.kid, "HS256", "published", "30m", "may sign now"],
    ]);
    for (const { jwk } of [...signing, ...mac]) expect(out).not.toContain(jwk?.d ?? jwk?.k);
  });

  test("rotates once every verifier can know the successor, and earlier only with --force", () => {
    keys(["create"]);
    const [first, second] = ring().signing.map((key) => key.kid);
    const early = keys(["rotate"]);
    expect(early).toMatchObject({ code: 1, out: "" });
    expect(early.err).toMatch(/^signing key \S+ may sign from \S+Z: not every verifier knows it before\n$/);
    expect(kidOf(ring().signing, "signing")).toBe(first);
    ageBy(6);
    expect(keys(["rotate", "signing"]).code).toBe(0);
    expect(kidOf(ring().signing, "signing")).toBe(second);
    expect(kidOf(ring().signing, "retired")).toBe(first);
    expect(keys(["rotate", "signing"]).code).toBe(1);
    expect(keys(["rotate", "--force"]).code).toBe(0);
    expect(kidOf(ring().mac, "retired")).not.toBe("");
  });

  test("takes its ages from the service's configuration", () => {
    keys(["create"]);
    const env = { KEYS_FILE: file(), JWKS_MAX_AGE: "2s" };
    expect(keys(["rotate", "--pick-up", "3"], env).err).toMatch(/may sign from/);
    ageBy(1);
    expect(keys(["rotate", "--pick-up", "3"], env).code).toBe(0);
  });

  test("removes a key when no token under it lives", () => {
    keys(["create"]);
    ageBy(6);
    keys(["rotate"]);
    const [signing, mac] = [kidOf(ring().signing, "retired"), kidOf(ring().mac, "retired")];
    expect(keys(["remove", signing]).err).toMatch(/is needed until/);
    ageBy(6);
    expect(keys(["remove"]).code).toBe(0);
    expect(kidOf(ring().signing, "retired")).toBe("");
    expect(kidOf(ring().mac, "retired")).toBe(mac);
    expect(keys(["remove", mac]).code).toBe(1);
    expect(keys(["remove", mac, "--force"]).code).toBe(0);
    expect(kidOf(ring().mac, "retired")).toBe("");
  });

  test("revokes all keys of a ring that was read, so that none of them is in use", () => {
    keys(["create"]);
    keys(["rotate", "--force"]);
    const stolen = [...ring().signing, ...ring().mac].map(({ kid }) => kid);
    expect(keys(["revoke", ...stolen]).code).toBe(0);
    for (const kind of ["signing", "mac"] as const) {
      const states = ring()[kind].map(({ kid, state }) => (stolen.includes(kid) ? `stolen ${state}` : state));
      expect(states.toSorted()).toEqual(["published", "signing", ...Array(3).fill("stolen revoked")]);
    }
  });

  test("revokes a key at once", () => {
    keys(["create"]);
    const [first, second] = ring().signing.map((key) => key.kid);
    const { code, out } = keys(["revoke", first ?? ""]);
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`${first} +ES256 +revoked`));
    expect(kidOf(ring().signing, "signing")).toBe(second);
    expect(kidOf(ring().signing, "revoked")).toBe(first);
  });

  test("takes a kid that begins with a dash", () => {
    keys(["create"]);
    const text = readFileSync(file(), "utf8").replace(kidOf(ring().signing, "signing"), "-dash");
    writeFileSync(file(), text);
    expect(keys(["revoke", "-dash"]).code).toBe(0);
    expect(keys(["remove", "--force", "--", "-dash"]).code).toBe(0);
    expect(ring().signing.map(({ kid }) => kid)).not.toContain("-dash");
  });

  test.each([
    [["frobnicate"], "unknown command 'frobnicate'"],
    [["rotat"], "Did you mean rotate?"],
    [["revoke"], "missing required argument 'kid'"],
    [["rotate", "everything"], "Allowed choices are signing, mac."],
    [["create", "--alg", "none"], "Allowed choices are ES256, EdDSA, RS256."],
    [["list", "--frob"], "unknown option '--frob'"],
    [["list", "a"], "too many arguments"],
    [["remove", "a", "b"], "too many arguments"],
    [["rotate", "--pick-up", "soon"], "It must be a number of seconds."],
    [[], "Usage: session-service keys"],
  ])("refuses wrong arguments: %j", (args, fault) => {
    const { code, out, err } = keys(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(fault);
  });

  test("lists for programs, without a secret", () => {
    keys(["create"]);
    const { code, out } = keys(["list", "--json"]);
    const [first, second] = ring().signing;
    expect(code).toBe(0);
    expect(JSON.parse(out).keys).toEqual(
      expect.arrayContaining([
        { kind: "signing", kid: first?.kid, alg: "ES256", state: "signing", since: expect.stringMatching(/Z$/) },
        expect.objectContaining({ kid: second?.kid, next: { step: "sign", from: expect.stringMatching(/Z$/) } }),
      ]),
    );
    for (const { jwk } of [...ring().signing, ...ring().mac]) expect(out).not.toContain(jwk?.d ?? jwk?.k);
  });

  test("names a fault of the ring, the file system or the configuration in a line, without a stack", () => {
    expect(keys(["list"])).toMatchObject({ code: 1, err: expect.stringMatching(/there is none.*create/) });
    writeFileSync(file(), "{", { mode: 0o600 });
    expect(keys(["rotate"])).toEqual({ code: 1, out: "", err: `key ring ${file()}: not JSON\n` });
    const under = keys(["create", "--file", join(file(), "x")]);
    expect(under).toMatchObject({ code: 1, err: expect.not.stringContaining("    at ") });
    expect(keys(["list"], { KEYS_FILE: file(), PORT: "x" })).toMatchObject({
      code: 1,
      err: "PORT is not a whole number\n",
    });
  });

  test("shows its usage when asked", () => {
    for (const args of [["--help"], ["rotate", "-h"], ["help", "rotate"]]) {
      expect(keys(args)).toMatchObject({
        code: 0,
        err: "",
        out: expect.stringMatching(/^Usage: session-service keys/),
      });
    }
  });
});
