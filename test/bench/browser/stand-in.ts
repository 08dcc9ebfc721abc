/**
 * Serves all libraries from one origin: the kit with the real session service, the other libraries with stand-ins that implement as much of
 * Auth0's and Supabase's protocols as these libraries use. The stand-ins tolerate what the session service tolerates (any number of tabs,
 * lost responses), so failures are caused by the library.
 */
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { type Service, startService } from "../../support/service.ts";
import { admin, bearer, message, openAdmin } from "../../support/sessions.ts";

export const LIBRARIES = ["kit", "auth0", "supabase"] as const;
export type Library = (typeof LIBRARIES)[number];

/** The faults of test/browser/engines/origin.ts, and `error`: the service responds with 500. */
export type Fault = "up" | "cut" | "lost" | "held" | "html" | "error";

export type StandIn = {
  readonly url: string;
  fault: Fault;
  /** The number of refresh requests that arrived. */
  readonly refreshes: Record<Library, number>;
  /** The size of each library: bundled, minified, compressed. */
  readonly bytes: Record<Library, number>;
  stop(): Promise<void>;
};

const ENTRY: Record<Library, string> = {
  kit: `export { createSession } from "../../../src/browser/index.ts";`,
  auth0: `export { createAuth0Client } from "@auth0/auth0-spa-js";`,
  supabase: `export { GoTrueClient } from "@supabase/auth-js";`,
};

async function bundle(library: Library): Promise<string> {
  const id = join(import.meta.dirname, "entry.ts");
  const entry = {
    name: "entry",
    resolveId: (name: string) => (name === "entry" ? id : undefined),
    load: (name: string) => (name === id ? ENTRY[library] : undefined),
  };
  const build = await rolldown({ input: "entry", plugins: [entry], platform: "browser", logLevel: "silent" });
  const { output } = await build.generate({ format: "esm", minify: true, codeSplitting: false });
  await build.close();
  return output[0].code;
}

/** The refresh tokens of the stand-ins. They rotate, but replaced ones stay valid. */
class Tokens {
  readonly #live = new Set<string>();
  issue(): string {
    const token = randomUUID();
    this.#live.add(token);
    return token;
  }
  has(token: string): boolean {
    return this.#live.has(token);
  }
}

