/** Follows the files of a certificate, its key and the authorities of client certificates, which change while the service runs. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { certificateEnd } from "../files/certificate-end.ts";
import { type Followed, loadFollowedTexts } from "../files/follow.ts";
import { checkTls, type Tls } from "./secure.ts";

type Paths = {
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities of client certificates. If it is absent, no client is asked for a certificate. */
  readonly clientCaFile?: string | undefined;
};

export type Certificate = Tls & {
  /** When the first certificate of the chain ends, in ms since the epoch. */
  readonly endsAt: number;
  /** When the first of the authorities of client certificates ends, in ms since the epoch. */
  readonly clientCaEndsAt?: number | undefined;
};

export type CertificateFiles = Followed<Certificate, Error>;

/** @throws Error if a file cannot be read, or does not contain what it should */
export function readCertificate({ certFile, keyFile, clientCaFile }: Paths): Promise<CertificateFiles> {
  return loadFollowedTexts([certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])], parse);
}

function parse([cert = "", key = "", clientCa]: readonly string[]): Certificate {
  // A secure context accepts an empty text, as a file has while it is rewritten, and then refuses every connection. These functions throw.
  new X509Certificate(cert);
  createPrivateKey(key);
  checkTls({ cert, key });
  const endsAt = certificateEnd(cert);
  if (clientCa === undefined) return { cert, key, endsAt };
  try {
    // The constructor throws for a file without any certificate. A secure context would accept the file, and then trust no client.
    new X509Certificate(clientCa);
    checkTls({ cert, key, clientCa });
    return { cert, key, endsAt, clientCa, clientCaEndsAt: certificateEnd(clientCa) };
  } catch (error) {
    throw new AuthoritiesFault(error);
  }
}

export class AuthoritiesFault extends Error {
  constructor(cause: unknown) {
    super("the file of the authorities of clients holds no certificate", { cause });
  }
}
