/** The code and the table of docs/tasks/test-tokens.md: tokens that applications make in their own tests. */
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { Verifier } from "../../src/verifier/index.ts";
import { scratch } from "../support/service.ts";

type TestTokens = { readonly verifier: Verifier; readonly sign: (claims?: object) => Promise<string> };

const ROOT = join(import.meta.dirname, "../..");
const PAGE = readFileSync(join(ROOT, "docs/tasks/test-tokens.md"), "utf8");
/** The rows of the table that sign a token: its claims, as code, and its verdict. */
const ROWS = [...PAGE.matchAll(/^\| `await sign\((.*)\)` \| `(\w+)`/gm)].map(([, claims = "", verdict]) => ({
  claims: claims === "" ? {} : JSON.parse(claims.replaceAll(/(\w+): /g, '"$1": ')),
  verdict,
}));

let createTestTokens: () => Promise<TestTokens>;
beforeAll(async () => {
  const [, code = ""] = /```ts\n(.*?)```/s.exec(PAGE) ?? [];
  const directory = scratch();
  symlinkSync(join(ROOT, "node_modules"), join(directory, "node_modules"));
  const file = join(directory, "tokens.ts");
  writeFileSync(file, code.replace("@session-service/verifier", join(ROOT, "src/verifier/index.ts")));
  ({ createTestTokens } = await import(file));
});

test("the table has tokens of several verdicts", () => {
  expect(new Set(ROWS.map(({ verdict }) => verdict)).size).toBeGreaterThan(4);
});

test.each(ROWS)("a token with $claims is $verdict", async ({ claims, verdict }) => {
  const { verifier, sign } = await createTestTokens();
  const result = await verifier.verify(await sign(claims));
  verifier.close();
  expect(result.ok ? "ok" : result.reason).toBe(verdict);
  if (result.ok) expect(result.claims).toMatchObject({ sub: "alice", ...claims });
});

test("a token of another key is forged", async () => {
  const [{ verifier }, other] = await Promise.all([createTestTokens(), createTestTokens()]);
  const result = await verifier.verify(await other.sign());
  verifier.close();
  expect(PAGE).toContain("| signed by a second `createTestTokens()` | `forged` |");
  expect(result).toEqual({ ok: false, reason: "forged" });
});
