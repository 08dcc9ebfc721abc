import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const modules = resolve("node_modules");

const files: Record<string, string> = {
  "package.json": '{"type":"module"}',
  "proto/shelf.proto": `syntax = "proto3";
package shelf;
import "google/api/annotations.proto";
service Shelf {
  rpc GetBook(GetBookRequest) returns (Book) { option (google.api.http) = {get: "/v1/{name=books/*}"}; }
}
message GetBookRequest { string name = 1; int32 page = 2; }
message Book { string name = 1; int32 page = 2; }
`,
  "buf.yaml": "version: v2\nmodules:\n  - path: proto\n",
  "buf.gen.yaml": `version: v2
plugins:
  - local: protoc-gen-es
    out: gen
    include_imports: true
    opt: [target=ts, import_extension=js]
  - local: protoc-gen-connect-http
    out: gen
    opt: [target=ts, import_extension=js]
`,
  "main.ts": `import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createHttpHandler, createRoutes } from "session-service/http";
import { ShelfRoutes } from "./gen/shelf_http.js";
import { Shelf } from "./gen/shelf_pb.js";

const handler = createHttpHandler({
  routes: (router) => void router.service(Shelf, { getBook: ({ name, page }) => ({ name, page }) }),
  tables: [ShelfRoutes],
});
// @ts-expect-error The declarations are there, and they are strict.
createHttpHandler({ routes: () => {}, tables: [], readMaxBytes: "many" });
const server = createServer(handler).listen(0, "127.0.0.1", async () => {
  const { port } = server.address() as AddressInfo;
  const answer = await fetch(\`http://127.0.0.1:\${port}/v1/books/b?page=7\`);
  console.log(answer.status, await answer.text(), JSON.stringify(createRoutes(Shelf).routes) === JSON.stringify(ShelfRoutes.routes));
  server.close();
});
`,
  "tsconfig.json": JSON.stringify({
    compilerOptions: {
      module: "nodenext",
      target: "es2024",
      lib: ["es2024", "esnext.typedarrays"],
      types: ["node"],
      strict: true,
      // Connect's own declarations want the DOM's.
      skipLibCheck: true,
      exactOptionalPropertyTypes: true,
      outDir: "out",
      rootDir: ".",
    },
    include: ["main.ts", "gen"],
  }),
};

describe("the packed package, in a directory of somebody else", () => {
  let directory = "";
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "packed-"));
    const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", directory]);
    const filename = /"filename": "([^"]+)"/.exec(stdout)?.[1] ?? "";
    // What npm install does, without a registry: unpack, link the executables, put the dependencies beside it.
    const installed = join(directory, "node_modules/session-service");
    await mkdir(installed, { recursive: true });
    await mkdir(join(directory, "node_modules/.bin"));
    await run("tar", ["xzf", join(directory, filename), "--strip-components=1", "-C", installed]);
    const { bin } = JSON.parse(await readFile(join(installed, "package.json"), "utf8")) as {
      bin: Record<string, string>;
    };
    for (const [name, path] of Object.entries(bin)) {
      await run("chmod", ["+x", join(installed, path)]);
      await symlink(join(installed, path), join(directory, "node_modules/.bin", name));
    }
    for (const name of ["@bufbuild", "@connectrpc", "@types", "undici-types"])
      await symlink(join(modules, name), join(directory, "node_modules", name));
    // The layer needs no other room of this repository: they go.
    for (const [within, kept] of [
      ["src", ["http", "protoc-gen-http"]],
      ["gen", ["google"]],
    ] as const) {
      for (const room of await readdir(join(installed, "dist", within))) {
        if (!kept.some((name) => name === room)) await rm(join(installed, "dist", within, room), { recursive: true });
      }
    }
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(directory, name)), { recursive: true });
      await writeFile(join(directory, name), text);
    }
    await cp("proto/google", join(directory, "proto/google"), { recursive: true });
  });
  afterAll(() => rm(directory, { recursive: true }));

  it("generates, compiles and serves", async () => {
    const PATH = [join(directory, "node_modules/.bin"), join(modules, ".bin"), process.env.PATH].join(":");
    const there = { cwd: directory, env: { ...process.env, PATH } };
    await run("buf", ["generate"], there);
    expect(await readFile(join(directory, "gen/shelf_http.ts"), "utf8")).toContain(`from "session-service/http"`);
    const compiled = await run("tsc", ["-p", "."], there).catch((error: { stdout: string }) => error);
    expect(compiled.stdout).toBe("");
    const { stdout } = await run(process.execPath, ["out/main.js"], there);
    expect(stdout).toBe('200 {"name":"books/b","page":7} true\n');
  });
});
