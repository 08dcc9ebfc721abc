/** The page's calls to the service: the admin API by its generated client, and the console's own routes. */
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { SessionAdminService } from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SignalsAdminService } from "../../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import type { Scope } from "../../../session/admin/access.ts";
import type { Live } from "./live-numbers.ts";

/** Each call has a header that scripts of other origins cannot send. */
const OWN = { "x-session-console": "1" };

/** The event that a call causes in the window if nobody is signed in any more. */
export const SIGNED_OUT = "signed-out";

function fail(error: unknown): never {
  if (isSignedOut(error)) dispatchEvent(new Event(SIGNED_OUT));
  throw error;
}

const asConsole: Interceptor = (next) => (request) => {
  for (const [name, value] of Object.entries(OWN)) request.header.set(name, value);
  return next(request).catch(fail);
};

const transport = createConnectTransport({
  baseUrl: `${location.origin}/console/api`,
  interceptors: [asConsole],
  defaultTimeoutMs: 15_000,
});
export const sessions = createClient(SessionAdminService, transport);
export const signals = createClient(SignalsAdminService, transport);

export type Me = { readonly name: string; readonly scopes: readonly Scope[]; readonly expiresAt: number };

/** Calls one of the console's own routes. @throws ConnectError */
async function own(method: string, path: string, body?: unknown): Promise<unknown> {
  const headers = body === undefined ? OWN : { ...OWN, "content-type": "application/json" };
  const response = await fetch(path, {
    method,
    headers,
    signal: AbortSignal.timeout(15_000),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    throw new ConnectError(String(error), Code.Unknown);
  });
  if (response.ok) return response.json();
  throw new ConnectError(`${response.status}`, CODES[response.status] ?? Code.Internal);
}

const CODES: Readonly<Record<number, Code>> = {
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  429: Code.ResourceExhausted,
  503: Code.Unavailable,
};

/** Returns what the provider is called by which operators sign in; undefined if they sign in with admin tokens. */
export const providerTitle = async () =>
  ((await own("GET", "/console/sign-in")) as { readonly provider?: string }).provider;

export async function signInByProvider(): Promise<void> {
  const { url } = (await own("POST", "/console/sign-in")) as { readonly url: string };
  location.assign(url);
}

export const signIn = (token: string) => own("POST", "/console/session", { token }) as Promise<Me>;
export const signOut = () => own("DELETE", "/console/session");
export const live = () => own("GET", "/console/live").catch(fail) as Promise<Live>;

export async function whoAmI(): Promise<Me | undefined> {
  try {
    return (await own("GET", "/console/session")) as Me;
  } catch (error) {
    if (isSignedOut(error)) return undefined;
    throw error;
  }
}

export function explain(error: unknown): { readonly title: string; readonly text: string } {
  switch (ConnectError.from(error).code) {
    case Code.Unavailable:
    case Code.DeadlineExceeded:
      return {
        title: "The session store does not respond",
        text: "This is an outage, not an empty result. Sessions are as they were; nobody has been signed out by it.",
      };
    case Code.PermissionDenied:
      return {
        title: "Not allowed",
        text: "You do not have the scope for this.",
      };
    case Code.ResourceExhausted:
      return { title: "Too many attempts", text: "Wait a moment, then try again." };
    case Code.InvalidArgument:
      return { title: "The request was refused", text: ConnectError.from(error).rawMessage };
    default:
      return { title: "The service cannot be reached", text: "Check the network, and whether this instance runs." };
  }
}

export const isSignedOut = (error: unknown) => ConnectError.from(error).code === Code.Unauthenticated;