const jwt = (claims: object) =>
  [{ alg: "RS256", typ: "JWT", kid: "1" }, claims, "signature"]
    .map((part) => Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url"))
    .join(".");

/** @param lifeS the life of access tokens, in s */
export async function startStandIn(lifeS: number): Promise<StandIn> {
  const bundles = Object.fromEntries(
    await Promise.all(LIBRARIES.map(async (library) => [library, await bundle(library)] as const)),
  ) as Record<Library, string>;
  const tokens = new Tokens();
  const nonces = new Map<string, string>();
  const held = new Set<() => void>();
  let fault: Fault = "up";
  let service: Service;

  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://localhost:${port}`;
  service = await startService({
    ISSUER: url,
    TRUST_PROXY: "1",
    COOKIE_SECURE: "false",
    ACCESS_TOKEN_TTL: `${lifeS}s`,
    LOG_LEVEL: "silent",
  });

  const standIn: StandIn = {
    url,
    get fault() {
      return fault;
    },
    set fault(next) {
      fault = next;
      if (next === "held") return;
      for (const release of held) release();
      held.clear();
    },
    refreshes: { kit: 0, auth0: 0, supabase: 0 },
    bytes: Object.fromEntries(
      LIBRARIES.map((library) => [library, gzipSync(bundles[library], { level: 9 }).length]),
    ) as Record<Library, number>,
    async stop() {
      server.closeAllConnections();
      server.close();
      await service.stop();
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", url);
    const [, first, second] = pathname.split("/");
    if (pathname.startsWith("/v1/auth/")) {
      if (pathname.endsWith("/refresh")) standIn.refreshes.kit++;
      await faulty(request, response, async () => passOn(service.publicUrl, request));
    } else if (first === "bundle") send(response, "text/javascript", bundles[second as Library]);
    else if (pathname === "/pages.js") {
      send(response, "text/javascript", readFileSync(join(import.meta.dirname, "pages.js"), "utf8"));
    } else if (pathname === "/kit-login") {
      const created = await openAdmin(service).call(admin.createSession, { subject: "a" }, bearer(service.adminToken));
      response.setHeader("set-cookie", message(created).setCookies as string[]);
      send(response, "text/plain", "signed in");
    } else if (pathname === "/authorize") {
      const code = randomUUID();
      nonces.set(code, searchParams.get("nonce") ?? "");
      const back = new URL(searchParams.get("redirect_uri") ?? url);
      back.searchParams.set("code", code);
      back.searchParams.set("state", searchParams.get("state") ?? "");
      response.writeHead(302, { location: back.href }).end();
    } else if (pathname === "/oauth/token" || pathname === "/supabase/token") {
      const body = await parameters(request);
      const refreshes = body.grant_type === "refresh_token" || searchParams.get("grant_type") === "refresh_token";
      const reply = async () => (first === "oauth" ? auth0(body) : supabase(body, refreshes));
      if (!refreshes) return json(response, await reply());
      standIn.refreshes[first === "oauth" ? "auth0" : "supabase"]++;
      await faulty(request, response, reply);
    } else if (second === undefined || second === "") {
      const module = `<script type="module">globalThis.library = ${JSON.stringify(first)}; import("/pages.js");</script>`;
      send(response, "text/html", `<!doctype html><title>${first}</title>${module}`);
    } else response.writeHead(404).end();
  }

  /** Applies the current network fault to one request. `act` executes the request and returns the response of the service. */
  async function faulty(request: IncomingMessage, response: ServerResponse, act: () => Promise<Reply>): Promise<void> {
    if (fault === "held") await new Promise<void>((resolve) => held.add(resolve));
    if (fault === "cut") return void request.socket.destroy();
    if (fault === "html") return send(response, "text/html", "<!doctype html><title>portal</title>");
    if (fault === "error") {
      response.statusCode = 500;
      return send(response, "application/json", `{"error":{"code":"E500_INTERNAL"},"code":"unexpected_failure"}`);
    }
    const reply = await act();
    if (fault === "lost") request.socket.destroy();
    else json(response, reply);
  }

  function auth0(body: Record<string, string>): Reply {
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: `${url}/`, sub: "a", aud: "client", iat, exp: iat + lifeS };
    if (body.grant_type === "refresh_token" && !tokens.has(body.refresh_token ?? "")) {
      return { status: 403, body: { error: "invalid_grant", error_description: "Unknown or invalid refresh token." } };
    }
    const nonce = nonces.get(body.code ?? "");
    return {
      status: 200,
      body: {
        access_token: jwt({ ...claims, jti: randomUUID() }),
        id_token: jwt({ ...claims, ...(nonce !== undefined && { nonce }) }),
        refresh_token: tokens.issue(),
        token_type: "Bearer",
        scope: "openid profile email offline_access",
        expires_in: lifeS,
      },
    };
  }

  function supabase(body: Record<string, string>, refreshes: boolean): Reply {
    if (refreshes && !tokens.has(body.refresh_token ?? "")) {
      return { status: 400, body: { code: "refresh_token_not_found", message: "Invalid Refresh Token" } };
    }
    const iat = Math.floor(Date.now() / 1000);
    const exp = iat + lifeS;
    const id = createHash("sha256").update("a").digest("hex").slice(0, 32);
    const user = { id, aud: "authenticated", role: "authenticated", email: "a@example.com", app_metadata: {} };
    return {
      status: 200,
      body: {
        access_token: jwt({ sub: id, aud: "authenticated", iat, exp, jti: randomUUID() }),
        refresh_token: tokens.issue(),
        token_type: "bearer",
        expires_in: lifeS,
        expires_at: exp,
        user: { ...user, user_metadata: {}, created_at: new Date().toISOString() },
      },
    };
  }

  return standIn;
}

type Reply = { readonly status: number; readonly body: unknown; readonly headers?: IncomingMessage["headers"] };

function send(response: ServerResponse, type: string, body: string): void {
  response.setHeader("content-type", type);
  response.end(body);
}

function json(response: ServerResponse, { status, body, headers }: Reply): void {
  const cookies = headers?.["set-cookie"];
  response.writeHead(status, { "content-type": "application/json", ...(cookies && { "set-cookie": cookies }) });
  response.end(JSON.stringify(body));
}

async function parameters(request: IncomingMessage): Promise<Record<string, string>> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text.startsWith("{") ? JSON.parse(text) : Object.fromEntries(new URLSearchParams(text));
}

function passOn(publicUrl: string, request: IncomingMessage): Promise<Reply> {
  const headers = { ...request.headers, "x-forwarded-for": "203.0.113.1", "x-forwarded-proto": "http" };
  return new Promise((resolve, reject) => {
    const upstream = forward(publicUrl + request.url, { method: "POST", headers }, async (reply) => {
      let text = "";
      for await (const chunk of reply.setEncoding("utf8")) text += chunk;
      resolve({ status: reply.statusCode ?? 502, body: JSON.parse(text), headers: reply.headers });
    });
    request.pipe(upstream.on("error", reject));
  });
}
