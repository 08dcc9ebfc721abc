/** What each adapter takes from its framework, and what it returns to it. A few lines stand for the frameworks, and for the service. */
import { describe, expect, test } from "vitest";
import { sessionMiddleware as forAstro } from "../../src/server/astro.ts";
import { sessionMiddleware as forExpress, getUser } from "../../src/server/express.ts";
import { sessionHook } from "../../src/server/fastify.ts";
import { sessionMiddleware as forHono } from "../../src/server/hono.ts";
import { createServerSessions, type GateOptions, type ServerSessions, type User } from "../../src/server/index.ts";
import { sessionProxy } from "../../src/server/next.ts";
import type { NodeResponseLike } from "../../src/server/node-request.ts";
import { sessionHandler } from "../../src/server/nuxt.ts";
import { sessionMiddleware as forReactRouter } from "../../src/server/react-router.ts";
import { sessionHandle } from "../../src/server/sveltekit.ts";

const ORIGIN = "https://app.example";
const ADDRESS = "192.0.2.7";

const rendered = async () => new Response("page");

/** Creates a kit whose service renews every session, and lists the client's addresses that the service receives. */
function open() {
  const addresses: (string | null)[] = [];
  const sessions = createServerSessions({
    service: "http://service.test",
    async fetch(_url, init) {
      addresses.push(new Headers(init?.headers).get("x-forwarded-for"));
      return Response.json({ data: { accessToken: "new" } });
    },
    verifier: { verify: async () => ({ ok: true, claims: { sub: "alice", sid: "s", exp: 0 } }) },
  });
  return { sessions, addresses };
}

/** A request and a response of node:http. */
function inNode(url: string, headers: Readonly<Record<string, string>>) {
  const fields = new Headers();
  const sent = { ended: 0 };
  const response: NodeResponseLike = {
    statusCode: 200,
    appendHeader: (name, value) => fields.append(name, String(value)),
    getHeader: (name) => fields.get(name) ?? undefined,
    setHeader: (name, value) => fields.set(name, String(value)),
    writeHead: () => {},
    end: () => sent.ended++,
  };
  const request = { method: "GET", url, headers, socket: { remoteAddress: ADDRESS } };
  return { request, response, sent, fields };
}

const COOKIE = { cookie: "refresh_token=a" };
type Outcome = {
  /** The state of the user that the application finds; undefined if the request does not reach it. */
  readonly state: string | undefined;
  readonly status: number | undefined;
  readonly vary: string | null | undefined;
};
/** Passes a request to an adapter as its framework does. */
type Pass = (
  sessions: ServerSessions,
  options?: GateOptions,
  headers?: Readonly<Record<string, string>>,
) => Promise<Outcome>;

const inAstro: Pass = async (sessions, options, headers = COOKIE) => {
  const request = new Request(`${ORIGIN}/account`, { headers });
  const locals: { user?: User } = {};
  const context = { request, url: new URL(request.url), locals, isPrerendered: false, clientAddress: ADDRESS };
  const { status, headers: own } = await forAstro(sessions, options)(context, rendered);
  return { state: locals.user?.state, status, vary: own.get("vary") };
};

const inSvelteKit: Pass = async (sessions, options, headers = COOKIE) => {
  const request = new Request(`${ORIGIN}/account`, { headers });
  const locals: { user?: User } = {};
  const url = new URL(request.url);
  const event = { request, url, isDataRequest: false, locals, getClientAddress: () => ADDRESS };
  const { status, headers: own } = await sessionHandle(sessions, options)({ event, resolve: rendered });
  return { state: locals.user?.state, status, vary: own.get("vary") };
};

const inExpress: Pass = async (sessions, options, headers = COOKIE) => {
  const { request, response, fields } = inNode("/account", headers);
  let state: string | undefined;
  await forExpress(sessions, options)(request, response, () => {
    state = getUser(request).state;
  });
  return { state, status: response.statusCode, vary: fields.get("vary") };
};

