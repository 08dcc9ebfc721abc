/**
 * A TLS origin like that of a deployment: it has the application's pages, its API and its login, and forwards requests to the real service.
 * It also simulates network faults. It can cut, lose, hold or replace the traffic between the browser and the service.
 */
import { request as httpRequest, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { rolldown } from "rolldown";
import { serverAuthority } from "../../support/certificate.ts";
import { type Service, startService } from "../../support/service.ts";
import { admin, bearer, message, openAdmin } from "../../support/sessions.ts";

/**
 * - `up`: nothing is wrong.
 * - `cut`: connections break before the service receives anything.
 * - `lost`: the service acts, and its response never arrives.
 * - `held`: requests wait until the fault is over.
 * - `html`: a captive portal responds in place of the service.
 */
export type Fault = "up" | "cut" | "lost" | "held" | "html";

export type Origin = {
  readonly url: string;
  readonly port: number;
  /** The certificate authority to trust, in PEM. */
  readonly authority: string;
  service: Service;
  fault: Fault;
  /** Returns whether the current fault affects a request to the service. By default it affects all requests. */
  isFaulty: (path: string) => boolean;
  /** Is called with each request to the service that reaches the origin. */
  observe: (request: Http2ServerRequest, path: string) => void;
  /** Whether the response to the login contains the service's offer to bind the session to a key. */
  offersAtLogin: boolean;
  /** Changes the response headers of the service and of the login before they are passed on. */
  change: (headers: OutgoingHttpHeaders, path: string, status: number) => OutgoingHttpHeaders;
  /** The number of requests for `/v1/auth/refresh` that reached the origin, whatever their outcome. */
  refreshes: number;
  /** The number of requests to `/api` with a bearer token, by status. */
  readonly apiCalls: number[];
  /** Returns whether the API refuses a token. */
  refuseTokens: (token: string) => boolean | Promise<boolean>;
  /** Pages and scripts of a test, by path. */
  readonly files: Map<string, { readonly type: string; readonly body: string }>;
  /** Ends the sessions of a subject, as an operator does. */
  revoke(subject: string): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Further host names of the origin beside `localhost`. Each is a separate site. Only browsers that resolve these names to this machine
 * use them.
 */
export const SITES = Array.from({ length: 30 }, (_, index) => `site${index + 1}.test`);

/** @param realm a JavaScript expression, the second argument of `createSession` */
const PAGE = (
  hintCookie: string,
  realm = "globalThis",
) => `<!doctype html><title>application</title><script type="module">
import { createSession } from "/kit.js";
import { withDeviceKey } from "/device.js";
const options = ${JSON.stringify(hintCookie)} ? { hintCookie: ${JSON.stringify(hintCookie)} } : {};
globalThis.session = createSession(options, ${realm});
globalThis.states = [];
session.subscribe(() => states.push(session.snapshot.state));
globalThis.ready = true;
</script>`;

export async function bundleKit(entry = "index.ts"): Promise<string> {
  const build = await rolldown({ input: `src/browser/${entry}`, platform: "browser" });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  return output[0].code;
}

/** @param env settings of the service. They are added to those that the service needs behind a proxy */
export async function startOrigin(env: Readonly<Record<string, string>> = {}): Promise<Origin> {
  const { authority, server: pem } = serverAuthority(["localhost", ...SITES, ...SITES.map((site) => `other.${site}`)]);
  const [kit, device] = await Promise.all([bundleKit(), bundleKit("device/index.ts")]);
  const service = await startService({ TRUST_PROXY: "1", ...env });
  const sockets = new Set<Socket>();
  const held = new Set<() => void>();
  let fault: Fault = "up";
  const origin: Origin = {
    url: "",
    port: 0,
    authority,
    service,
    get fault() {
      return fault;
    },
    set fault(next) {
      fault = next;
      if (next === "held") return;
      for (const release of held) release();
      held.clear();
    },
    isFaulty: () => true,
    observe: () => {},
    offersAtLogin: true,
    change: (headers) => headers,
    refreshes: 0,
    apiCalls: [],
    refuseTokens: () => false,
    files: new Map(),
    async revoke(subject) {
      const headers = bearer(origin.service.adminToken);
      message(await openAdmin(origin.service).call(admin.revokeSubjectSessions, { subject }, headers));
    },
    async stop() {
      for (const release of held) release();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await origin.service.stop();
    },
  };

  const server = createSecureServer({ ...pem, allowHTTP1: true }, (request, response) => {
    void serve(request, response).catch(() => response.stream?.destroy());
  });
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  Object.assign(origin, { port, url: `https://localhost:${port}` });

  async function serve(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url, origin.url);
    if (pathname.startsWith("/v1/auth/")) return await passOn(request, response, pathname);
    const script = (body: string) => response.writeHead(200, { "content-type": "text/javascript" }).end(body);
    const html = (body: string) => response.writeHead(200, { "content-type": "text/html" }).end(body);
    const file = origin.files.get(pathname);
    if (file) response.writeHead(200, { "content-type": file.type }).end(file.body);
    else if (pathname === "/kit.js") script(kit);
    else if (pathname === "/device.js") script(device);
    else if (pathname === "/scripted") html(PAGE(env.SESSION_HINT_COOKIE ?? "", "withDeviceKey()"));
    else if (pathname === "/login") await logIn(searchParams.get("subject") ?? "alice", response);
    else if (pathname === "/api") await respondToApi(request, response);
    else if (pathname === "/clear") {
      response.writeHead(200, { "clear-site-data": `"${searchParams.get("what")}"` }).end();
    } else if (pathname === "/other") html("<!doctype html><title>other</title>");
    else if (pathname === "/plain") html(PAGE(""));
    else if (pathname === "/") html(PAGE(env.SESSION_HINT_COOKIE ?? ""));
    else response.writeHead(404).end();
  }

  async function respondToApi(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const token = request.headers.authorization?.replace(/^Bearer /, "") ?? "";
    const status = token === "" || (await origin.refuseTokens(token)) ? 401 : 200;
    origin.apiCalls.push(status);
    response.writeHead(status, { "content-type": "application/json" }).end("{}");
  }

  async function logIn(subject: string, response: Http2ServerResponse): Promise<void> {
    const { adminToken } = origin.service;
    const created = message(await openAdmin(origin.service).call(admin.createSession, { subject }, bearer(adminToken)));
    const offer = created.secureSessionRegistration as string | undefined;
    const headers = {
      "content-type": "text/html",
      "set-cookie": created.setCookies as string[],
      ...(offer && origin.offersAtLogin && { "secure-session-registration": offer }),
    };
    response.writeHead(200, origin.change(headers, "/login", 200)).end("<!doctype html><title>signed in</title>");
  }

  async function passOn(request: Http2ServerRequest, response: Http2ServerResponse, path: string): Promise<void> {
    if (path === "/v1/auth/refresh") origin.refreshes++;
    origin.observe(request, path);
    const strikes = (kind: Fault) => fault === kind && origin.isFaulty(path);
    if (strikes("held")) await new Promise<void>((resolve) => held.add(resolve));
    if (strikes("cut")) return cut(request, response);
    if (strikes("html")) {
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>portal</title>");
      return;
    }
    const upstream = await forward(request, path);
    if (strikes("lost")) {
      upstream.resume();
      return cut(request, response);
    }
    const { connection: _, "keep-alive": __, "transfer-encoding": ___, ...headers } = upstream.headers;
    const status = upstream.statusCode ?? 502;
    response.writeHead(status, origin.change(headers, path, status));
    upstream.pipe(response);
  }

  function forward(request: Http2ServerRequest, path: string): Promise<IncomingMessage> {
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !name.startsWith(":")));
    const host = request.authority || request.headers.host;
    const forwarded = { host, "x-forwarded-for": "203.0.113.1", "x-forwarded-proto": "https", connection: "close" };
    return new Promise((resolve, reject) => {
      const url = `${origin.service.publicUrl}${path}`;
      const options = { method: request.method, headers: { ...headers, ...forwarded } };
      request.pipe(httpRequest(url, options, resolve).on("error", reject));
    });
  }

  return origin;
}

function cut(request: Http2ServerRequest, response: Http2ServerResponse): void {
  if (request.httpVersionMajor === 2) response.stream.close(2);
  else request.socket.destroy();
}
