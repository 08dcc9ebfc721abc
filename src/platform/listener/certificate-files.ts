/** Follows the files of a certificate, its key and the authorities of client certificates, which change while the service runs. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { checkTls, type Tls } from "./secure.ts";

/** How often the files are read, in ms. */
const CHECK_MS = 1000;

type Paths = {
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities of client certificates. If it is absent, no client is asked for a certificate. */
  readonly clientCaFile?: string | undefined;
};

type CertificateEvents = {
  readonly onChange: (tls: Tls) => void;
  /** Called once for each fault of a file. The earlier contents stay in use. */
  readonly onRefusal: (fault: Error) => void;
};

export type CertificateFiles = {
  readonly current: Tls;
  /** Follows the files until the returned function is called. The timer does not keep the process running. */
  follow(events: CertificateEvents, everyMs?: number): () => void;
};

/** @throws Error if a file cannot be read, or does not contain what it should */
export function readCertificate({ certFile, keyFile, clientCaFile }: Paths): CertificateFiles {
  let current = checked({
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    clientCa: clientCaFile === undefined ? undefined : readFileSync(clientCaFile),
  });
  let lastFault = "";
  let reported = "";

  const read = async (): Promise<Error | undefined> => {
    try {
      const [cert, key, clientCa] = await Promise.all([
        readFile(certFile),
        readFile(keyFile),
        clientCaFile === undefined ? undefined : readFile(clientCaFile),
      ]);
      const next = { cert, key, clientCa };
      if (!isSame(next, current)) current = checked(next);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  };

  return {
    get current() {
      return current;
    },
    follow({ onChange, onRefusal }, everyMs = CHECK_MS) {
      let isStopped = false;
      let timer: NodeJS.Timeout;
      const check = async () => {
        const before = current;
        const fault = await read();
        if (isStopped) return;
        if (current !== before) onChange(current);
        // Files are replaced one after the other, so a fault is reported only if the next check finds it again.
        const text = fault?.message ?? "";
        if (fault !== undefined && text === lastFault && text !== reported) onRefusal(fault);
        if (text === lastFault) reported = text;
        lastFault = text;
        timer = setTimeout(check, everyMs).unref();
      };
      timer = setTimeout(check, everyMs).unref();
      return () => {
        isStopped = true;
        clearTimeout(timer);
      };
    },
  };
}

type Contents = { readonly cert: Buffer; readonly key: Buffer; readonly clientCa: Buffer | undefined };

function checked(contents: Contents): Contents {
  checkTls({ ...contents, clientCa: undefined });
  if (contents.clientCa === undefined) return contents;
  try {
    // The constructor throws for a file without any certificate. A secure context would accept the file, and then trust no client.
    new X509Certificate(contents.clientCa);
    checkTls(contents);
  } catch (error) {
    throw new AuthoritiesFault(error);
  }
  return contents;
}

export class AuthoritiesFault extends Error {
  constructor(cause: unknown) {
    super("the file of the authorities of clients holds no certificate", { cause });
  }
}

const isSame = (a: Contents, b: Contents) =>
  a.cert.equals(b.cert) &&
  a.key.equals(b.key) &&
  (a.clientCa === b.clientCa || (b.clientCa !== undefined && a.clientCa?.equals(b.clientCa) === true));
