/**
 * `npm run test:snippets`: the snippets of pages for languages and frameworks whose packages no other test installs, with a real service. Those
 * of docs/start/getting-started.md create sessions; those of docs/tasks/optional-sign-in.md serve requests without a token, with a good and
 * with a bad one; the libraries in the table of docs/tasks/clients.md refresh; the verifier in Java of docs/tasks/verifier.md sees a logout. Needs
 * Go, python3 with venv, Java 17 and Maven, and PyPI, the Go module proxy and Maven Central.
 */
import { strict as assert } from "node:assert";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { tableRows } from "../support/named-tests.ts";
import { inTime, until } from "../support/until.ts";

const ROOT = join(import.meta.dirname, "../..");
const GO_PACKAGES = [
  "github.com/gin-gonic/gin@v1.12.0",
  "github.com/labstack/echo/v4@v4.15.0",
  "golang.org/x/oauth2@v0.37.0",
];
const PYTHON_PACKAGES = [
  "fastapi==0.165.0",
  "uvicorn==0.54.0",
  "Authlib==1.9.9",
  "requests-oauthlib==2.0.0",
  "cryptography",
];
/** How long something may take that takes a moment, in ms. It only tells a hang. */
const LIMIT_MS = 120_000;
const ADMIN_TOKEN = "a".repeat(32);
/** The key of RFC 7517 appendix A.1, which has signed no token. */
const OLDER_KEY = {
  ...{ kty: "EC", crv: "P-256", kid: "older" },
  x: "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
  y: "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
};
const NIMBUS = "com.nimbusds:nimbus-jose-jwt:9.37.3";

const directory = mkdtempSync(join(tmpdir(), "session-service-snippets-"));
const children: ChildProcess[] = [];
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** Starts a program that prints a line of JSON when it is ready. */
async function start(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Record<string, string>> {
  const child = spawn(program, args, {
    cwd: directory,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const limit = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  try {
    for await (const line of createInterface({ input: child.stdout }))
      if (line.startsWith("{")) return JSON.parse(line);
  } finally {
    clearTimeout(limit);
    child.stdout.resume();
  }
  throw new Error(`${program} ended before it was ready`);
}

const pages = ["docs/start/getting-started.md", "docs/tasks/optional-sign-in.md"].map(read).join("\n");
const blocks = (language: string) =>
  [...pages.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "gs"))].map(([, code = ""]) => code);

const service = await start(process.execPath, [join(ROOT, "src/service/main.ts")], {
  ...{ DATA_DIR: join(directory, "data"), PORT: "0", ADMIN_PORT: "0", DRAIN_DELAY: "0", LOG_LEVEL: "error" },
  ...{ ADMIN_TOKENS: ADMIN_TOKEN, ISSUER: "https://auth.example.com" },
});
const env = { SERVICE: service.public, ADMIN_URL: service.admin, ADMIN_TOKEN, ISSUER: "https://auth.example.com" };

async function signIn(request: object): Promise<{ readonly accessToken: string; readonly refreshToken: string }> {
  const response = await fetch(`${service.admin}/auth.admin.v1.SessionAdminService/CreateSession`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ subject: "alice", ...request }),
  });
  assert.equal(response.status, 200);
  return (await response.json()) as { accessToken: string; refreshToken: string };
}

/** Checks that a page for everybody shows its user, if there is one, and refuses a bad token. */
async function checkOptional(name: string, url: string | undefined): Promise<void> {
  assert.ok(url !== undefined);
  const get = (authorization?: string) => fetch(url, authorization === undefined ? {} : { headers: { authorization } });
  assert.equal(await (await get()).text(), "nobody");
  const { accessToken } = await signIn({});
  assert.equal(await (await get(`Bearer ${accessToken}`)).text(), "alice");
  const refused = await get("Bearer bad");
  assert.deepEqual([refused.status, refused.headers.get("www-authenticate")?.startsWith("Bearer")], [401, true]);
  console.log(`${name}: without a token, with a good one, with a bad one`);
}

/** Creates a session by the code of a login handler, and tries to without a credential. */
function checkLogin(language: string, run: (token: string) => string): void {
  assert.match(run(ADMIN_TOKEN), /refresh_token=\S+; /, language);
  assert.match(run("bad"), /401.*unauthenticated/, language);
  console.log(`${language}: created a session, and was refused one`);
}

/** Refreshes by a library, with the code of its row in docs/tasks/clients.md. It has to print the access token. */
async function checkRefresh(library: string, run: (code: string, token: string) => string): Promise<void> {
  const row = tableRows(read("docs/tasks/clients.md"), "With a library").find(([name]) => name?.startsWith(library));
  const [, code = ""] = /^`(.*)`$/.exec(row?.at(-1) ?? "") ?? [];
  const { refreshToken } = await signIn({ clientId: "cli", transport: "TRANSPORT_TOKEN" });
  assert.match(run(code, refreshToken), /^ey\S+\.\S+\.\S+\s*$/, library);
  console.log(`${library}: refreshed`);
}

