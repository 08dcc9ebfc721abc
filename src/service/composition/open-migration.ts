import { createMigration, type Migration, type MigrationDeps } from "../api/public/migration.ts";
import type { Config } from "../config/config.ts";
import { createApplication } from "../migration/ask-application.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { migrationReports } from "../observability/reports.ts";
import { systemClock } from "../session/time.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { type Entropy, sessionIdFrom } from "../tokens/random.ts";
import { createClaimsSigner } from "../tokens/signed-claims.ts";

type Deps = Omit<MigrationDeps, "names" | "application" | "cookieSettings" | "reports" | "sessionIdOf"> & {
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly issuer: string;
  readonly log: Logger;
  readonly metrics: Metrics;
};

/** Returns undefined unless sessions of another system are migrated. */
export function openMigration({ migrateCookies, migrateUrl, cookie }: Config, deps: Deps): Migration | undefined {
  if (migrateCookies.length === 0 || migrateUrl === undefined) return undefined;
  const { ring, entropy, issuer, log, metrics } = deps;
  const sign = createClaimsSigner(ring);
  return createMigration({
    ...deps,
    names: migrateCookies,
    cookieSettings: cookie,
    application: createApplication({ url: migrateUrl, issuer, sign, id: () => entropy.text(12), clock: systemClock }),
    reports: migrationReports(log, metrics),
    sessionIdOf: sessionIdFrom,
  });
}
