/** The resource servers of examples/, compiled against the packed verifier and called with the tokens of a real service. */
import { readFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { connect } from "node:http2";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Directory, installPacked } from "../packages/install.ts";
import { compileProject } from "../support/compiler.ts";
import { freePort } from "../support/free-port.ts";
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { type Service, startService } from "../support/service.ts";
import { bearer, logIn } from "../support/sessions.ts";
import { until } from "../support/until.ts";

const EXAMPLES = ["express", "fastify", "connect"];
const ISSUER = "https://auth.example";
const AUDIENCE = "https://api.example";

/** The time limit for compiling the examples, in ms, which is long enough for a busy machine. */
const SETUP_TIMEOUT_MS = 300_000;

let service: Service;
let directory: Directory;
beforeAll(async () => {
  const linked = ["@types/node", "undici-types", "express", "@types/express", "fastify"];
  directory = await installPacked("verifier", linked);
  for (const name of EXAMPLES) await cp(join("examples", name), join(directory.path, name), { recursive: true });
  const { compilerOptions } = JSON.parse(readFileSync("examples/express/tsconfig.json", "utf8"));
  await directory.write({
    "package.json": '{"type":"module"}',
    "tsconfig.json": JSON.stringify({ compilerOptions, include: EXAMPLES }),
  });
  await directory.run("sh", ["-c", "cd connect && buf generate"]);
  expect(await compileProject(directory.path)).toBe("");
  service = await startService({ ISSUER, AUDIENCE });
}, SETUP_TIMEOUT_MS);
afterAll(async () => {
  await service?.stop();
  await directory?.remove();
});

type Reply = { readonly status: number; readonly body: string };
type Call = (port: number, headers: Readonly<Record<string, string>>) => Promise<Reply>;

const get: Call = async (port, headers) => {
  const response = await fetch(`http://127.0.0.1:${port}/api/hello`, { headers });
  return { status: response.status, body: await response.text() };
};

/** Calls over Connect, with HTTP/2 without TLS. */
const rpc: Call = (port, headers) =>
  new Promise((resolve, reject) => {
    const session = connect(`http://127.0.0.1:${port}`).on("error", reject);
    const path = "/greet.v1.GreetService/Hello";
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/json",
      ...headers,
    });
    stream.on("error", reject);
    let [status, body] = [0, ""];
    stream.on("response", (head) => {
      status = Number(head[":status"]);
    });
    stream.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    stream.on("end", () => {
      session.close();
      resolve({ status, body });
    });
    stream.end("{}");
  });

describe.each([
  ["express", "server.js", get],
  ["fastify", "server.js", get],
  ["connect", "server.js", rpc],
] as const)("%s", (name, file, call) => {
  let program: Program;
  let port: number;
  beforeAll(async () => {
    port = await freePort();
    const { adminUrl, dataDir } = service;
    const token = join(dataDir, "admin-token");
    const env = { PORT: String(port), SESSION_ADMIN_URL: adminUrl, SESSION_ADMIN_TOKEN_FILE: token, ISSUER, AUDIENCE };
    program = startProgram(process.execPath, [join(directory.path, "out", name, file)], { env });
    await whileRunning(program, () => call(port, {}));
  });
  afterAll(() => program?.stop());

  test("lets in whoever has an access token, until the logout", async () => {
    const { accessToken } = await logIn(service, { subject: "alice", claims: { role: "editor" } });
    expect(await call(port, bearer(accessToken))).toEqual({ status: 200, body: '{"hello":"alice"}' });
    const url = `${service.publicUrl}/v1/auth/logout`;
    expect((await fetch(url, { method: "DELETE", headers: bearer(accessToken) })).status).toBe(200);
    await until(async () => expect((await call(port, bearer(accessToken))).status).toBe(401));
  });

  test("refuses a request without a token, and a user without the claim", async () => {
    expect((await call(port, {})).status).toBe(401);
    expect((await call(port, bearer("eyJhbGciOiJub25lIn0.e30."))).status).toBe(401);
    const { accessToken } = await logIn(service, { claims: { role: "reader" } });
    expect((await call(port, bearer(accessToken))).status).toBe(403);
  });
});

describe("the manifests of the examples", () => {
  const root = JSON.parse(readFileSync("package.json", "utf8"));
  const known: Record<string, string> = { ...root.dependencies, ...root.devDependencies };

  test.each(["express", "fastify", "connect", "oidc-login", "stubs/typescript"])(
    "%s depends on the versions that the tests use",
    (name) => {
      const manifest = JSON.parse(readFileSync(join("examples", name, "package.json"), "utf8"));
      const versions = Object.entries<string>({ ...manifest.dependencies, ...manifest.devDependencies });
      const others = versions.filter(([, version]) => !version.startsWith("file:"));
      expect(Object.fromEntries(others)).toEqual(Object.fromEntries(others.map(([one]) => [one, known[one]])));
    },
  );
});
