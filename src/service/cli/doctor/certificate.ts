/** Checks the TLS certificate: its key, its validity, its names; and the certificates for Redis. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { certificateEnd, RENEWAL_MS } from "../../../platform/files/certificate-end.ts";
import { errorMessage } from "../../../platform/files/error-code.ts";
import type { Config } from "../../config/config.ts";
import type { Report } from "./finding.ts";

export function checkCertificate(report: Report, config: Config, clock: () => number): void {
  const { tlsCertFile, tlsKeyFile, adminTlsClientCaFile, redis } = config;
  const now = clock();
  if (tlsCertFile !== undefined && tlsKeyFile !== undefined) checkOwn(report, config, tlsCertFile, tlsKeyFile, now);
  if (adminTlsClientCaFile !== undefined) checkFile(report, "ADMIN_TLS_CLIENT_CA_FILE", adminTlsClientCaFile, now);
  const { cert, ca } = redis?.tlsFiles ?? {};
  if (cert !== undefined) checkFile(report, "REDIS_TLS_CERT_FILE", cert, now);
  // A bundle of authorities has some that nobody uses any more.
  if (ca !== undefined) checkFile(report, "REDIS_TLS_CA_FILE", ca, now, "last");
}

function checkOwn(
  report: Report,
  { issuer, trustProxy }: Config,
  certFile: string,
  keyFile: string,
  now: number,
): void {
  const certificate = checkFile(report, "TLS_CERT_FILE", certFile, now);
  if (certificate === undefined) return;
  try {
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(keyFile)))) {
      report.fault(`TLS_KEY_FILE: ${keyFile} is not the key of the certificate`, "name the key that belongs to it");
    }
  } catch (error) {
    report.fault(`TLS_KEY_FILE: ${keyFile} is no private key (${errorMessage(error)})`, "name the key in PEM");
  }
  // Behind a proxy, browsers see the proxy's certificate instead of the service's.
  const name = issuer === undefined || trustProxy !== 0 ? undefined : new URL(issuer).hostname.replace(/^\[|\]$/g, "");
  if (name !== undefined && !isFor(certificate, name)) {
    report.fault(
      `the certificate is not for ${name}, the host of ISSUER: it is for ${certificate.subjectAltName ?? certificate.subject}`,
      `use a certificate for ${name}, or correct ISSUER`,
    );
  }
}

function isFor(certificate: X509Certificate, name: string): boolean {
  return (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
}

/** @param which whether the file is of use until the first or the last of its certificates ends */
function checkFile(
  report: Report,
  variable: string,
  path: string,
  now: number,
  which: "first" | "last" = "first",
): X509Certificate | undefined {
  let certificate: X509Certificate;
  let until: number;
  try {
    const pem = readFileSync(path, "utf8");
    certificate = new X509Certificate(pem);
    until = certificateEnd(pem, which);
  } catch (error) {
    report.fault(`${variable}: ${path} holds no certificate (${errorMessage(error)})`, "name a certificate in PEM");
    return undefined;
  }
  const from = certificate.validFromDate.getTime();
  const day = new Date(until).toISOString().slice(0, 10);
  const renewal = "renew it; the service follows the file";
  if (until <= now) report.fault(`${variable}: ${path} expired on ${day}`, renewal);
  else if (from > now) {
    report.fault(`${variable}: ${path} is not valid yet`, "correct the clock of this machine, or the certificate");
  } else if (until - now < RENEWAL_MS) report.warning(`${variable}: ${path} expires on ${day}`, renewal);
  else report.ok(`${variable}: ${path} is valid until ${day}`);
  return certificate;
}
