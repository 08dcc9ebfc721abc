import type { TLSSocket } from "node:tls";
import type { HttpRequest } from "./handler.ts";

export type PeerCertificate = {
  /** Whether a trusted authority has issued the certificate for clients, and it was valid when the connection was made. */
  readonly verified: boolean;
  /** The subject's common name, and the DNS names and URIs of the subject alternative name (RFC 5280 section 4.2.1.6). */
  readonly names: readonly string[];
  /** When the certificate expires, in ms since the epoch. */
  readonly expiresAt: number;
};

export function clientCertificateOf(request: HttpRequest): PeerCertificate | undefined {
  const socket = request.socket as Partial<TLSSocket>;
  const certificate = socket.getPeerX509Certificate?.();
  if (certificate === undefined) return undefined;
  const commonName: unknown = socket.getPeerCertificate?.().subject?.CN; // `subject.CN` is a list if there are several names.
  return {
    verified: socket.authorized === true,
    names: [...(typeof commonName === "string" ? [commonName] : []), ...alternativeNames(certificate.subjectAltName)],
    expiresAt: certificate.validToDate.getTime(),
  };
}

/**
 * Returns the DNS names and URIs of Node's text form, `DNS:a.example, URI:"spiffe://a, b"`. A name with a separator is a JSON string. If
 * any part has another form, no name is returned, because a part of one name must not be taken for another name.
 */
export function alternativeNames(text: string | undefined): readonly string[] {
  const names: string[] = [];
  const item = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^",]*)(?:, |$)/y;
  for (let at = 0; text !== undefined && at < text.length; at = item.lastIndex) {
    item.lastIndex = at;
    const [, kind, value = ""] = item.exec(text) ?? [];
    if (kind === undefined) return [];
    if (kind === "DNS" || kind === "URI") names.push(value.startsWith('"') ? String(JSON.parse(value)) : value);
  }
  return names;
}
