/** What a failed connection to Redis means, by the code of its error: OpenSSL and Node change the texts. */
import { errorCode } from "../../../platform/files/error-code.ts";

/** `found` completes a sentence that begins with the address; `remedy` says what to do. */
export type ConnectionFault = { readonly found: string; readonly remedy: string };

/**
 * The codes of failed handshakes: certificates that are not accepted here (nodejs.org/api/tls.html#x509-certificate-error-codes), and
 * alerts of the server (RFC 8446 section 6).
 */
const TLS_FAULTS: readonly (readonly [code: RegExp, found: string, remedy: string])[] = [
  [
    /^CERT_HAS_EXPIRED$/,
    ": its certificate, or one of its authorities, has expired",
    "renew it there, or correct the clock of this machine",
  ],
  [
    /^CERT_NOT_YET_VALID$/,
    ": its certificate is not valid yet",
    "correct the clock of this machine, or the certificate",
  ],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    ": the certificate is for another host",
    "name the host in REDIS_URL as its certificate does",
  ],
  [
    /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(?:CA|PURPOSE)$|PATH_LENGTH_)/,
    ": the certificate is not accepted",
    "set REDIS_TLS_CA_FILE to the authority that signed it",
  ],
  [
    /^ERR_SSL_.*ALERT_(?:\w*CERTIFICATE\w*|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR)$/,
    " refuses the certificate of the service, or its absence",
    "set REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE to a certificate that it accepts",
  ],
  [
    /^ERR_SSL_.*ALERT_HANDSHAKE_FAILURE$/,
    " refuses the handshake of TLS",
    "set REDIS_TLS_CERT_FILE and REDIS_TLS_KEY_FILE if it asks for a certificate, and let it offer the usual ciphers of TLS 1.2 or 1.3",
  ],
  [/^ERR_SSL_.*ALERT_PROTOCOL_VERSION$/, " refuses the version of TLS", "let it offer TLS 1.2 or 1.3"],
  [/^ERR_SSL_WRONG_VERSION_NUMBER$/, " does not speak TLS", "name it without TLS (redis://, redis+cluster://)"],
];

/** Returns undefined for a failure that TLS has no part in. */
export function tlsFault(error: Error): ConnectionFault | undefined {
  const code = errorCode(error);
  const fault = TLS_FAULTS.find(([codes]) => codes.test(code));
  return fault && { found: `${fault[1]} (${error.message.trim()})`, remedy: fault[2] };
}

export function unreachableRemedy(error: Error): string {
  const code = errorCode(error);
  if (code === "ECONNREFUSED") return "start it there, or correct REDIS_URL";
  if (code === "ENOTFOUND") return "correct the host in REDIS_URL";
  return "let this machine reach it through the network; if it is reached, it may expect TLS (rediss://, rediss+cluster://), or not";
}
