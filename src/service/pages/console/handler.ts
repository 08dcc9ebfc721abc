/** The console of the admin listener: its page, its sign-in, and the admin API for those who are signed in. */
import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { SessionAdminService } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SignalsAdminService } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import {
  type Handler,
  type HttpRequest,
  type HttpResponse,
  type Route,
  respond,
  retryAfter,
} from "../../../platform/listener/handler.ts";
import { readBody, sendJson } from "../../../platform/listener/json.ts";
import { type Page, sendPage } from "../../../platform/listener/pages.ts";
import type { NodeRequestSource } from "../../../platform/listener/request-source.ts";
import type { Admin } from "../../session/admin/access.ts";
import { type FailureDeps, takeFailure } from "../../session/attempts.ts";
import type { Requester } from "../../session/audit.ts";
import type { Operators } from "../../sign-in/operators.ts";
import { consoleCookie, consoleCookies, readConsoleCookie } from "./cookie.ts";
import { consoleFiles } from "./files.ts";
import { isFromConsole } from "./origin.ts";
import type { Passes } from "./passes.ts";
import { type ConsoleCredential, createSignIns, type SignInRecords, type SignIns } from "./sign-ins.ts";

const {
  getSession,
  listSessions,
  listSessionEvents,
  revokeSession,
  revokeSubjectSessions,
  exportSubject,
  forgetSubject,
} = SessionAdminService.method;
const { listSubscriptions, pauseSubscription, resumeSubscription, testSubscription } = SignalsAdminService.method;

const ROOT = "/console";
const API = `${ROOT}/api`;
/**
 * The only RPCs that are forwarded, those that the page calls. So a stolen cookie cannot create a session for anybody, and cannot open a
 * stream that would outlive the sign-in.
 */
const CALLS = new Set(
  [
    ...[getSession, listSessions, listSessionEvents, revokeSession, revokeSubjectSessions],
    ...[exportSubject, forgetSubject],
    ...[listSubscriptions, pauseSubscription, resumeSubscription, testSubscription],
  ].map(({ parent, name }) => `/${parent.typeName}/${name}`),
);
/** The body of a sign-in contains one admin token. */
const MAX_BODY_BYTES = 8 * 1024;
/** How many sign-ins a sign-out ends. A browser has one cookie for each path. */
const MAX_COOKIES = 4;

type Log = (fields: object, message: string) => void;

export type ConsoleDeps = FailureDeps & {
  readonly passes: Passes;
  /** How operators sign in; undefined if they sign in with admin tokens. */
  readonly operators: Operators | undefined;
  readonly log: { readonly info: Log; readonly error: Log };
  readonly sourceOf: (request: HttpRequest) => NodeRequestSource;
  readonly consoleSignIns: SignInRecords;
  /** Returns what the live page shows (live.ts). */
  readonly live: () => Promise<unknown>;
};

type Exchange = {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly source: NodeRequestSource;
  /** Whether the browser used https. */
  readonly secure: boolean;
  readonly cookie: string | undefined;
};

/** Serves the paths below `/console`. The calls of a signed-in page go to `rpc`. */
export function consoleRoute(deps: ConsoleDeps, rpc: Handler): Route {
  const secret = () => randomBytes(32).toString("base64url");
  const signIns = createSignIns({ adminOf: adminBy(deps), records: deps.consoleSignIns, secret });
  const files = consoleFiles();
  const serve = (request: HttpRequest, response: HttpResponse) => {
    const path = pathOf(request);
    const source = deps.sourceOf(request);
    const secure = source.origin()?.startsWith("https:") ?? false;
    const cookie = readConsoleCookie(request.headers.cookie, secure);
    const exchange = { request, response, source, secure, cookie };
    const file = files(path);
    const work = file === undefined ? handle(deps, signIns, exchange, path, rpc) : sendFile(exchange, file);
    work.catch((err: unknown) => {
      deps.log.error({ event: "bug", err, method: "console", ...source.correlation() }, "bug");
      response.destroy();
    });
  };
  return (request) => {
    const path = pathOf(request);
    return path === ROOT || path.startsWith(`${ROOT}/`) ? serve : undefined;
  };
}

