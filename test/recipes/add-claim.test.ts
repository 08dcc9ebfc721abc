/** The steps of CONTRIBUTING.md that add a claim to the access token, followed in a copy of the tree. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AUTHENTICATION_CLAIMS, RESERVED_CLAIMS, type SESSION_CLAIMS } from "../../src/service/session/claims.ts";
import type { Claims } from "../../src/verifier/verdict.ts";
import { compileProject } from "../support/compiler.ts";
import { tableRows } from "../support/named-tests.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (name: string) => readFileSync(join(ROOT, name), "utf8");
const [SOURCE = "", TYPE = ""] = [
  ...(read("CONTRIBUTING.md")
    .split("## How to add a claim to the access token")[1]
    ?.split("\n## ", 1)[0]
    ?.matchAll(/```ts\n(.*?)```/gs) ?? []),
].map(([, code]) => code);

/** A program that issues a token of a session in the copy, and reads the new claim with the verifier's type. */
const PROBE = `
import { createAccessTokens } from "./src/service/tokens/access-token.ts";
import { introspectedClaims, RESERVED_CLAIMS } from "./src/service/session/claims.ts";
import type { Claims } from "./src/verifier/verdict.ts";
import { countingEntropy, ISSUER, NOW, someKeys, someSession, timeAt } from "./test/support/tokens.ts";

const keys = someKeys();
const tokens = createAccessTokens({ keys, issuer: ISSUER, ttlMs: 300_000, entropy: countingEntropy(), time: timeAt(() => NOW) });
const session = someSession({ client: { userAgent: "", ipAddress: "", displayName: 'a "phone"' } });
const { token } = tokens.issue(session, NOW);
const claims: Claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
const claimed: string | undefined = claims.device_name;
const introspected = introspectedClaims(session, false).device_name;
console.log(JSON.stringify({ claimed, introspected, isReserved: RESERVED_CLAIMS.includes("device_name") }));
`;

let copy: string;
beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "claim-"));
  for (const name of ["src", "gen", "test/support/tokens.ts", "package.json", "tsconfig.json"]) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  writeFileSync(join(copy, "probe.ts"), PROBE);
  writeFileSync(join(copy, "tsconfig.probe.json"), '{ "extends": "./tsconfig.json", "include": ["probe.ts"] }');
});
afterAll(() => rmSync(copy, { recursive: true }));

/** Inserts lines before the text `before`, which must occur once in the file. */
function insert(file: string, lines: string, before: string): void {
  const text = readFileSync(join(copy, file), "utf8");
  const parts = text.split(before);
  expect(parts).toHaveLength(2);
  writeFileSync(join(copy, file), parts.join(lines + before));
}

const run = (...args: readonly string[]) => execFileSync(process.execPath, args, { cwd: copy, encoding: "utf8" });
const compile = () => compileProject(join(copy, "tsconfig.probe.json"));

test("two steps add a claim: to tokens, to introspection, to what no session may bring, and to the verifier's type", async () => {
  expect(await compile()).toMatch(/^\S+probe\.ts\S+ error .*'unknown'/); // The new claim has no type yet.
  expect(JSON.parse(run("probe.ts"))).toEqual({ isReserved: false });
  insert("src/service/session/claims.ts", SOURCE, "} as const satisfies");
  insert("src/verifier/verdict.ts", TYPE, "  readonly [name: string]: unknown;");
  expect(await compile()).toBe("");
  const claimed = 'a "phone"';
  expect(JSON.parse(run("probe.ts"))).toEqual({ claimed, introspected: claimed, isReserved: true });
});

type Named<T> = keyof { [Name in keyof T as string extends Name ? never : Name]: T[Name] };
type WithoutType = Exclude<keyof typeof SESSION_CLAIMS, Named<Claims>>;

test("every claim that follows from the session has its type in the verifier", () => {
  const isComplete: [WithoutType] extends [never] ? true : WithoutType = true;
  expect(isComplete).toBe(true);
});

test("the verifier's page has every claim that the service sets, and no other", () => {
  const described = tableRows(read("docs/tasks/verifier.md"), "Claims").flatMap(([names = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  expect(described.toSorted()).toEqual([...RESERVED_CLAIMS, ...AUTHENTICATION_CLAIMS].sort());
});
