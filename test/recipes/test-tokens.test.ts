/** The code and the table of docs/tasks/test-tokens.md: tokens that applications make in their own tests. */
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { Verifier } from "../../src/verifier/index.ts";
import { scratch } from "../support/service.ts";
import { GO, PYTHON, PYTHON_PROGRAM, run, runWith } from "../support/verifier/languages.ts";

type TestTokens = { readonly verifier: Verifier; readonly sign: (claims?: object) => Promise<string> };

const ROOT = join(import.meta.dirname, "../..");
const PAGE = readFileSync(join(ROOT, "docs/tasks/test-tokens.md"), "utf8");
/** The rows of the table that sign a token: its claims, as code, and its verdict. */
const ROWS = [...PAGE.matchAll(/^\| `await sign\((.*)\)` \| `(\w+)`/gm)].map(([, claims = "", verdict]) => ({
  claims: claims === "" ? {} : JSON.parse(claims.replaceAll(/(\w+): /g, '"$1": ')),
  verdict,
}));

/** Returns the code of the page in a language. */
const codeIn = (language: string) => new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "s").exec(PAGE)?.[1] ?? "";

let createTestTokens: () => Promise<TestTokens>;
beforeAll(async () => {
  const code = codeIn("ts");
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

describe("in other languages the code makes tokens with the same verdicts", () => {
  const claims = ROWS.map((row) => row.claims);
  const verdicts = [...ROWS.map(({ verdict }) => verdict), "forged"];

  test("Go", async () => {
    const directory = scratch();
    const imports = [
      ...["context", "crypto/ed25519", "encoding/base64", "encoding/json", "fmt", "net/http", "net/http/httptest"],
      ...["testing", "time", "session-service.example/verifier"],
    ];
    const program = `package tokens

import (
${imports.map((name) => `\t"${name}"`).join("\n")}
)

${codeIn("go")}
func TestTokens(t *testing.T) {
	v, sign := newTestTokens(t)
	_, signOther := newTestTokens(t)
	var claims []map[string]any
	json.Unmarshal([]byte(\`${JSON.stringify(claims)}\`), &claims)
	tokens := []string{}
	for _, each := range claims {
		tokens = append(tokens, sign(each))
	}
	for _, token := range append(tokens, signOther(nil)) {
		verdict := v.Verify(context.Background(), token)
		fmt.Printf("verdict: %v %v\\n", verdict.OK, verdict.Reason)
	}
}
`;
    writeFileSync(join(directory, "tokens_test.go"), program);
    await run(directory, "go", "mod", "init", "example.com/tokens");
    await run(directory, "go", "mod", "edit", "-require", "session-service.example/verifier@v0.0.0");
    await run(directory, "go", "mod", "edit", "-replace", `session-service.example/verifier=${GO}`);
    const output = await run(directory, "go", "test", "-v", ".");
    const found = [...output.matchAll(/^verdict: (\w+) ?(\w*)$/gm)].map(([, ok, reason]) =>
      ok === "true" ? "ok" : reason,
    );
    expect(found).toEqual(verdicts);
  });

  test("Python", async () => {
    const directory = scratch();
    const program = `${codeIn("python")}
verifier, sign = create_test_tokens()
_, sign_other = create_test_tokens()
tokens = [sign(**claims) for claims in json.loads('${JSON.stringify(claims)}')]
verdicts = [verifier.verify(token) for token in [*tokens, sign_other()]]
print(json.dumps(["ok" if verdict.ok else verdict.reason for verdict in verdicts]))
verifier.close()
`;
    writeFileSync(join(directory, "tokens.py"), program);
    const output = await runWith({ PYTHONPATH: PYTHON }, directory, PYTHON_PROGRAM, "tokens.py");
    expect(JSON.parse(output)).toEqual(verdicts);
  });
});
