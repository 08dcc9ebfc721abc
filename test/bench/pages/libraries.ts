/** The server kit and the other libraries, each used as in its documentation, as a function that renders a page. */
import { registerHooks } from "node:module";
import { createServerSessions } from "../../../src/server/index.ts";
import { createVerifier } from "../../../src/verifier/index.ts";
import { startRelay } from "../../server/relay.ts";
import { startService } from "../../support/service.ts";
import { admin, bearer, message, openAdmin } from "../../support/sessions.ts";
import { Jar } from "./jar.ts";
import { type Provider, startProvider } from "./provider.ts";

/** How long each library uses an access token before it renews the token, in s. */
export const USE_S = 15;
export const REUSE_INTERVAL_MS = 10_000;

/** `ended`: the page leads to the login. */
export type Rendered = { readonly state: "active" | "ended" | "unavailable"; readonly setCookies: readonly string[] };

export type Library = {
  readonly name: string;
  /** How long an access token is valid at the most, s. */
  readonly lifeS: number;
  signIn(): Promise<Jar>;
  render(request: Request): Promise<Rendered>;
  /** Signs out. Returns the cookies of the response. */
  signOut(request: Request): Promise<readonly string[]>;
  setDown(isDown: boolean): void;
  rotations(): number;
  stop(): Promise<void>;
};

/**
 * Opens the kit with the real service. The kit renews when 10 s are left. The service shortens the life of each token at random, by up to a
 * fifth.
 */
export async function openKit(): Promise<Library> {
  const cookies = { ACCESS_COOKIE: "access_token", COOKIE_PATH: "/", COOKIE_SECURE: "false" };
  const lifeS = USE_S + 10;
  const service = await startService({ ...cookies, ACCESS_TOKEN_TTL: `${lifeS}s`, LOG_LEVEL: "silent" });
  const relay = await startRelay(service.publicUrl);
  const { publicUrl, adminUrl, adminToken } = service;
  const verifier = createVerifier({ adminUrl, adminToken, issuer: publicUrl, audience: publicUrl, policy: "refuse" });
  await verifier.ready;
  const sessions = createServerSessions({ service: relay.url, verifier });
  return {
    name: "@session-service/server",
    lifeS,
    async signIn() {
      const created = await openAdmin(service).call(admin.createSession, { subject: "alice" }, bearer(adminToken));
      return new Jar(message(created).setCookies);
    },
    async render(request) {
      const { user, setCookies } = await sessions.authenticate(request);
      return { state: user.state, setCookies };
    },
    signOut: async (request) => (await sessions.signOut(request)).setCookies,
    setDown(isDown) {
      relay.isDown = isDown;
    },
    rotations: () => relay.tokens.size,
    async stop() {
      verifier.close();
      relay.close();
      await service.stop();
    },
  };
}

type CookieToSet = { readonly name: string; readonly value: string; readonly options: { readonly maxAge?: number } };
type SupabaseClient = {
  readonly auth: {
    getClaims(): Promise<{ readonly data: { readonly claims?: object } | null }>;
    setSession(session: object): Promise<{ readonly error: unknown }>;
    signOut(): Promise<unknown>;
  };
};
type CreateServerClient = (url: string, key: string, options: object) => SupabaseClient;

const openWith = (provider: Provider, lifeS: number) => ({
  lifeS,
  setDown(isDown: boolean) {
    provider.isDown = isDown;
  },
  rotations: () => provider.rotations,
  stop: async () => provider.close(),
});

/** Opens Supabase's library with `updateSession` of the guide for Next.js. The library renews when 90 s are left. */
export async function openSupabase(): Promise<Library> {
  const { createServerClient } = (await import(of("@supabase/ssr"))) as { createServerClient: CreateServerClient };
  const lifeS = USE_S + 90;
  const provider = await startProvider(lifeS, REUSE_INTERVAL_MS);
  const open = (jar: Jar, setCookies: string[] = []) => {
    const cookies = {
      getAll: () => [...jar.cookies].map(([name, value]) => ({ name, value })),
      setAll(toSet: readonly CookieToSet[]) {
        for (const { name, value, options } of toSet) setCookies.push(`${name}=${value}; Max-Age=${options.maxAge}`);
      },
    };
    return { client: createServerClient(provider.url, "anonymous-key", { cookies }), setCookies };
  };
  return {
    ...openWith(provider, lifeS),
    name: "@supabase/ssr",
    async signIn() {
      const { client, setCookies } = open(new Jar());
      const { error } = await client.auth.setSession(await provider.signIn());
      if (error) throw error;
      return new Jar(setCookies);
    },
    async render(request) {
      const { client, setCookies } = open(Jar.of(request));
      const { data } = await client.auth.getClaims();
      return { state: data?.claims ? "active" : "ended", setCookies };
    },
    async signOut(request) {
      const { client, setCookies } = open(Jar.of(request));
      await client.auth.signOut();
      return setCookies;
    },
  };
}

