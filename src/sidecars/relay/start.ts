/** Starts a relay. It consists of the verifier's client for the feed, and the service's own feed. */

import { createRateLimits } from "../../api/limits/rate-limit.ts";
import { readCertificate } from "../../listener/certificate-files.ts";
import { processorTime } from "../../platform/clock/processor-time.ts";
import { steadyClock } from "../../platform/clock/steady.ts";
import { turns } from "../../platform/clock/turns.ts";
import { subnetOf } from "../../platform/net/subnet.ts";
import type { AdminAccess } from "../../session/admin-access.ts";
import type { Audit } from "../../session/audit.ts";
import { RevocationFeed } from "../../session/feed.ts";
import { type AdminClientOptions, createAdminClient } from "../../verifier/admin-client.ts";
import type { Report } from "../../verifier/report.ts";
import { type Relay, serveRelay } from "./serve.ts";
import { Upstream } from "./upstream.ts";

/** The files of a certificate and its key. Changes of the files take effect while the relay runs. */
type Certificate = {
  readonly certFile: string;
  readonly keyFile: string;
  /** Called when new connections use a new certificate. */
  readonly onChange: () => void;
  /** Called when the files no longer contain a certificate with its key; the previous one stays in use. */
  readonly onRefusal: (fault: Error) => void;
};

type Options = {
  /** The source of the feed, and the relay's credential for it. */
  readonly upstream: AdminClientOptions;
  readonly host: string;
  readonly port: number;
  readonly metricsHosts?: readonly string[] | undefined;
  /** The relay's own certificate. Without one it serves unencrypted HTTP. */
  readonly certificate?: Certificate | undefined;
  /** The credentials of the watchers that are accepted. */
  readonly access: AdminAccess;
  /** The unique name of this process, in base64url. After a restart the process has a new name. */
  readonly instance: string;
  readonly report: Report;
  readonly audit: Audit;
  readonly onBug: (error: unknown) => void;
  /** Called when the upstream refuses the relay's credential. The relay continues to try. */
  readonly onRefused: (error: unknown) => void;
};

/** How many requests without a valid credential an address may make: the default of RATE_LIMIT_FAILURES. */
const FAILURES = { count: 1_000, windowMs: 60_000 };

/** @throws Error if the port cannot be bound, or the certificate cannot be used */
export async function startRelay(options: Options): Promise<Relay> {
  const { host, port, metricsHosts, certificate, access, instance, report, audit, onBug } = options;
  const files = certificate && readCertificate(certificate);
  const ended = new AbortController();
  const { signal } = ended;
  const client = createAdminClient(options.upstream, signal);
  if (client === undefined) throw new TypeError("a relay needs an upstream");
  const upstream = new Upstream({ client, report, signal, clock: Date.now, monotonic: () => performance.now() });
  upstream.ready.catch(options.onRefused);
  const feed = new RevocationFeed({
    ...{ store: upstream, clock: steadyClock, ranMs: () => turns.ranMs(), cpuMs: processorTime, instance },
    ...{ readIntervalMs: 0, ageMs: () => upstream.ageMs() },
    // Errors are ignored here: each is a loss of the stream, which the verifier's client reports itself.
    onError() {},
  });
  const { failureLimit } = createRateLimits({ failures: FAILURES, refresh: undefined, create: undefined }, subnetOf);
  try {
    const relay = await serveRelay(
      { feed, upstream, access, audit, failureLimit, onBug },
      { host, port, tls: files?.current, metricsHosts },
    );
    const stopFollowing = files?.follow({
      onChange(tls) {
        relay.replaceTls(tls);
        certificate?.onChange();
      },
      onRefusal: (fault) => certificate?.onRefusal(fault),
    });
    return {
      url: relay.url,
      close() {
        stopFollowing?.();
        ended.abort();
        return relay.close();
      },
    };
  } catch (error) {
    ended.abort();
    await feed.close();
    throw error;
  }
}
