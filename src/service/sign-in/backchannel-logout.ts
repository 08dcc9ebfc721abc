/** Receives back-channel logouts: providers call `POST /v1/auth/backchannel-logout` when they have ended a login. */
import type { HttpRequest } from "../../platform/listener/handler.ts";
import { readBody } from "../../platform/listener/json.ts";
import type { ProviderSettings } from "../config/providers.ts";
import { type LogoutToken, MAX_AGE_SECONDS } from "./logout-token.ts";
import { createReceiver, type Received, type ReceiverDeps, UNAVAILABLE } from "./receiver.ts";
import { CLOCK_SKEW_SECONDS, partiesOf, type TokenFailure } from "./signed-token.ts";

export const BACKCHANNEL_LOGOUT = "/v1/auth/backchannel-logout";

export type EndedLogin = Pick<LogoutToken, "sessionId" | "subject"> & {
  readonly issuer: string;
  /** Sessions that were created later stay; ms since the epoch. */
  readonly createdUntilMs: number;
};

/** The tokens that were used, at any instance. Each function rejects if the store does not respond. */
export type UsedTokens = {
  isUsed(issuer: string, jti: string): Promise<boolean>;
  /** @param lifeMs for how long the token is remembered */
  use(issuer: string, jti: string, lifeMs: number): Promise<void>;
};

type Deps = ReceiverDeps & {
  readonly providers: () => readonly ProviderSettings[];
  readonly verify: (
    settings: ProviderSettings,
    text: string,
  ) => Promise<{ readonly ok: true; readonly token: LogoutToken } | TokenFailure>;
  /** Ends the sessions of a login, and returns how many. Rejects if some may still be live. */
  readonly end: (login: EndedLogin, request: HttpRequest) => Promise<number>;
  readonly tokens: UsedTokens;
  readonly log: Record<"info" | "warn", (fields: object, message: string) => void>;
};

/** The size limit of a request, in bytes. A logout token takes about one kilobyte. */
const MAX_BYTES = 16_384;
/** How long a token is remembered, in ms: until it is too old. */
const REMEMBERED_MS = (MAX_AGE_SECONDS + CLOCK_SKEW_SECONDS) * 1000;

/** Responds as OpenID Connect Back-Channel Logout 1.0 section 2.8 says. */
export function createBackchannelLogout(deps: Deps) {
  const { tokens } = deps;

  async function receive(request: HttpRequest): Promise<Received> {
    const text = new URLSearchParams((await readBody(request, MAX_BYTES)) ?? "").getAll("logout_token");
    const [token = ""] = text;
    const address = text.length === 1 ? partiesOf(token) : undefined;
    if (address === undefined) return refuse(deps, undefined, "no_token");
    const isMeant = ({ issuer, clientId }: ProviderSettings) =>
      issuer === address.issuer && address.audience.includes(clientId);
    const settings = deps.providers().find(isMeant);
    if (settings === undefined) return refuse(deps, undefined, "no_provider");
    const verified = await deps.verify(settings, token);
    if (!verified.ok) return verified.reason === "unavailable" ? UNAVAILABLE : refuse(deps, settings, verified.code);
    const { jti, iat, ...login } = verified.token;
    const { issuer } = settings;
    if (await tokens.isUsed(issuer, jti)) return refuse(deps, settings, "used");
    const createdUntilMs = (iat + CLOCK_SKEW_SECONDS) * 1000;
    const count = await deps.end({ issuer, ...login, createdUntilMs }, request);
    // A token is used up only now: after a failure the provider repeats it.
    await tokens.use(issuer, jti, REMEMBERED_MS);
    deps.log.info({ event: "backchannel_logout", provider: settings.name, count }, "backchannel_logout");
    return { status: 200 };
  }

  return createReceiver(receive, deps);
}

function refuse({ log }: Deps, settings: ProviderSettings | undefined, reason: string): Received {
  log.warn({ event: "backchannel_logout_refused", provider: settings?.name, reason }, "backchannel_logout_refused");
  return { status: 400, error: { error: "invalid_request", error_description: "the logout token is not valid" } };
}