const inFastify: Pass = async (sessions, options, headers = COOKIE) => {
  const { request, response, fields } = inNode("/account", headers);
  let status = 0;
  const reply = {
    raw: response,
    code(given: number) {
      status = given;
      return reply;
    },
    getHeader: (name: string) => fields.get(name) ?? undefined,
    header(name: string, value: string) {
      fields.set(name, value);
      return reply;
    },
    send: () => "sent",
  };
  const own = { raw: request };
  const isSent = (await sessionHook(sessions, options)(own, reply)) === "sent";
  if (!isSent) status = 200;
  return { state: isSent ? undefined : getUser(own).state, status, vary: fields.get("vary") };
};

const inNuxt: Pass = async (sessions, options, headers = COOKIE) => {
  const { request, response, fields } = inNode("/account", headers);
  const context: { user?: User } = {};
  const own = await sessionHandler(sessions, options)({ node: { req: request, res: response }, context });
  return { state: context.user?.state, status: own?.status ?? 200, vary: (own?.headers ?? fields).get("vary") };
};

const inHono: Pass = async (sessions, options, headers = COOKIE) => {
  let user: User | undefined;
  const context = {
    req: { raw: new Request(`${ORIGIN}/account`, { headers }) },
    res: new Response("page"),
    set(_name: "user", given: User) {
      user = given;
    },
  };
  let isReached = false;
  const own = await forHono(sessions, options)(context, async () => {
    isReached = user !== undefined;
  });
  const { status, headers: sent } = own ?? context.res;
  return { state: isReached ? user?.state : undefined, status, vary: sent.get("vary") };
};

const inNext: Pass = async (sessions, options, headers = COOKIE) => {
  let state: string | undefined;
  const next = ({ request }: { readonly request: { readonly headers: Headers } }) => {
    state = request.headers.get("x-session-state") ?? undefined;
    return new Response();
  };
  const request = new Request(`${ORIGIN}/account`, { headers: { accept: "application/json", ...headers } });
  const { status, headers: own } = await sessionProxy(sessions, { next }, options)(request);
  return { state, status, vary: own.get("vary") };
};

const inReactRouter: Pass = async (sessions, options, headers = COOKIE) => {
  const request = new Request(`${ORIGIN}/account`, { headers });
  const context = new Map<string, User>();
  const { status, headers: own } = await forReactRouter(sessions, "user", options)({ request, context }, rendered);
  return { state: context.get("user")?.state, status, vary: own.get("vary") };
};

describe.each<[string, string | null, Pass]>([
  ["Astro", ADDRESS, inAstro],
  ["SvelteKit", ADDRESS, inSvelteKit],
  ["Express", ADDRESS, inExpress],
  ["Fastify", ADDRESS, inFastify],
  ["Nuxt", ADDRESS, inNuxt],
  ["Hono", null, inHono],
  ["Next.js", null, inNext],
  ["React Router", null, inReactRouter],
])("%s", (_, address, pass) => {
  test(`the service receives the client's address ${address}, and the application the user`, async () => {
    const { sessions, addresses } = open();
    expect(await pass(sessions)).toEqual({ state: "active", status: 200, vary: "Cookie" });
    expect(addresses).toEqual([address]);
  });

  test("a stranger's request reaches the application where its path is public, and is refused elsewhere", async () => {
    const { sessions } = open();
    const ended = { state: "ended", status: 200, vary: "Cookie" };
    expect(await pass(sessions, { isPublic: () => true }, {})).toEqual(ended);
    expect(await pass(sessions, {}, {})).toEqual({ state: undefined, status: 401, vary: "Cookie" });
  });
});

