import { RENEWAL_MS } from "../../platform/files/certificate-end.ts";
import {
  AuthoritiesFault,
  type Certificate,
  type CertificateFiles,
  readCertificate,
} from "../../platform/listener/certificate-files.ts";
import { type Listener, openListener } from "../../platform/listener/listener.ts";
import { resources } from "../../platform/listener/resources.ts";
import type { Tls } from "../../platform/listener/secure.ts";
import { stallTolerances } from "../api/limits/overload.ts";
import type { Config } from "../config/config.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { exposeCertificate } from "../observability/state-metrics.ts";
import { listenerLimits } from "./listener-limits.ts";
import { startError } from "./start-error.ts";

export type Listeners = {
  readonly public: Listener;
  readonly admin: Listener;
  readonly stopFollowing: () => void;
};

const SETTINGS = {
  public: { host: "HOST", port: "PORT" },
  admin: { host: "ADMIN_HOST", port: "ADMIN_PORT" },
} as const;

/** @throws StartError */
export async function openListeners(config: Config, log: Logger, metrics: Metrics): Promise<Listeners> {
  const certificate = await certificateOf(config);
  if (certificate !== undefined) {
    reportEnd(certificate.current, log);
    exposeCertificate(metrics, () => certificate.current.endsAt);
  }
  const limits = limitsOf(config, log);
  const open = (name: "public" | "admin", host: string, port: number) =>
    openListener(name, host, port, {
      tls: certificate && tlsOf(name, certificate.current),
      settings: SETTINGS[name],
      sharesPort: config.workers > 1,
      limits: { ...limits[name], maxWaitMs: stallTolerances(config.reuseIntervalMs).rotationMs },
      onBug: (err) => log.error({ event: "bug", err }, "bug"),
      onRefused: (reason) => metrics.connectionRefused(name, reason),
    });
  let publicListener: Listener | undefined;
  try {
    publicListener = await open("public", config.host, config.port);
    const listeners = { public: publicListener, admin: await open("admin", config.adminHost, config.adminPort) };
    return { ...listeners, stopFollowing: follow(certificate, listeners, log) };
  } catch (error) {
    await publicListener?.close(0);
    throw startError(error);
  }
}

/** Only the admin listener requests certificates from its clients. */
const tlsOf = (name: "public" | "admin", tls: Tls): Tls => (name === "admin" ? tls : { ...tls, clientCa: undefined });

/** Computes the limits, and warns if the system allows less than is configured. */
function limitsOf(config: Config, log: Logger) {
  const ofContainer = resources();
  // Workers share the memory of the container, but each has its own open files.
  const allowed = { ...ofContainer, memory: ofContainer.memory / config.workers };
  const limits = listenerLimits(config, allowed);
  const { maxConnections } = limits.public;
  if (maxConnections < config.maxConnections) {
    const byFiles = listenerLimits(config, { ...allowed, memory: Number.POSITIVE_INFINITY }).public.maxConnections;
    if (maxConnections < byFiles) {
      log.warn({ event: "little_memory", maxConnections }, "the container's memory allows fewer connections");
    } else log.warn({ event: "few_open_files", maxConnections }, "the limit of open files allows fewer connections");
  }
  return limits;
}

async function certificateOf(config: Config): Promise<CertificateFiles | undefined> {
  const { tlsCertFile: certFile, tlsKeyFile: keyFile, adminTlsClientCaFile: clientCaFile } = config;
  if (certFile === undefined || keyFile === undefined) return undefined;
  try {
    return await readCertificate({ certFile, keyFile, clientCaFile });
  } catch (error) {
    const isOfClients = error instanceof AuthoritiesFault;
    throw isOfClients
      ? startError(error.cause, "ADMIN_TLS_CLIENT_CA_FILE holds no certificate of an authority")
      : startError(error, "TLS_CERT_FILE and TLS_KEY_FILE do not make a certificate with its key");
  }
}

/** Writes a line for each file with a certificate that ends soon, or has ended. Clients refuse the service then, or it refuses them. */
function reportEnd({ endsAt, clientCaEndsAt = Number.POSITIVE_INFINITY }: Certificate, log: Logger): void {
  const now = Date.now();
  for (const [variable, expiresAt] of [
    ["TLS_CERT_FILE", endsAt],
    ["ADMIN_TLS_CLIENT_CA_FILE", clientCaEndsAt],
  ] as const) {
    if (expiresAt - now >= RENEWAL_MS) continue;
    const hasEnded = expiresAt <= now;
    const when = `${hasEnded ? "expired" : "expires"} on ${new Date(expiresAt).toISOString().slice(0, 10)}`;
    const text = `a certificate in ${variable} ${when}: renew it; the service follows the file`;
    log[hasEnded ? "error" : "warn"]({ event: "certificate_expires", variable, expiresAt }, text);
  }
}

function follow(
  certificate: CertificateFiles | undefined,
  listeners: Omit<Listeners, "stopFollowing">,
  log: Logger,
): () => void {
  if (certificate === undefined) return () => {};
  return certificate.watch({
    onChange(tls) {
      for (const name of ["public", "admin"] as const) listeners[name].replaceTls(tlsOf(name, tls));
      log.info(
        { event: "certificate_changed" },
        "new connections get the new TLS certificate, or authorities of clients",
      );
      reportEnd(tls, log);
    },
    onRefusal: (fault) =>
      log.error(
        { event: "certificate_refused", fault: fault.message },
        "a file of the TLS certificate or of the authorities of clients is broken: what was in force stays",
      ),
    onRecovery() {
      const ofClients = certificate.current.clientCa === undefined ? [] : ["ADMIN_TLS_CLIENT_CA_FILE"];
      for (const variable of ["TLS_CERT_FILE", "TLS_KEY_FILE", ...ofClients])
        log.info(
          { event: "file_recovered", variable },
          "the files of the TLS certificate and of the authorities of clients are valid again",
        );
    },
  });
}
