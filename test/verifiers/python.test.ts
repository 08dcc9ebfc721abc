/** The Python package: its type annotations, its imports, and its own tests. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PROOF_REFUSALS, REFUSALS } from "../../src/verifier/index.ts";
import { scratch } from "../support/service.ts";
import { PYTHON, PYTHON_PROGRAM, run } from "../support/verifier/languages.ts";

const PACKAGE = join(PYTHON, "session_verifier");
/** The cache of mypy. Without it, most of each run is spent on the types of the standard library. */
const CACHE = join(process.cwd(), "node_modules/.cache/mypy");
const sources = readdirSync(PACKAGE)
  .filter((name) => name.endsWith(".py"))
  .map((name) => readFileSync(join(PACKAGE, name), "utf8"));

test("has types that mypy accepts", async () => {
  await run(PYTHON, "/usr/bin/mypy", "--strict", "--cache-dir", CACHE, "session_verifier");
});

test("passes its own tests", async () => {
  await run(PYTHON, "/usr/bin/env", "PYTHONPATH=.", PYTHON_PROGRAM, "-m", "unittest", "discover", "tests");
});

test("has examples in its README that mypy accepts", async () => {
  const examples = [...readFileSync(join(PYTHON, "README.md"), "utf8").matchAll(/```python\n([\s\S]*?)```/g)];
  expect(examples).toHaveLength(2);
  const folder = scratch();
  const paths = examples.map(([, example = ""], index) => {
    const path = join(folder, `example_${index}.py`);
    writeFileSync(path, example);
    return path;
  });
  await run(PYTHON, "/usr/bin/mypy", "--config-file", "", "--check-untyped-defs", "--cache-dir", CACHE, ...paths);
});

test("imports the standard library and `cryptography` alone", async () => {
  const imported = sources.flatMap((source) =>
    [...source.matchAll(/^(?:from|import) ([a-z_]\w*)/gm)].map(([, name]) => name as string),
  );
  const known = JSON.parse(
    await run(PYTHON, PYTHON_PROGRAM, "-c", "import sys, json; print(json.dumps(sorted(sys.stdlib_module_names)))"),
  ) as string[];
  expect([...new Set(imported)].filter((name) => !known.includes(name))).toEqual(["cryptography"]);
});

test.each([
  ["Reason", REFUSALS],
  ["ProofReason", PROOF_REFUSALS],
])("has the reasons of the verifier in TypeScript: %s", (name, reasons) => {
  const source = readFileSync(join(PACKAGE, "_verdict.py"), "utf8");
  const [, list = ""] = new RegExp(`^${name} = Literal\\[\n([^\\]]*)\\]`, "m").exec(source) ?? [];
  expect([...list.matchAll(/"(\w+)"/g)].map(([, reason]) => reason)).toEqual([...reasons]);
});