test.each([
  ["", "/account"],
  ["?tab=2", "/account?tab=2"],
  ["?/add", "/account"],
  ["?/add&tab=2", "/account?tab=2"],
])(
  "a form with use:enhance of SvelteKit leads a stranger from %j to the login, and back to %s",
  async (search, next) => {
    const headers = { "x-sveltekit-action": "true", accept: "application/json", "sec-fetch-site": "same-origin" };
    const request = new Request(`${ORIGIN}/account${search}`, { method: "POST", headers });
    const url = new URL(request.url);
    const event = { request, url, isDataRequest: false, locals: {}, getClientAddress: () => ADDRESS };
    const response = await sessionHandle(open().sessions)({ event, resolve: rendered });
    const location = `/login?${new URLSearchParams({ next })}`;
    expect(await response.json()).toEqual({ type: "redirect", status: 303, location });
  },
);

describe("a script of SvelteKit that fetches the data of a page", () => {
  /** The request has an address of its own; `url` of the event is that of the page. */
  async function fetchData(options: GateOptions = {}, { method = "GET", headers = {} } = {}) {
    const request = new Request(`${ORIGIN}/account/__data.json?tab=2&x-sveltekit-invalidated=01`, { method, headers });
    const url = new URL(`${ORIGIN}/account?tab=2`);
    const locals: { user?: User } = {};
    const event = { request, url, isDataRequest: true, locals, getClientAddress: () => ADDRESS };
    const { sessions, addresses } = open();
    const { status, headers: own } = await sessionHandle(sessions, options)({ event, resolve: rendered });
    return { status, location: own.get("location"), user: locals.user, addresses };
  }

  test("is redirected to the login, and from there to the page", async () => {
    expect(await fetchData({}, { headers: { "sec-fetch-mode": "cors", "sec-fetch-site": "same-origin" } })).toEqual({
      ...{ status: 303, location: "/login?next=%2Faccount%3Ftab%3D2" },
      ...{ user: undefined, addresses: [] },
    });
  });

  test("gets the data of a user, and of a public page", async () => {
    expect(await fetchData({}, { headers: COOKIE })).toMatchObject({
      ...{ status: 200, user: { state: "active" } },
      addresses: [ADDRESS],
    });
    const isPublic = (path: string) => path === "/account";
    expect(await fetchData({ isPublic })).toMatchObject({ status: 200, user: { state: "ended" } });
  });

  test("changes nothing from another site", async () => {
    const foreign = { method: "POST", headers: { ...COOKIE, "sec-fetch-site": "cross-site" } };
    expect(await fetchData({}, foreign)).toMatchObject({ status: 403, user: undefined, addresses: [] });
  });
});

test("Astro: a prerendered page is the same for everybody, so the adapter leaves it as it is", async () => {
  const { sessions, addresses } = open();
  const page = new Response("prerendered");
  const request = new Request(`${ORIGIN}/account`, { headers: COOKIE });
  const locals = {};
  const context = { request, url: new URL(request.url), locals, isPrerendered: true, clientAddress: ADDRESS };
  expect(await forAstro(sessions)(context, async () => page)).toBe(page);
  expect([page.headers.get("vary"), locals, addresses]).toEqual([null, {}, []]);
});

describe("Express", () => {
  /** Returns what the middleware passes to the next handler, in the order of the calls. */
  async function pass(options: GateOptions) {
    const next: unknown[] = [];
    const { request, response, sent } = inNode("/account", {});
    await forExpress(open().sessions, options)(request, response, (...given) => next.push(given));
    return { next, user: getUser(request), ended: sent.ended, status: response.statusCode };
  }

  test("an error of the application's own functions reaches its error handler", async () => {
    const fault = new Error("no list of public paths");
    const isPublic = () => {
      throw fault;
    };
    expect(await pass({ isPublic })).toMatchObject({ next: [[fault]], user: { state: "unavailable" }, ended: 0 });
  });

  test("a refused request reaches no handler, and any other one reaches the next handler once", async () => {
    expect(await pass({})).toMatchObject({ next: [], ended: 1, status: 401 });
    expect(await pass({ isPublic: () => true })).toMatchObject({ next: [[]], user: { state: "ended" }, ended: 0 });
  });
});

test("Nuxt: h3 takes the function for a handler, as `defineEventHandler` marks one", () => {
  expect(sessionHandler(open().sessions).__is_handler__).toBe(true);
});
