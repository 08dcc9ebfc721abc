import type { Config } from "../config/config.ts";
import type { SessionPoliciesFile } from "../config/session-policies.ts";
import type { Logger } from "../observability/logger.ts";
import type { RevocationFeed } from "../session/feed/feed.ts";
import type { FollowedAdminAccess } from "../tokens/admin-access.ts";
import type { EventKeyFile } from "../tokens/event-keys.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { type LoadedOperators, type LoadedProviderSignIn, loadOperators, loadProviderSignIn } from "./open-sign-in.ts";
import { openAdminAccess, openEventKeys, openKeyRing, openSessionPolicies } from "./secrets.ts";

const KEY_RING_BROKEN = "the key ring is broken: the one before stays in force";
const KEY_RING_GONE =
  "the key ring's file is gone: not ready until it is restored. The ring stays in force in memory, and a restart " +
  "without the file would log everybody out";

/** The files that the service follows while it runs. */
export type FollowedFiles = {
  readonly ring: KeyRing;
  readonly access: FollowedAdminAccess;
  /** Undefined if the key ring signs security event tokens. */
  readonly eventKeys: EventKeyFile | undefined;
  readonly policies: SessionPoliciesFile;
  /** Undefined if nobody signs in by a provider. */
  readonly providerSignIn: LoadedProviderSignIn | undefined;
  /** Undefined if operators sign in to the console with admin tokens. */
  readonly operators: LoadedOperators | undefined;
};

/** Reads the files. @throws StartError */
export async function openFiles(config: Config): Promise<FollowedFiles> {
  return {
    ring: await openKeyRing(config),
    eventKeys: await openEventKeys(config),
    access: await openAdminAccess(config),
    policies: await openSessionPolicies(config),
    providerSignIn: await loadProviderSignIn(config),
    operators: await loadOperators(config),
  };
}

type Event = { readonly event: string; readonly [field: string]: unknown };

/**
 * Follows the files, and logs their changes and faults. Watchers of the revocation feed get a batch at once when a key is revoked or an
 * admin credential is withdrawn. @returns a function that stops following
 */
export function followFiles(
  { ring, access, eventKeys, policies, providerSignIn, operators }: FollowedFiles,
  feed: Pick<RevocationFeed, "wakeWatchers">,
  log: Logger,
): () => void {
  const report = (event: Event, text = event.event) => log.info({ ...event }, text);
  const faultsOf = (event: Event, variable: string) => ({
    onRefusal: (fault: Error) =>
      log.error({ ...event, fault: fault.message }, `${variable} is broken: what was in force stays`),
    onRecovery: () => report({ event: "file_recovered", variable }, `${variable} is valid again`),
  });
  const onProviders = (current: readonly { readonly name: string }[]) =>
    report({ event: "sign_in_providers_changed", names: current.map(({ name }) => name) });

  const stops = [
    ring.watch({
      onChange({ signing, revokedKids }) {
        report({ event: "key_ring_changed", signing: signing.kid, revoked: revokedKids });
        feed.wakeWatchers();
      },
      onRefusal: (fault) =>
        log.error({ event: "key_ring_refused", fault: fault.message }, fault.absent ? KEY_RING_GONE : KEY_RING_BROKEN),
      onRecovery: () => report({ event: "key_ring_recovered" }, "the key ring's file is valid again"),
    }),
    access.watch({
      onChange(names) {
        report({ event: "admin_tokens_changed", names });
        feed.wakeWatchers();
      },
      ...faultsOf({ event: "admin_tokens_refused" }, "ADMIN_TOKENS_FILE"),
    }),
    eventKeys?.watch({
      onChange: ({ jwks }) => report({ event: "signals_keys_changed", kids: jwks.map(({ kid }) => kid) }),
      ...faultsOf({ event: "signals_keys_refused" }, "SIGNALS_RSA_KEY_FILE"),
    }),
    policies.watch({
      onChange: () => report({ event: "session_policies_changed" }),
      ...faultsOf({ event: "session_policies_refused" }, "SESSION_POLICIES_FILE"),
    }),
    providerSignIn?.providers.watch({
      onChange: onProviders,
      ...faultsOf({ event: "sign_in_providers_refused" }, "SIGN_IN_PROVIDERS_FILE"),
    }),
    operators?.provider.watch({
      onChange: (current) => onProviders([current]),
      ...faultsOf({ event: "sign_in_providers_refused" }, "CONSOLE_PROVIDER_FILE"),
    }),
  ];
  return () => {
    for (const stop of stops) stop?.();
  };
}
