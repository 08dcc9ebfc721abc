/** Opens both listeners, with their configured limits and certificates. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Config } from "../config/config.ts";
import { stallTolerances } from "../limits/stall.ts";
import { type CertificateFiles, readCertificate } from "../listener/certificate-files.ts";
import { type Listener, openListener } from "../listener/listener.ts";
import { resources } from "../listener/resources.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { listenerLimits } from "./listener-limits.ts";
import { startError } from "./start-error.ts";

export type Listeners = {
  readonly public: Listener;
  readonly admin: Listener;
  /** Stops following the certificate files. */
  readonly stopFollowing: () => void;
};

/** @throws StartError */
export async function openListeners(config: Config, log: Logger, metrics: Metrics): Promise<Listeners> {
  const certificate = certificateOf(config);
  const clientCa = readClientCa(config);
  const limits = limitsOf(config, log);
  const open = (name: "public" | "admin", host: string, port: number) =>
    openListener(name, host, port, {
      tls: certificate && { ...certificate.current, ...(name === "admin" && { clientCa }) },
      sharesPort: config.workers > 1,
      limits: { ...limits[name], maxWaitMs: stallTolerances(config.reuseIntervalMs).rotationMs },
      onBug: (err) => log.error({ event: "bug", err }, "bug"),
      onRefused: (reason) => metrics.connectionRefused(name, reason),
    });
  const listeners: Listener[] = [];
  try {
    const first = await open("public", config.host, config.port);
    listeners.push(first);
    const second = await open("admin", config.adminHost, config.adminPort);
    listeners.push(second);
    return { public: first, admin: second, stopFollowing: follow(certificate, listeners, log) };
  } catch (error) {
    await Promise.all(listeners.map((listener) => listener.close(0)));
    throw startError(error);
  }
}

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

function certificateOf(config: Config): CertificateFiles | undefined {
  if (config.tlsCertFile === undefined || config.tlsKeyFile === undefined) return undefined;
  try {
    return readCertificate(config.tlsCertFile, config.tlsKeyFile);
  } catch (error) {
    throw startError(error, "TLS_CERT_FILE and TLS_KEY_FILE do not make a certificate with its key");
  }
}

function readClientCa(config: Config): Buffer | undefined {
  const path = config.adminTlsClientCaFile;
  if (path === undefined) return undefined;
  try {
    const pem = readFileSync(path);
    // The constructor throws for a file without any certificate. A secure context would accept the file, and then trust no client.
    new X509Certificate(pem);
    createSecureContext({ ca: pem });
    return pem;
  } catch (error) {
    throw startError(error, "ADMIN_TLS_CLIENT_CA_FILE holds no certificate of an authority");
  }
}

function follow(certificate: CertificateFiles | undefined, listeners: readonly Listener[], log: Logger): () => void {
  if (certificate === undefined) return () => {};
  return certificate.follow({
    onChange(tls) {
      for (const listener of listeners) listener.replaceTls(tls);
      log.info({ event: "certificate_changed" }, "new connections get the new TLS certificate");
    },
    onRefusal: (fault) =>
      log.error(
        { event: "certificate_refused", fault: fault.message },
        "the TLS certificate files are broken: the certificate before stays in force",
      ),
  });
}
