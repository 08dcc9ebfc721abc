/** A certificate and its key in two files. The files are followed, because certificates are renewed while the service runs. */
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { checkTls, type Tls } from "./secure.ts";

/** How often the files are read, in ms. */
const CHECK_MS = 1000;

type CertificateEvents = {
  /** Called when the files hold another certificate that belongs to its key. */
  readonly onChange: (tls: Tls) => void;
  /** Called when the files do not contain a certificate with its key; the old one stays in use. Each fault is reported once. */
  readonly onRefusal: (fault: Error) => void;
};

export type CertificateFiles = {
  readonly current: Tls;
  /** Follows the files until the returned function is called. The timer does not keep the process running. */
  follow(events: CertificateEvents, everyMs?: number): () => void;
};

/** Reads the files. @throws Error if the files cannot be read, or do not contain a certificate with its key */
export function readCertificate(certFile: string, keyFile: string): CertificateFiles {
  let current: Tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  checkTls(current);
  let lastFault = "";
  let reported = "";

  const read = async (): Promise<Error | undefined> => {
    try {
      const [cert, key] = await Promise.all([readFile(certFile), readFile(keyFile)]);
      if (cert.equals(current.cert as Buffer) && key.equals(current.key as Buffer)) return undefined;
      const next = { cert, key };
      checkTls(next);
      current = next;
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
        // The two files are replaced one after the other, so a fault is reported only if the next check finds it again.
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
