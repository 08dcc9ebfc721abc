/** Follows the files with which the gateway and the upstream identify themselves to each other over TLS. */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { type Followed, loadFollowedTexts } from "../platform/files/follow.ts";
import type { GatewayArguments } from "./arguments.ts";

export type UpstreamTls = Pick<SecureContextOptions, "ca" | "cert" | "key">;

type Paths = Pick<GatewayArguments, "upstreamCa" | "upstreamClient">;

/**
 * Reads the authorities of the upstream, and the certificate of the gateway with its key; undefined if there are none.
 * @throws Error that names the option of a file that cannot be used
 */
export async function readUpstreamTls({
  upstreamCa,
  upstreamClient,
}: Paths): Promise<Followed<UpstreamTls, Error> | undefined> {
  if (upstreamClient === undefined) {
    return upstreamCa === undefined
      ? undefined
      : loadFollowedTexts([upstreamCa], ([ca]) => authorities(upstreamCa, ca));
  }
  const { cert, key } = upstreamClient;
  const paths: [string, ...string[]] = upstreamCa === undefined ? [cert, key] : [cert, key, upstreamCa];
  return loadFollowedTexts(paths, ([certPem = "", keyPem = "", ca]) => {
    checkPair(upstreamClient, certificateIn("--upstream-cert", cert, certPem), privateKeyIn(key, keyPem));
    const tls = { cert: certPem, key: keyPem, ...(upstreamCa !== undefined && authorities(upstreamCa, ca)) };
    createSecureContext(tls);
    return tls;
  });
}

function authorities(path: string, ca = ""): UpstreamTls {
  // Node would accept a file without any certificate, and then trust no upstream.
  certificateIn("--upstream-ca", path, ca);
  return { ca };
}

function checkPair({ cert, key }: { cert: string; key: string }, certificate: X509Certificate, own: KeyObject): void {
  if (!certificate.checkPrivateKey(own)) {
    throw new Error(`--upstream-key: the key in ${key} is not the key of the certificate in ${cert}`);
  }
  if (Date.parse(certificate.validTo) < Date.now()) {
    throw new Error(`--upstream-cert: the certificate in ${cert} expired at ${certificate.validTo}`);
  }
}

function certificateIn(option: string, path: string, pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${option}: ${path} holds no certificate (PEM)`, { cause });
  }
}

function privateKeyIn(path: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    throw new Error(`--upstream-key: ${path} holds no private key (PEM, without a passphrase)`, { cause });
  }
}
