/**
 * Parses `REDIS_URL`. The functions are pure and do not use ioredis, so that the configuration can be checked without it.
 *
 *     redis://[user:password@]host[:port][/db]                     one node; rediss:// the same over TLS
 *     redis+cluster://[user:password@]host[:port],…                a cluster, by its endpoint or some nodes (rediss+cluster:// over TLS)
 *     redis://[user:password@]host[:port],host[:port],…            the same, for several nodes
 *     redis+sentinel://[user:password@]host[:port],…/master[/db]   Sentinel (rediss+sentinel:// over TLS, to Sentinels and Redis)
 *
 * The credentials are those of Redis itself, percent-encoded. The Sentinels' credentials are variables of their own. A list may
 * also repeat the scheme: `redis://a,redis://b`.
 */
import { invalid, type Parsed, valid } from "./values.ts";

type RedisNode = { readonly host: string; readonly port: number };

export type TlsFiles = { readonly ca?: string; readonly cert?: string; readonly key?: string };

export type RedisTarget = {
  readonly kind: "single" | "cluster" | "sentinel";
  /** The node, some nodes of the cluster, or the sentinels. */
  readonly nodes: readonly [RedisNode, ...RedisNode[]];
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly db: number;
  /** The prefix of all keys and of the channel, so that several deployments can share a Redis. Default: empty. */
  readonly keyPrefix?: string | undefined;
  /** The name under which the sentinels know the master; only for Sentinel. */
  readonly master: string | undefined;
  /** The credentials for the sentinels, if they require any. */
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  /** The file with the password, in place of `password`. It is read at every connection. */
  readonly passwordFile?: string | undefined;
  readonly sentinelPasswordFile?: string | undefined;
  /** The file with the whole URL. Its password is read at every connection. */
  readonly urlFile?: string | undefined;
  /** Files in PEM. Without one of authorities, those of Node are trusted. */
  readonly tlsFiles?: TlsFiles;
};

/** The message never contains the URL, which may include a password. */
class UrlFault extends Error {}

const SCHEME = /^(rediss?)(\+sentinel|\+cluster)?:\/\/(.*)$/s;

export function parseRedisUrl(text: string): Parsed<RedisTarget> {
  try {
    return valid(parse(text));
  } catch (error) {
    if (error instanceof UrlFault) return invalid(error.message);
    throw error;
  }
}

/**
 * Returns a function that reads the password from the content of a file with a URL, as it was at the start and after changes.
 *
 * @throws Error if the content is no URL with a password, or names another server or user than at the first call
 */
export function passwordOfUrl(): (text: string) => string {
  let first: string | undefined;
  return (text) => {
    const parsed = parseRedisUrl(text.trim());
    if (!parsed.ok) throw new Error(`the URL ${parsed.reason}`);
    const { password, ...server } = parsed.value;
    first ??= JSON.stringify(server);
    if (JSON.stringify(server) !== first)
      throw new Error("it names another server or user: restart the service to use it");
    if (password === undefined) throw new Error("the URL has no password");
    return password;
  };
}

function parse(text: string): RedisTarget {
  const [first = "", ...others] = text.split(/,(?=[a-z+]+:\/\/)/);
  const [, scheme, mode = "", rest = ""] = SCHEME.exec(first) ?? [];
  if (scheme === undefined) {
    throw new UrlFault(
      "must start with redis://, rediss://, redis+cluster://, rediss+cluster://, redis+sentinel:// or rediss+sentinel://",
    );
  }
  const prefix = `${scheme}${mode}://`;
  const more = others.map((other) => {
    if (!other.startsWith(prefix)) throw new UrlFault("must use the same scheme for every node");
    return other.slice(prefix.length);
  });
  const list = [rest, ...more].join(",");
  if (/[?#\s]/.test(list)) throw new UrlFault("must have no query, fragment or spaces");

  const at = list.lastIndexOf("@");
  const slash = list.indexOf("/", at + 1);
  const hosts = list.slice(at + 1, slash === -1 ? undefined : slash);
  const path = slash === -1 ? [] : list.slice(slash + 1).split("/");
  const [node, ...nodes] = hosts.split(",").map((host) => parseNode(host, mode === "+sentinel" ? 26379 : 6379));
  if (node === undefined) throw new UrlFault("must name a host");
  const kind = mode === "+sentinel" ? "sentinel" : mode === "+cluster" || nodes.length > 0 ? "cluster" : "single";

  const master = kind === "sentinel" ? decode(path.shift() ?? "") : undefined;
  if (master === "") throw new UrlFault("must name the master: redis+sentinel://host,host/master");
  const db = path.shift() || "0";
  if (!/^\d{1,5}$/.test(db) || path.length > 0)
    throw new UrlFault("must end with the number of a database, if with a path");
  if (kind === "cluster" && db !== "0") throw new UrlFault("must not choose a database: a cluster has only one");
  return {
    kind,
    nodes: [node, ...nodes],
    tls: scheme === "rediss",
    ...credentials(list.slice(0, Math.max(at, 0))),
    db: Number(db),
    master,
  };
}

function credentials(userinfo: string): Pick<RedisTarget, "username" | "password"> {
  const colon = userinfo.indexOf(":");
  if (userinfo !== "" && colon === -1) throw new UrlFault("must give credentials as user:password@ or :password@");
  if (/[@,/]/.test(userinfo)) throw new UrlFault("must have its credentials once, at the front, and percent-encoded");
  return {
    username: decode(userinfo.slice(0, Math.max(colon, 0))) || undefined,
    password: decode(userinfo.slice(colon + 1)) || undefined,
  };
}

function parseNode(text: string, defaultPort: number): RedisNode {
  const [, ipv6, name, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = ipv6 ?? name;
  if (host === undefined) throw new UrlFault("must name every node as host or host:port");
  const number = port === undefined ? defaultPort : Number(port);
  if (number < 1 || number > 65535) throw new UrlFault("must have ports between 1 and 65535");
  return { host, port: number };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UrlFault("must be percent-encoded correctly");
  }
}