const GO = `package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
	"golang.org/x/oauth2"
	"session-service.example/verifier"
)

var v *verifier.Verifier

${blocks("go").join("\n")}
func refresh(service, token string) {
	config := oauth2.OAUTH_CONFIG
	got, err := config.TokenSource(context.Background(), &oauth2.Token{RefreshToken: token}).Token()
	if err != nil {
		panic(err)
	}
	fmt.Println(got.AccessToken)
}

func serve(handler http.Handler) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, handler)
	return "http://" + listener.Addr().String()
}

func main() {
	if len(os.Args) > 2 {
		cookies, err := createSession(os.Args[2])
		fmt.Println(cookies, err)
		return
	}
	if len(os.Args) > 1 {
		refresh(os.Getenv("SERVICE"), os.Args[1])
		return
	}
	var err error
	v, err = verifier.New(verifier.Options{
		AdminURL: os.Getenv("ADMIN_URL"), AdminToken: func() string { return os.Getenv("ADMIN_TOKEN") },
		Issuer: os.Getenv("ISSUER"), Audience: []string{os.Getenv("ISSUER")},
	})
	if err == nil {
		err = v.Ready(context.Background())
	}
	if err != nil {
		panic(err)
	}
	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.Use(optionalUser)
	g.GET("/", func(c *gin.Context) { c.String(200, c.GetString("user")+nobody(c.GetString("user"))) })
	e := echo.New()
	e.Use(optionalUserEcho)
	e.GET("/", func(c echo.Context) error {
		user, _ := c.Get("user").(string)
		return c.String(200, user+nobody(user))
	})
	ready, _ := json.Marshal(map[string]string{"gin": serve(g), "echo": serve(e)})
	fmt.Println(string(ready))
	select {}
}

func nobody(user string) string {
	if user == "" {
		return "nobody"
	}
	return ""
}
`;

const PYTHON = `import json
import os
import socket
import sys
import urllib.request

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import PlainTextResponse
from session_verifier import AsyncVerifier, authorize_async

verifier = AsyncVerifier(
    admin_url=os.environ["ADMIN_URL"], admin_token=os.environ["ADMIN_TOKEN"],
    issuer=os.environ["ISSUER"], audience=os.environ["ISSUER"],
)
app = FastAPI()

${blocks("python").join("\n")}

@app.get("/")
async def home(user: str | None = Depends(optional_user)) -> PlainTextResponse:
    return PlainTextResponse(user or "nobody")


if len(sys.argv) > 2:
    try:
        print(create_session(sys.argv[2]))
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
    sys.exit()
listener = socket.create_server(("127.0.0.1", 0))
print(json.dumps({"fastapi": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
`;

async function tryGo(): Promise<void> {
  const module = join(directory, "go");
  mkdirSync(module);
  const go = (...args: string[]) => execFileSync("go", args, { cwd: module, stdio: ["ignore", "inherit", "inherit"] });
  go("mod", "init", "example.com/snippets");
  go("mod", "edit", "-require", "session-service.example/verifier@v0.0.0");
  go("mod", "edit", "-replace", `session-service.example/verifier=${join(ROOT, "verifiers/go")}`);
  const row = tableRows(read("docs/tasks/clients.md"), "With a library").find(([name]) =>
    name?.startsWith("golang.org"),
  );
  const config = (row?.at(-1) ?? "").replaceAll("`", "").replaceAll("Endpoint: Endpoint", "Endpoint: oauth2.Endpoint");
  const main = GO.replace("OAUTH_CONFIG", config.replace("AuthStyle: AuthStyle", "AuthStyle: oauth2.AuthStyle"));
  writeFileSync(join(module, "main.go"), main);
  go("get", ...GO_PACKAGES);
  go("build", "-o", "snippets", ".");
  const program = join(module, "snippets");
  const urls = await start(program, [], env);
  checkLogin("Go", (token) =>
    execFileSync(program, ["create", "alice"], {
      env: { ...process.env, ...env, ADMIN_TOKEN: token },
      encoding: "utf8",
    }),
  );
  await checkOptional("gin", urls.gin);
  await checkOptional("echo", urls.echo);
  await checkRefresh("golang.org/x/oauth2", (_, token) =>
    execFileSync(program, [token], { env: { ...process.env, ...env }, encoding: "utf8" }),
  );
}

