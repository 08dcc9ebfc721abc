/**
 * Migration: a refresh without a cookie of this service, but with one of another system, asks the application once whose session that is,
 * and continues it (session/migration/migrate.ts).
 */
import { hash } from "node:crypto";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import type { CookieSettings } from "../../config/cookie.ts";
import type { FailureDeps } from "../../session/attempts.ts";
import { type DeviceTools, registrationOffer } from "../../session/devices/presented.ts";
import type { Limited, Refused } from "../../session/errors.ts";
import type { Application, ApplicationReply } from "../../session/migration/application.ts";
import { type MigrateDeps, type Migrated, migrate, type NotMigrated } from "../../session/migration/migrate.ts";
import { createSingleFlight } from "../../session/migration/single-flight.ts";
import { rateLimited, SHARED_ERRORS } from "../errors/connect-errors.ts";
import { countFailure } from "../refuse-credential.ts";
import { requestContextOf } from "../request-context.ts";
import { type ReplyDeps, readReply } from "./migration-reply.ts";
import { findOldCookies, type OldCookies } from "./old-cookies.ts";
import { sentCookies, setCookies } from "./refusal.ts";
import { oldCookiesAfterLogout } from "./removed-cookies.ts";
import { offerRegistration } from "./session-service.ts";

export type MigrationDeps = MigrateDeps &
  ReplyDeps &
  FailureDeps & {
    readonly device: DeviceTools;
    /** The names of the cookies of another system. */
    readonly names: readonly string[];
    readonly application: Application;
    readonly cookieSettings: CookieSettings;
    readonly reports: {
      onResult(result: "migrated" | "repeated" | "refused"): void;
      onFailure(cookieName: string, fault: string): void;
    };
  };

/** How long a cookie that names no old session is remembered, in ms, so that a reloaded page does not ask the application again. */
const REFUSED_MS = 10_000;
/** How many of these are remembered. Each takes some 150 bytes. */
const MAX_REFUSED = 10_000;
/** How many old sessions are asked for at the same time. */
const MAX_ASKED = 256;

type Failed = Extract<ApplicationReply, { readonly reason: string }>;
type Result = Migrated | NotMigrated | Failed | Limited;
type Credential = { readonly ok: true; readonly old: OldCookies };

export type Migration = {
  /** Returns what a refused refresh presents of another system; undefined if that is nothing. */
  find(refused: Refused, context: HandlerContext): Credential | undefined;
  /** Removes the old cookies of a browser whose logout has found no session: the next refresh would sign the user in with them. */
  expireAfter(refused: Refused, context: HandlerContext): void;
  /** Returns the service with a refresh that also migrates sessions, and logouts that also remove the old cookies. */
  around(service: ServiceImpl<typeof SessionService>): ServiceImpl<typeof SessionService>;
};

export function createMigration(deps: MigrationDeps): Migration {
  const { names, reports } = deps;
  const once = createSingleFlight<Result>({
    isKept: isRefused,
    keepMs: REFUSED_MS,
    maxKept: MAX_REFUSED,
    maxUnderWay: MAX_ASKED,
    busy() {
      reports.onFailure("", "busy");
      return BUSY;
    },
    clock: () => performance.now(),
  });

  async function refresh(old: OldCookies, context: HandlerContext) {
    const { failureLimit } = deps;
    const requester = requestContextOf(context);
    // The request counts as a failure from its beginning, so that many at the same time cannot exceed the limit.
    const limited = countFailure(deps, requester);
    if (limited !== undefined) throw limited;
    const giveBack = () => failureLimit.giveBack(requester.address() ?? "");
    const key = hash("sha256", old.header);
    const result = await once(key, () => ask(deps, old, context)).catch((error: unknown) => {
      giveBack();
      throw error;
    });
    if (isRefused(result)) {
      deps.audit({ event: "authn_failed", operation: context.method.name, reason: "absent" }, requester);
      throw SHARED_ERRORS.noCredential;
    }
    giveBack();
    if (result.ok) return respond(deps, result, context);
    throw result.reason === "rate_limited" ? rateLimited(result.retryAfterMs) : SHARED_ERRORS.retryLater;
  }

  return {
    find({ reason }, { method, requestHeader }) {
      if (reason !== "absent" || method.localName !== "refresh") return undefined;
      const old = findOldCookies(requestHeader.get("cookie"), names);
      return old && { ok: true, old };
    },
    expireAfter({ reason }, context) {
      if (reason === "absent" && context.method.localName === "logoutByCookie") expireOld(deps, context);
    },
    around: (service) => ({
      ...service,
      refresh(request, context) {
        const { credential } = requestContextOf(context);
        return credential !== undefined && "old" in credential
          ? refresh((credential as Credential).old, context)
          : service.refresh(request, context);
      },
      async logout(request, context) {
        const response = await service.logout(request, context);
        expireOld(deps, context);
        return response;
      },
      async logoutByCookie(request, context) {
        const response = await service.logoutByCookie(request, context);
        expireOld(deps, context);
        return response;
      },
    }),
  };
}

const BUSY: Failed = { ok: false, reason: "failed", fault: "busy" };

function isRefused(result: Result): boolean {
  return !result.ok && ["unknown", "ended", "session_limit"].includes(result.reason);
}

async function ask(deps: MigrationDeps, old: OldCookies, context: HandlerContext): Promise<Result> {
  const { application, reports } = deps;
  const requester = requestContextOf(context);
  const userAgent = context.requestHeader.get("user-agent") ?? "";
  const client = { userAgent, ipAddress: requester.address() ?? "", displayName: "" };
  const reply = await application.ask({ cookieName: old.name, cookies: old.header, client });
  const read = reply.ok ? readReply(deps, reply.body, client) : reply;
  if (!read.ok) {
    if (read.reason === "failed") reports.onFailure(old.name, read.fault);
    else reports.onResult("refused");
    return read;
  }
  const { wanted, limit, id = old.id } = read;
  if (id === undefined) {
    reports.onResult("refused");
    return { ok: false, reason: "unknown" };
  }
  const result = await migrate(deps, { wanted, limit, id, cookieName: old.name }, requester);
  if (result.ok) reports.onResult(result.isNew ? "migrated" : "repeated");
  else if (isRefused(result)) reports.onResult("refused");
  return result;
}

function respond(deps: MigrationDeps, migrated: Migrated, context: HandlerContext) {
  const { session, accessToken } = migrated;
  setCookies(context, deps.cookie.set(migrated));
  const offer = registrationOffer(deps.device, session, session.createdAt);
  if (offer !== undefined) offerRegistration(context, offer);
  return { data: { accessToken: accessToken.token } };
}

function expireOld({ names, cookieSettings }: MigrationDeps, context: HandlerContext): void {
  setCookies(context, oldCookiesAfterLogout(names, cookieSettings, sentCookies(context)));
}