/** With a provider, no admin token is a credential of the console. */
const adminBy =
  ({ operators, passes }: ConsoleDeps) =>
  (credential: ConsoleCredential): Admin | undefined => {
    if (credential.kind === "operator") return operators?.adminOf(credential.operator);
    return operators === undefined ? passes.byToken(credential.token) : undefined;
  };

const pathOf = ({ url = "" }: HttpRequest) => url.split("?", 1)[0] ?? "";

async function sendFile({ request, response }: Exchange, file: Promise<Page>): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") return respond(response, 405, { allow: "GET, HEAD" });
  return sendPage(() => file, request, response);
}

async function handle(
  deps: ConsoleDeps,
  signIns: SignIns,
  exchange: Exchange,
  path: string,
  rpc: Handler,
): Promise<void> {
  const { request, response, source, cookie } = exchange;
  const operation = `${request.method} ${path}`;
  // The provider leads the browser here. What proves that the browser began this sign-in is a cookie of its own.
  if (operation === `GET ${ROOT}/callback` && deps.operators) return callback(deps, deps.operators, signIns, exchange);
  if (!isFromConsole(request.headers, source.origin())) return sendError(response, 403, "forbidden");
  if (operation === `GET ${ROOT}/sign-in`) return sendJson(response, 200, { provider: deps.operators?.title() });
  if (operation === `POST ${ROOT}/sign-in` && deps.operators) return begin(deps.operators, signIns, exchange);
  if (operation === `POST ${ROOT}/session` && !deps.operators) return signIn(deps, signIns, exchange);
  if (operation === `DELETE ${ROOT}/session`) return signOut(deps, signIns, exchange);
  const signedIn = cookie === undefined ? undefined : await signIns.find(cookie);
  if (signedIn === undefined) return sendError(response, 401, "unauthenticated");
  const { admin, credential, expiresAt } = signedIn;
  if (operation === `GET ${ROOT}/session`) return sendJson(response, 200, describe(admin, expiresAt));
  if (operation === `GET ${ROOT}/live`) {
    if (!admin.scopes.has("metrics")) return sendError(response, 403, "permission_denied");
    return sendJson(response, 200, await deps.live());
  }
  const call = path.slice(API.length);
  if (!path.startsWith(API) || !CALLS.has(call) || request.method !== "POST")
    return sendError(response, 404, "not_found");
  request.url = call;
  delete request.headers.cookie;
  const token = credential.kind === "token" ? credential.token : deps.passes.issue(admin, response);
  request.headers.authorization = `Bearer ${token}`;
  rpc(request, response);
}

const describe = ({ name, scopes }: Admin, expiresAt: number) => ({ name, scopes: [...scopes], expiresAt });

async function signIn(deps: ConsoleDeps, signIns: SignIns, exchange: Exchange): Promise<void> {
  const { request, response, source, secure } = exchange;
  const token = tokenIn(request.headers, await readBody(request, MAX_BODY_BYTES));
  if (token === undefined) return sendError(response, 400, "invalid_argument");
  const added = await addSignIn(deps, signIns, exchange, { kind: "token", token });
  if (added === undefined) {
    const requester: Requester = {
      address: () => source.address(),
      adminName: undefined,
      correlation: () => source.correlation(),
    };
    deps.audit({ event: "authn_failed", operation: "ConsoleSignIn", reason: "forged", admin: true }, requester);
    const retryAfterMs = takeFailure(deps, requester);
    if (retryAfterMs === undefined) return sendError(response, 401, "unauthenticated");
    return sendError(response, 429, "resource_exhausted", { "retry-after": retryAfter(retryAfterMs) });
  }
  sendJson(response, 200, describe(added.admin, added.expiresAt), {
    "set-cookie": consoleCookie(added.cookie, secure),
  });
}

