/** Signs operators in to the console by an OpenID Connect provider. What they may do follows from their claims. */
import type { ConsoleProvider } from "../config/console-provider.ts";
import { createPages, type SignInPage } from "./pages.ts";
import { createPendingLogins } from "./pending-logins.ts";
import { createProvider } from "./provider.ts";
import { endOf, isShort, type ProviderClaims, unsatisfied, valueAt } from "./user.ts";

/** An operator who has signed in. The permissions are not kept: they follow from the grants that are in force at each request. */
export type Operator = {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  /** The requirements that the claims satisfied. */
  readonly satisfied: readonly string[];
  /** When the sign-in ends at the latest, in ms since the epoch; undefined if the provider does not limit it. */
  readonly endsAtMs: number | undefined;
};

type Deps = {
  readonly provider: () => ConsoleProvider;
  readonly seal: Parameters<typeof createPendingLogins>[0]["seal"];
  /** Returns ms since the epoch. */
  readonly clock: () => number;
  readonly log: Record<"warn", (fields: object, message: string) => void>;
};

/** A request of a browser to the console. */
type Asked = {
  /** The origin at which the browser reaches the console. */
  readonly origin: string;
  readonly cookies: string;
};

type Begun = { readonly ok: true; readonly url: string; readonly cookies: readonly string[] } | { readonly ok: false };

type Finished = { readonly cookie: string } & (
  | { readonly ok: true; readonly operator: Operator }
  | { readonly ok: false; readonly page: SignInPage }
);

const HOME = "/console";
const CALLBACK = `${HOME}/callback`;
const MAX_NAME_LENGTH = 100;

export type Operators = ReturnType<typeof createOperators>;

export function createOperators({ provider, seal, clock, log }: Deps) {
  const pages = createPages();
  let known: { readonly settings: ConsoleProvider; readonly client: ReturnType<typeof createProvider> } | undefined;
  const clientOf = (settings: ConsoleProvider) => {
    if (known?.settings !== settings) known = { settings, client: createProvider(settings) };
    return known.client;
  };
  const pendingOf = (origin: string) =>
    createPendingLogins({ seal, clock, isSecure: origin.startsWith("https:"), name: "console-login" });
  const report = (reason: string, by?: string) =>
    log.warn({ event: "sign_in_failed", provider: provider().name, reason, by }, "sign_in_failed");

  async function operatorOf(url: URL, found: ReturnType<ReturnType<typeof pendingOf>["find"]>) {
    const settings = provider();
    if (found === undefined || found.provider !== settings.issuer) return failed("expired", "no_login");
    const finished = await clientOf(settings).finish(url, found);
    if (!finished.ok) return failed(finished.reason, finished.code);
    const endsAtMs = endOf(finished.claims);
    if (endsAtMs === "malformed") return failed("invalid", "session_expiry");
    const operator = operatorBy(settings, finished.claims, endsAtMs);
    if (operator === undefined) return failed("refused", "operator_name");
    if (endsAtMs !== undefined && endsAtMs <= clock()) return failed("over", "session_expiry");
    return operator.satisfied.length > 0 ? ({ ok: true, operator } as const) : failed("refused", "grants", operator);
  }

  function failed(problem: Parameters<typeof pages.problem>[0], reason: string, operator?: Operator) {
    report(reason, operator?.name);
    return { ok: false, page: pages.problem(problem, problem === "refused" ? undefined : HOME) } as const;
  }

  return {
    title: (): string => provider().title,

    /** Returns the URL at which an operator signs in. */
    async begin({ origin, cookies }: Asked): Promise<Begun> {
      const settings = provider();
      const begun = await clientOf(settings).begin(origin + CALLBACK, {});
      if (!begun.ok) {
        report(begun.code);
        return { ok: false };
      }
      const login = { provider: settings.issuer, ...begun.secrets, destination: origin + HOME };
      const kept = pendingOf(origin).begin(cookies, login);
      return kept === undefined ? { ok: false } : { ok: true, url: begun.url.href, cookies: kept };
    },

    /** Completes a sign-in. @param search the query of the callback */
    async finish({ origin, cookies }: Asked, search: string): Promise<Finished> {
      const [state = "", ...others] = new URLSearchParams(search).getAll("state");
      const pending = pendingOf(origin);
      const found = others.length > 0 ? undefined : pending.find(cookies, state);
      const url = Object.assign(new URL(origin + CALLBACK), { search });
      return { cookie: pending.end(state), ...(await operatorOf(url, found)) };
    },

    /** Returns what an operator may do now; undefined if that is nothing. */
    adminOf({ issuer, name, satisfied }: Operator) {
      const { issuer: current, grants } = provider();
      const inForce = issuer === current ? grants.filter((grant) => satisfied.includes(keyOf(grant))) : [];
      return inForce.length === 0 ? undefined : { name, scopes: new Set(inForce.flatMap(({ scopes }) => scopes)) };
    },
  };
}

const keyOf = ({ require }: ConsoleProvider["grants"][number]) => JSON.stringify(require);

/** Returns undefined if the claims have no name that an audit can show. */
function operatorBy(
  { issuer, name, operatorName, grants }: ConsoleProvider,
  claims: ProviderClaims,
  endsAtMs: Operator["endsAtMs"],
): Operator | undefined {
  const own = valueAt(claims, operatorName);
  if (!isShort(own) || own.length > MAX_NAME_LENGTH) return undefined;
  const satisfied = grants.filter(({ require }) => unsatisfied(require, claims) === undefined).map(keyOf);
  // With the name of the provider, an operator cannot pass for another credential of the admin API in the audit.
  return { issuer, subject: claims.sub, name: `${name}:${own}`, satisfied, endsAtMs };
}
