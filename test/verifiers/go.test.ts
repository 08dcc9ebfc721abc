/** The Go module: its form, and its own tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REFUSALS } from "../../src/verifier/index.ts";
import { GO, run } from "../support/verifier/languages.ts";

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

test("has the reasons of the verifier in TypeScript", () => {
  const source = readFileSync(join(GO, "verdict.go"), "utf8");
  expect([...source.matchAll(/ Reason = "(\w+)"/g)].map(([, reason]) => reason)).toEqual([...REFUSALS]);
});
