/**
 * Finds the addresses of receivers. The system's resolver occupies one of the few threads of the process for as long as it waits, and the
 * lookup of the store's host name needs these threads, too. So names are looked up by DNS directly, which needs no thread, and with the
 * system's resolver, one at a time, only if they are in the hosts file or DNS does not know them.
 */
import { lookup, Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import type { LookupFunction } from "node:net";

type Address = { readonly address: string; readonly family: 4 | 6 };

/** Returns all addresses of a name. It rejects if the name does not exist. */
export type Find = (name: string) => Promise<readonly Address[]>;

export type LookupDeps = {
  /** The system's resolver, its hosts file, and the name servers; tests replace them. */
  readonly bySystem?: Find;
  readonly hostsFile?: string;
  readonly servers?: readonly string[];
  /** How long a name may wait for the system's resolver, in ms. After that its lookup fails. */
  readonly maxWaitMs: number;
};

const HOSTS_FILE = "/etc/hosts";
/** The timeout of the first attempt at each name server, in ms; the resolver (c-ares) waits longer for the second attempt. */
const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;
/** How many names may wait for the system's resolver. */
const MAX_WAITING = 64;
/** The errors for a name that a name server does not know, and for a machine without a name server. */
const UNKNOWN: ReadonlySet<unknown> = new Set(["ENOTFOUND", "ENODATA", "ECONNREFUSED"]);

export function createLookup(deps: LookupDeps): Find {
  const { hostsFile = HOSTS_FILE, servers } = deps;
  const findBySystem = oneAtATime(deps);
  return async (name) => {
    if (await isListed(name, hostsFile)) return findBySystem(name);
    // A new resolver reads the system's configuration, which may have changed.
    const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = [...addressesOf(v4, 4), ...addressesOf(v6, 6)];
    if (found.length > 0) return found;
    const failure = [v4, v6].find((one) => one.status === "rejected" && !UNKNOWN.has(one.reason.code));
    if (failure?.status === "rejected") throw failure.reason;
    return findBySystem(name);
  };
}

function addressesOf(found: PromiseSettledResult<readonly string[]>, family: 4 | 6): readonly Address[] {
  return found.status === "rejected" ? [] : found.value.map((address) => ({ address, family }));
}

/** Returns whether the hosts file contains a name. The system then finds its address without a name server. */
async function isListed(name: string, hostsFile: string): Promise<boolean> {
  const lines = (await readFile(hostsFile, "utf8").catch(() => "")).split("\n");
  return lines.some((line) => line.replace(/#.*/, "").toLowerCase().split(/\s/).slice(1).includes(name));
}

const askSystem: Find = async (name) => (await lookup(name, { all: true })) as readonly Address[];

/** Returns a function that looks up names with the system's resolver, one after the other. */
function oneAtATime({ bySystem = askSystem, maxWaitMs }: LookupDeps): Find {
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();
  return async (name) => {
    if (waiting >= MAX_WAITING) throw new Error("too many names are waiting");
    const started = performance.now();
    waiting++;
    const own = last.then(() => {
      waiting--;
      if (performance.now() - started >= maxWaitMs) throw new Error("the name has waited too long");
      return bySystem(name);
    });
    last = own.catch(() => {});
    return own;
  };
}

/** Adapts `find` to the option `lookup` of connections. @param refuse returns an error for addresses that must not be connected to */
export function lookupFunction(
  find: Find,
  refuse: (addresses: readonly Address[]) => Error | undefined,
): LookupFunction {
  return (name, { all }, callback) => {
    const reply = (addresses: readonly Address[]) => {
      const [first] = addresses;
      const error = refuse(addresses);
      if (error !== undefined || first === undefined) callback(error ?? new Error("no address"), "", 0);
      else if (all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    };
    find(name).then(reply, (error) => callback(error, "", 0));
  };
}
