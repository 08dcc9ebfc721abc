/** The templates of examples/stubs generate stubs for Go, Python and TypeScript from the protos. The stubs call a real service. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileProject } from "../support/compiler.ts";
import { type Service, scratch, startService } from "../support/service.ts";

const ROOT = process.cwd();
const run = promisify(execFile);
const PATH = `${join(ROOT, "node_modules/.bin")}:${process.env.PATH}`;

let service: Service;
let directory: string;
beforeAll(async () => {
  // The directory has proto/ and examples/ side by side, as in this repository, because the templates refer to ../../../proto.
  directory = scratch();
  await symlink(join(ROOT, "node_modules"), join(directory, "node_modules"));
  await cp("proto", join(directory, "proto"), { recursive: true });
  await cp("examples/stubs", join(directory, "examples/stubs"), { recursive: true });
  service = await startService();
});
afterAll(() => service?.stop());

const inside = (language: string) => join(directory, "examples/stubs", language);
const generate = (language: string) =>
  run("buf", ["generate"], { cwd: inside(language), env: { ...process.env, PATH } });
const call = (language: string, command: string, args: readonly string[]) =>
  run(command, [...args], {
    cwd: inside(language),
    env: {
      PATH,
      SESSION_ADMIN: new URL(service.adminUrl).host,
      SESSION_PUBLIC: new URL(service.publicUrl).host,
      SESSION_ADMIN_TOKEN_FILE: join(service.dataDir, "admin-token"),
    },
  });

test("Python creates a session and refreshes it over gRPC", async () => {
  await generate("python");
  // Only Debian's Python has the package python3-grpcio.
  expect((await call("python", "/usr/bin/python3", ["main.py"])).stdout).toBe(
    "refreshed alice True\nUNAUTHENTICATED\n",
  );
});

test("TypeScript creates a session and refreshes it over gRPC", async () => {
  await generate("typescript");
  expect(await compileProject(inside("typescript"))).toBe("");
  const ran = await call("typescript", process.execPath, ["out/main.js"]);
  expect(ran.stdout).toBe("refreshed alice true\nUnauthenticated\n");
});

test("Go stubs are in the packages that the example imports, and import published ones for the annotations", async () => {
  await generate("go");
  const example = readFileSync("examples/stubs/go/main.go", "utf8");
  const packages = [...example.matchAll(/(\w+) "example\.com\/app\/(gen\/\S+)"/g)];
  expect(packages.map(([, name]) => name)).toEqual(["adminv1", "authv1"]);
  for (const [, name, path = ""] of packages) {
    const file = path.endsWith("admin/v1") ? "session_admin" : "session";
    const messages = readFileSync(join(inside("go"), path, `${file}.pb.go`), "utf8");
    expect(messages).toContain(`package ${name}\n`);
    expect(messages).toContain('"google.golang.org/genproto/googleapis/api/annotations"');
    expect(readFileSync(join(inside("go"), path, `${file}_grpc.pb.go`), "utf8")).toContain(`package ${name}\n`);
  }
});

test("every proto has a Go package, so that protoc needs no mapping", async () => {
  const { stdout } = await run("buf", ["build", "proto", "--output", "-#format=json"], {
    env: { ...process.env, PATH },
    maxBuffer: 64 * 1024 * 1024,
  });
  const files = (JSON.parse(stdout) as { file: { name: string; options?: { goPackage?: string } }[] }).file;
  expect(files.filter(({ options }) => options?.goPackage === undefined).map(({ name }) => name)).toEqual([]);
});
