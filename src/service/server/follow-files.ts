import type { ConsoleProviderFile } from "../config/console-provider.ts";
import type { SessionPoliciesFile } from "../config/policies-file.ts";
import type { ProvidersFile } from "../config/providers-file.ts";
import type { Logger } from "../observability/logger.ts";
import type { RevocationFeed } from "../session/feed/feed.ts";
import type { FollowedAdminAccess } from "../tokens/admin-access.ts";
import type { EventKeyFile } from "../tokens/event-keys.ts";
import type { KeyRing } from "../tokens/key-ring.ts";

const KEY_RING_BROKEN = "the key ring is broken: the one before stays in force";
const KEY_RING_GONE =
  "the key ring's file is gone: not ready until it is restored. The ring stays in force in memory, and a restart " +
  "without the file would log everybody out";

/** The files that the service follows while it runs. */
type FollowedFiles = {
  readonly ring: KeyRing;
  readonly access: FollowedAdminAccess;
  readonly eventKeys: EventKeyFile | undefined;
  readonly policies: SessionPoliciesFile;
  /** Undefined if nobody signs in by a provider. */
  readonly signIn: { readonly providers: ProvidersFile } | undefined;
  /** Undefined if operators sign in to the console with admin tokens. */
  readonly operators: { readonly provider: ConsoleProviderFile } | undefined;
};

/**
 * Follows the files of the keys, of the admin credentials, of the policies and of the providers, and logs their changes and faults. When a key is revoked or an admin
 * credential is withdrawn, watchers of the revocation feed get a batch at once. @returns a function that stops following
 */
export function followFiles(
  { ring, access, eventKeys, policies, signIn, operators }: FollowedFiles,
  feed: Pick<RevocationFeed, "wakeWatchers">,
  log: Logger,
): () => void {
  const stopRing = ring.watch({
    onChange: ({ signing, revokedKids }) => {
      log.info({ event: "key_ring_changed", signing: signing.kid, revoked: revokedKids }, "key_ring_changed");
      feed.wakeWatchers();
    },
    onRefusal: (fault) =>
      log.error({ event: "key_ring_refused", fault: fault.message }, fault.absent ? KEY_RING_GONE : KEY_RING_BROKEN),
    onRecovery: () => log.info({ event: "key_ring_recovered" }, "the key ring's file is valid again"),
  });
  const stopAccess = access.watch({
    onChange: (names) => {
      log.info({ event: "admin_tokens_changed", names }, "admin_tokens_changed");
      feed.wakeWatchers();
    },
    onRefusal: (fault) =>
      log.error(
        { event: "admin_tokens_refused", fault: fault.message },
        "ADMIN_TOKENS_FILE is broken: what was in force stays",
      ),
  });
  const stopEventKeys = eventKeys?.watch({
    onChange: ({ jwks }) =>
      log.info({ event: "signals_keys_changed", kids: jwks.map(({ kid }) => kid) }, "signals_keys_changed"),
    onRefusal: (fault) =>
      log.error(
        { event: "signals_keys_refused", fault: fault.message },
        "SIGNALS_RSA_KEY_FILE is broken: what was in force stays",
      ),
  });
  const stopPolicies = policies.watch({
    onChange: () => log.info({ event: "session_policies_changed" }, "session_policies_changed"),
    onRefusal: (fault) =>
      log.error(
        { event: "session_policies_refused", fault: fault.message },
        "SESSION_POLICIES_FILE is broken: what was in force stays",
      ),
  });
  const onProviders = (current: readonly { readonly name: string }[]) =>
    log.info(
      { event: "sign_in_providers_changed", names: current.map(({ name }) => name) },
      "sign_in_providers_changed",
    );
  const refusedProviders = (file: string) => (fault: Error) =>
    log.error(
      { event: "sign_in_providers_refused", fault: fault.message },
      `${file} is broken: what was in force stays`,
    );
  const stopProviders = signIn?.providers.watch({
    onChange: onProviders,
    onRefusal: refusedProviders("SIGN_IN_PROVIDERS_FILE"),
  });
  const stopOperators = operators?.provider.watch({
    onChange: (current) => onProviders([current]),
    onRefusal: refusedProviders("CONSOLE_PROVIDER_FILE"),
  });
  return () => {
    stopProviders?.();
    stopOperators?.();
    stopPolicies();
    stopRing();
    stopAccess();
    stopEventKeys?.();
  };
}
