/** The layout of the Go module, and its own tests. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PROOF_REFUSALS, REFUSALS } from "../../src/verifier/index.ts";
import { scratch } from "../support/service.ts";
import { GO, run, runWith } from "../support/verifier/languages.ts";

test("is formatted", async () => {
  expect(await run(GO, "gofmt", "-l", ".")).toBe("");
});

test("has no finding of `go vet`", async () => {
  await run(GO, "go", "vet", "./...");
});

test("passes its own tests", async () => {
  await run(GO, "go", "test", "./...");
});

test("needs the standard library alone", async () => {
  expect(await run(GO, "go", "list", "-m", "all")).toBe("session-service.example/verifier\n");
});

test("has an example in its README that compiles, from another module", async () => {
  const [, example = ""] = /```go\n([\s\S]*?)```/.exec(readFileSync(join(GO, "README.md"), "utf8")) ?? [];
  const folder = join(scratch(), "example");
  mkdirSync(folder);
  writeFileSync(join(folder, "main.go"), example);
  await run(folder, "go", "mod", "init", "example.com/service");
  await run(folder, "go", "mod", "edit", "-require", "session-service.example/verifier@v0.0.0");
  await run(folder, "go", "mod", "edit", "-replace", `session-service.example/verifier=${GO}`);
  await run(folder, "go", "vet", ".");
});

test("has interceptors for gRPC, which pass their tests with Debian's gRPC", async () => {
  // Debian installs the sources of gRPC in a GOPATH, the layout from before Go modules.
  const path = scratch();
  const here = join(path, "src/session-service.example/verifier");
  cpSync(GO, here, { recursive: true });
  symlinkSync(join(GO, "../../test"), join(path, "src/test"));
  const env = { GO111MODULE: "off", GOFLAGS: "", GOPATH: `${path}:/usr/share/gocode` };
  expect(await runWith(env, join(here, "grpc"), "gofmt", "-l", ".")).toBe("");
  await runWith(env, join(here, "grpc"), "go", "test", ".");
});

test.each([
  ["verdict.go", REFUSALS],
  ["proofreason.go", PROOF_REFUSALS],
])("has the reasons of the verifier in TypeScript: %s", (name, reasons) => {
  const source = readFileSync(join(GO, name), "utf8");
  expect([...source.matchAll(/ Reason = "(\w+)"/g)].map(([, reason]) => reason)).toEqual([...reasons]);
});
