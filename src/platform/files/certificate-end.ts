import { X509Certificate } from "node:crypto";

/** How long before it ends a certificate should have been renewed, in ms. */
export const RENEWAL_MS = 14 * 86_400_000;

/** Returns when the first, or the last, of the certificates in a PEM text ends, in ms since the epoch; infinity if it has none. */
export function certificateEnd(pem: string, which: "first" | "last" = "first"): number {
  const ends = (pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [pem]).flatMap((text) => {
    try {
      return [new X509Certificate(text).validToDate.getTime()];
    } catch {
      return []; // OpenSSL ignores what it cannot read behind the first authority of a file.
    }
  });
  return which === "first" ? Math.min(...ends) : Math.max(...ends);
}
