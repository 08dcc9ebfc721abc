/** Follows the files of the gateway, which change while it runs. While one of them is broken, its earlier content stays in use. */
import { stat } from "node:fs/promises";
import { type Followed, followFile, type Taken } from "../platform/files/follow.ts";
import type { CertificateFiles } from "../platform/listener/certificate-files.ts";
import type { Listener } from "../platform/listener/listener.ts";
import type { GatewayArguments } from "./arguments.ts";
import type { WriteLog } from "./request-log.ts";
import type { Upstream } from "./upstream.ts";
import type { UpstreamTls } from "./upstream-tls.ts";

interface Certificates {
  readonly own: CertificateFiles | undefined;
  readonly ofUpstream: Followed<UpstreamTls, Error> | undefined;
}

/** Follows the certificates of the listener and of the connections to the upstream, until the returned function is called. */
export function followCertificates(
  { own, ofUpstream }: Certificates,
  listener: Pick<Listener, "replaceTls">,
  upstream: Pick<Upstream, "renewTls">,
  write: WriteLog,
): () => void {
  const events = <Content>(name: string, apply: (content: Content) => void) => ({
    onChange(content: Content) {
      apply(content);
      write({ event: `${name} changed` });
    },
    onRefusal: (fault: Error) => write({ event: `${name} refused`, reason: fault.message }),
  });
  const stopOwn = own?.watch(events("certificate", listener.replaceTls));
  const stopUpstream = ofUpstream?.watch(events("upstream certificate", upstream.renewTls));
  return () => {
    stopOwn?.();
    stopUpstream?.();
  };
}

/** @param load reads the files again, and applies them */
type Follow = (load: () => Promise<Taken<Error>>, onRefusal: (fault: Error) => void) => () => void;

type ContractPaths = Pick<GatewayArguments, "descriptors" | "serviceConfig">;

/**
 * Records the present state of the files of descriptors and rules. Returns a function that follows their changes from then on, and that
 * returns a function to stop it.
 * @throws the errors of the file system
 */
export async function followContract({ descriptors, serviceConfig }: ContractPaths): Promise<Follow> {
  const paths = [descriptors, serviceConfig].filter((path) => path !== undefined);
  const [path] = paths;
  if (path === undefined) return () => () => {};
  let known = await versionOf(paths);
  const takeBy = (load: () => Promise<Taken<Error>>) => async (): Promise<Taken<Error>> => {
    try {
      const found = await versionOf(paths);
      if (found === known) return { ok: true };
      const taken = await load();
      if (taken.ok) known = found;
      return taken;
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error : new Error(String(error)) };
    }
  };
  return (load, onRefusal) => followFile({ path, take: takeBy(load), onRefusal });
}

/** Returns a text that changes with the files. Reading them every second would cost too much: descriptors may have megabytes. */
async function versionOf(paths: readonly string[]): Promise<string> {
  const found = await Promise.all(paths.map((path) => stat(path, { bigint: true })));
  return found.map(({ ino, size, mtimeNs }) => `${ino} ${size} ${mtimeNs}`).join();
}
