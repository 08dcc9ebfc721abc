/**
 * TLS to Redis: the authorities, the client's certificate and its key, and the name that a certificate of Redis must have. The files are
 * read at every connection. An open connection keeps its certificate, which Redis does not ask for again.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { type ConnectionOptions, checkServerIdentity, createSecureContext, type SecureContext } from "node:tls";
import { type FileValue, valueOfFiles } from "../../../../platform/files/file-value.ts";
import { followFile, type Taken } from "../../../../platform/files/follow.ts";
import type { RedisTarget, TlsFiles } from "../../../config/redis-url.ts";
import type { LogLine } from "./failure.ts";

type TlsAccess = {
  /** Returns the options of ioredis for a connection to a host; undefined for connections without TLS. */
  optionsFor(host?: string): ConnectionOptions | undefined;
  /** Logs, until the returned function is called, when the files change or cannot be used. */
  follow(log: LogLine): () => void;
};

/** @throws if the files cannot be used */
export function createTlsAccess(target: RedisTarget): TlsAccess {
  const { tls, tlsFiles = {} } = target;
  const paths = Object.values(tlsFiles);
  const context = paths.length === 0 ? undefined : contextOf(tlsFiles);
  const endpoint = target.nodes.find(({ host }) => isIP(host) === 0)?.host;
  return {
    optionsFor(host = "") {
      if (!tls) return undefined;
      const listedByAddress = target.kind === "cluster" && endpoint !== undefined && isIP(host) !== 0;
      const names = listedByAddress ? acceptEndpoint(host, endpoint) : {};
      if (context === undefined) return names;
      // ioredis copies the options for every connection, and so calls the getter.
      return Object.defineProperty(names, "secureContext", { enumerable: true, get: () => context.current() });
    },
    follow: (log) => (context === undefined ? () => {} : follow(paths, context, log)),
  };
}

/**
 * Accepts the certificate of the cluster's endpoint from a node that the cluster lists by its address. The certificates of rented clusters
 * often name only the endpoint. A certificate that names the address is accepted, too.
 */
function acceptEndpoint(address: string, endpoint: string): ConnectionOptions {
  return {
    servername: endpoint,
    checkServerIdentity: (_, certificate) =>
      checkServerIdentity(address, certificate) && checkServerIdentity(endpoint, certificate),
  };
}

function contextOf(files: TlsFiles): FileValue<SecureContext> {
  const names = Object.keys(files);
  return valueOfFiles(Object.values(files), (texts) => {
    const { ca, cert, key } = Object.fromEntries(texts.map((text, index) => [names[index], text]));
    // A context accepts a file without any certificate or key, and then trusts no server, or has no certificate. These functions throw.
    for (const certificates of [ca, cert]) if (certificates !== undefined) new X509Certificate(certificates);
    if (key !== undefined) createPrivateKey(key);
    return createSecureContext({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) });
  });
}

function follow(paths: readonly string[], context: FileValue<SecureContext>, log: LogLine): () => void {
  let known = context.current();
  const take = async (): Promise<Taken<Error>> => {
    try {
      const found = context.read();
      if (found !== known) log("info", "Redis: new connections use the changed TLS files");
      known = found;
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error : new Error(String(error)) };
    }
  };
  const onRefusal = ({ message }: Error) =>
    log("error", `Redis: a TLS file is broken (${message}): what was in force stays`);
  const onRecovery = () => log("info", "Redis: the TLS files are valid again");
  return followFile({ path: paths[0] ?? "", take, onRefusal, onRecovery });
}