type AuthToken = Record<string, unknown> & { readonly expires_at: number; readonly refresh_token: string };
type AuthRequest = Request & { readonly auth: { readonly error?: string } | null };
type NextAuth = (config: object) => {
  auth(handler: (request: AuthRequest) => Response): (request: Request, context: object) => Promise<Response>;
  readonly handlers: Record<"GET" | "POST", (request: Request) => Promise<Response>>;
};

const SECRET = "a secret of thirty-two characters!";
const SESSION_COOKIE = "authjs.session-token";

/** Opens next-auth as in the guide on rotating refresh tokens, with sessions in cookies. It renews when the token has expired. */
export async function openNextAuth(reuseIntervalMs: number): Promise<Library> {
  resolveNext();
  process.env.AUTH_URL = "http://app.example";
  const { default: create } = (await import(of("next-auth"))) as { default: NextAuth };
  const { encode } = (await import(of("next-auth/jwt"))) as { encode: (given: object) => Promise<string> };
  const { NextRequest } = (await import(of("next/server"))) as { NextRequest: new (from: Request) => Request };
  const provider = await startProvider(USE_S, reuseIntervalMs);
  const { auth, handlers } = create({
    secret: SECRET,
    trustHost: true,
    logger: { error: () => {} },
    providers: [{ id: "provider", type: "oidc", issuer: provider.url, clientId: "client", clientSecret: "secret" }],
    callbacks: {
      jwt: ({ token }: { token: AuthToken }) => (Date.now() < token.expires_at * 1000 ? token : renew(provider, token)),
      session: ({ session, token }: { session: object; token: AuthToken }) => ({ ...session, error: token.error }),
    },
  });
  // The guide signs in again when the session has an error.
  const page = auth((request) => new Response(request.auth && !request.auth.error ? "active" : "ended"));
  return {
    ...openWith(provider, USE_S),
    name: `next-auth, reuse interval ${reuseIntervalMs / 1000} s`,
    async signIn() {
      const { access_token, refresh_token, expires_at } = await provider.signIn();
      const token = { sub: "alice", access_token, refresh_token, expires_at };
      return new Jar([`${SESSION_COOKIE}=${await encode({ token, secret: SECRET, salt: SESSION_COOKIE })}`]);
    },
    async render(request) {
      const response = await page(new NextRequest(request), {});
      return { state: (await response.text()) as "active" | "ended", setCookies: response.headers.getSetCookie() };
    },
    async signOut(request) {
      const url = "http://app.example/api/auth";
      const jar = Jar.of(request);
      const asked = await handlers.GET(new NextRequest(jar.request(`${url}/csrf`)));
      jar.take(asked.headers.getSetCookie());
      const { csrfToken } = (await asked.json()) as { csrfToken: string };
      const headers = { cookie: jar.header, "content-type": "application/x-www-form-urlencoded" };
      const body = new URLSearchParams({ csrfToken }).toString();
      const sent = new Request(`${url}/signout`, { method: "POST", headers, body });
      return (await handlers.POST(new NextRequest(sent))).headers.getSetCookie();
    },
  };
}

/** Renews a token as the callback of the guide does. */
async function renew(provider: Provider, token: AuthToken): Promise<object> {
  try {
    const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: token.refresh_token });
    const response = await fetch(`${provider.url}/token`, { method: "POST", body });
    const result = (await response.json()) as AuthToken & { readonly expires_in: number };
    if (!response.ok) throw result;
    const expiresAt = Math.floor(Date.now() / 1000 + result.expires_in);
    return { ...token, access_token: result.access_token, expires_at: expiresAt, refresh_token: result.refresh_token };
  } catch {
    return { ...token, error: "RefreshTokenError" };
  }
}

/** Returns the name of a module to import. The compiler would look for types behind a literal name, but they are not installed. */
const of = (name: string): string => name;

/** Adds the extension `.js` to imports of Next.js, because its package has no `exports` by which Node finds the files. */
function resolveNext(): void {
  const resolve = (name: string) => (/^next\/(headers|navigation|server)$/.test(name) ? `${name}.js` : name);
  registerHooks({ resolve: (name, context, next) => next(resolve(name), context) });
}
