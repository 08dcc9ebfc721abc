/** Checks the TLS certificate: its key, its validity, its names. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import type { Config } from "../config/config.ts";
import { DAY_MS } from "../config/values.ts";
import { type Finding, messageOf, reportOf } from "./finding.ts";

/** How long before its expiry a certificate should have been renewed, in ms. */
const RENEWAL_MS = 14 * DAY_MS;

const { ok, warning, fault } = reportOf("certificate");

export function checkCertificate(config: Config, now: number): readonly Finding[] {
  const { tlsCertFile, tlsKeyFile, adminTlsClientCaFile } = config;
  const own =
    tlsCertFile === undefined || tlsKeyFile === undefined ? [] : checkOwn(config, tlsCertFile, tlsKeyFile, now);
  const authority =
    adminTlsClientCaFile === undefined ? [] : checkFile("ADMIN_TLS_CLIENT_CA_FILE", adminTlsClientCaFile, now);
  return [...own, ...authority];
}

function checkOwn({ issuer, trustProxy }: Config, certFile: string, keyFile: string, now: number): readonly Finding[] {
  const findings = [...checkFile("TLS_CERT_FILE", certFile, now)];
  const certificate = parse(certFile);
  if (certificate instanceof Error) return findings;
  try {
    if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(keyFile)))) {
      findings.push(
        fault(`TLS_KEY_FILE: ${keyFile} is not the key of the certificate`, "name the key that belongs to it"),
      );
    }
  } catch (error) {
    findings.push(fault(`TLS_KEY_FILE: ${keyFile} is no private key (${messageOf(error)})`, "name the key in PEM"));
  }
  // Behind a proxy, browsers see the proxy's certificate instead of this one.
  const name = issuer === undefined || trustProxy > 0 ? undefined : new URL(issuer).hostname.replace(/^\[|\]$/g, "");
  if (name !== undefined && !isFor(certificate, name)) {
    findings.push(
      fault(
        `the certificate is not for ${name}, the host of ISSUER: it is for ${certificate.subjectAltName ?? certificate.subject}`,
        `use a certificate for ${name}, or correct ISSUER`,
      ),
    );
  }
  return findings;
}

function isFor(certificate: X509Certificate, name: string): boolean {
  return (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
}

function checkFile(variable: string, path: string, now: number): readonly Finding[] {
  const certificate = parse(path);
  if (certificate instanceof Error) {
    return [fault(`${variable}: ${path} holds no certificate (${certificate.message})`, "name a certificate in PEM")];
  }
  const [from, until] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const day = new Date(until).toISOString().slice(0, 10);
  if (until <= now) return [fault(`${variable}: ${path} expired on ${day}`, "renew it; the service follows the file")];
  if (from > now)
    return [fault(`${variable}: ${path} is not valid yet`, "correct the clock of this machine, or the certificate")];
  if (until - now < RENEWAL_MS)
    return [warning(`${variable}: ${path} expires on ${day}`, "renew it; the service follows the file")];
  return [ok(`${variable}: ${path} is valid until ${day}`)];
}

function parse(path: string): X509Certificate | Error {
  try {
    return new X509Certificate(readFileSync(path));
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