async function tryPython(): Promise<void> {
  const environment = join(directory, "python");
  execFileSync("python3", ["-m", "venv", environment]);
  execFileSync(join(environment, "bin/pip"), ["install", "-q", ...PYTHON_PACKAGES], { stdio: "inherit" });
  const python = join(environment, "bin/python");
  writeFileSync(join(directory, "application.py"), PYTHON);
  const urls = await start(python, ["application.py"], { ...env, PYTHONPATH: join(ROOT, "verifiers/python") });
  checkLogin("Python", (token) => {
    const given = { ...process.env, ...env, ADMIN_TOKEN: token, PYTHONPATH: join(ROOT, "verifiers/python") };
    const args = ["application.py", "create", "alice"];
    return execFileSync(python, args, { cwd: directory, env: given, encoding: "utf8" });
  });
  await checkOptional("FastAPI", urls.fastapi);
  for (const [library, module] of [
    ["Authlib", "authlib.integrations.requests_client"],
    ["requests-oauthlib", "requests_oauthlib"],
  ] as const) {
    await checkRefresh(library, (code, token) => {
      const program = `from ${module} import OAuth2Session\nservice, token = ${JSON.stringify(service.public)}, ${JSON.stringify(token)}\nprint((${code})["access_token"])`;
      const insecure = { ...process.env, OAUTHLIB_INSECURE_TRANSPORT: "1", AUTHLIB_INSECURE_TRANSPORT: "1" };
      return execFileSync(python, ["-c", program], { env: insecure, encoding: "utf8" });
    });
  }
}

/** Verifies tokens by the lines of docs/tasks/verifier.md, and prints the verdict of each line that it reads. */
function javaProgram(): string {
  const [, code = ""] = /```java\n(.*?)```/s.exec(read("docs/tasks/verifier.md")) ?? [];
  const [create = "", verify = ""] = code
    .replace('"http://127.0.0.1:8081"', 'System.getenv("ADMIN_URL")')
    .replace("adminToken", 'System.getenv("ADMIN_TOKEN")')
    .replace(/"https:[^"]*", "https:[^"]*"/, 'System.getenv("ISSUER"), System.getenv("ISSUER")')
    .split("\n");
  return `import java.util.Scanner;

public final class Program {
  public static void main(String[] args) {
    ${create}
    for (Scanner in = new Scanner(System.in); in.hasNextLine();) {
      String token = in.nextLine();
      ${verify}
      System.out.println(reason);
    }
    System.exit(0);
  }
}
`;
}

/** Starts a proxy in front of the admin API, whose key set can be replaced by one without keys. */
async function startKeyProxy() {
  const state = { isEmpty: false, emptySets: 0, isOlder: false };
  const server = createServer((request, response) => {
    if (state.isEmpty && request.url === "/.well-known/jwks.json") {
      state.emptySets++;
      response.end('{"keys":[]}');
      return;
    }
    if (state.isOlder && request.url === "/.well-known/jwks.json") {
      response.end(JSON.stringify({ keys: [OLDER_KEY] }));
      return;
    }
    const { method, headers } = request;
    const upstream = httpRequest(`${service.admin}${request.url}`, { method, headers }, (reply) => {
      response.writeHead(reply.statusCode ?? 502, reply.headers);
      response.flushHeaders();
      reply.pipe(response);
    });
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, state, server };
}

async function tryJava(): Promise<void> {
  const { url, state, server } = await startKeyProxy();
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: directory, stdio: ["ignore", "inherit", "inherit"] });
  run("mvn", "-q", "dependency:copy", `-Dartifact=${NIMBUS}`, `-DoutputDirectory=${directory}`);
  writeFileSync(join(directory, "Program.java"), javaProgram());
  run("javac", "-cp", "*", "-d", "classes", join(ROOT, "examples/java/SessionVerifier.java"), "Program.java");
  const child = spawn("java", ["-cp", `classes:${directory}/*`, "Program"], {
    cwd: directory,
    env: { ...process.env, ...env, ADMIN_URL: url },
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  /** Presents a token until the verdict is this one: the verifier reads keys and feed by itself. */
  async function expectVerdict(token: string, wanted: string): Promise<void> {
    await until(async () => {
      child.stdin.write(`${token}\n`);
      assert.equal((await lines.next()).value, wanted);
    });
  }
  const { accessToken, refreshToken } = await signIn({});
  state.isOlder = true;
  await expectVerdict(accessToken, "unknown_key");
  state.isOlder = false;
  // The next regular read of the keys is up to ten seconds away.
  const publishedAt = performance.now();
  await expectVerdict(accessToken, "null");
  assert.ok(performance.now() - publishedAt < 5000, "a new key is known at once");
  await expectVerdict(`${accessToken.slice(0, -8)}AAAAAAAA`, "forged");
  state.isEmpty = true;
  // The second read begins once the first one has been judged.
  await until(() => assert.ok(state.emptySets >= 2), LIMIT_MS);
  await expectVerdict(accessToken, "null");
  const logout = { method: "POST", headers: { cookie: `refresh_token=${refreshToken}` } };
  assert.equal((await fetch(`${service.public}/v1/auth/logout`, logout)).status, 200);
  await expectVerdict(accessToken, "revoked");
  const exited = once(child, "exit");
  child.stdin.end();
  assert.deepEqual(await inTime("the program in Java ends with its input", exited), [0, null]);
  server.close();
  server.closeAllConnections();
  console.log("Java: accepted a token, refused a forged one, kept its keys, and saw a logout");
}

try {
  await tryJava();
  await tryGo();
  await tryPython();
} finally {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
}