async function addSignIn(
  { log }: ConsoleDeps,
  signIns: SignIns,
  { cookie: former, source }: Exchange,
  credential: ConsoleCredential,
) {
  const cookie = await signIns.add(credential);
  const signedIn = cookie === undefined ? undefined : await signIns.find(cookie);
  if (cookie === undefined || signedIn === undefined) return undefined;
  // The response replaces the cookie of an earlier sign-in, which nobody could use any more. So the earlier sign-in ends.
  if (former !== undefined) await signIns.remove(former);
  record(log, { event: "console_signed_in", by: signedIn.admin.name }, source);
  return { ...signedIn, cookie };
}

/** Ends every sign-in that the browser names: of several, it is not known which one is the operator's. */
async function signOut({ log }: ConsoleDeps, signIns: SignIns, { request, response, source, secure }: Exchange) {
  for (const cookie of consoleCookies(request.headers.cookie, secure).slice(0, MAX_COOKIES)) {
    const name = (await signIns.find(cookie))?.admin.name;
    await signIns.remove(cookie);
    if (name) record(log, { event: "console_signed_out", by: name }, source);
  }
  sendJson(response, 200, {}, { "set-cookie": consoleCookie(undefined, secure) });
}

/** Leads the page to the provider. The browser's earlier sign-in ends now: its cookie does not come with the provider's redirect. */
async function begin(operators: Operators, signIns: SignIns, exchange: Exchange): Promise<void> {
  const { request, response, source, cookie } = exchange;
  const origin = source.origin();
  if (origin === null) return sendError(response, 400, "invalid_argument");
  if (cookie !== undefined) await signIns.remove(cookie);
  const begun = await operators.begin({ origin, cookies: request.headers.cookie ?? "" });
  if (!begun.ok) return sendError(response, 503, "unavailable");
  sendJson(response, 200, { url: begun.url }, { "set-cookie": [...begun.cookies] });
}

async function callback(deps: ConsoleDeps, operators: Operators, signIns: SignIns, exchange: Exchange): Promise<void> {
  const { request, response, source, secure } = exchange;
  const origin = source.origin();
  const { search = "" } = URL.parse(request.url ?? "", origin ?? undefined) ?? {};
  if (origin === null || request.headers["sec-purpose"] !== undefined) {
    return sendError(response, 400, "invalid_argument");
  }
  const finished = await operators.finish({ origin, cookies: request.headers.cookie ?? "" }, search);
  const always = { "cache-control": "no-store", "referrer-policy": "no-referrer" };
  if (finished.ok) {
    const added = await addSignIn(deps, signIns, exchange, { kind: "operator", operator: finished.operator });
    const cookies = [finished.cookie, consoleCookie(added?.cookie, secure)];
    return respond(response, 303, { ...always, location: ROOT, "set-cookie": cookies, "content-length": 0 });
  }
  const { status, headers, body } = finished.page;
  const fields = { ...always, ...headers, "set-cookie": finished.cookie, "content-length": Buffer.byteLength(body) };
  respond(response, status, fields, body);
}

function record(
  log: ConsoleDeps["log"],
  event: { readonly event: string; readonly by: string },
  source: NodeRequestSource,
) {
  log.info({ ...event, address: source.address(), ...source.correlation() }, event.event);
}

function tokenIn(headers: IncomingHttpHeaders, body: string | undefined): string | undefined {
  if (body === undefined || headers["content-type"] !== "application/json") return undefined;
  try {
    const { token } = JSON.parse(body) as { readonly token?: unknown };
    return typeof token === "string" && token !== "" ? token : undefined;
  } catch {
    return undefined;
  }
}

/** Sends an error in Connect's form, so that the page reads one form only. */
function sendError(response: HttpResponse, status: number, code: string, headers?: Record<string, string>): void {
  sendJson(response, status, { code }, headers);
}
