/** The manifests of deploy/, rendered by kubectl and helm, checked against the types of Kubernetes. */
import { execFileSync, spawnSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseAllDocuments } from "yaml";
import { scratch } from "../support/service.ts";

const TOOLS = "test/dependencies/tools/node_modules/.installed";

export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> };
  // The other fields depend on the kind, whose Kubernetes types check them at run time.
  // biome-ignore lint/suspicious/noExplicitAny: manifests are checked against those first
  readonly [field: string]: any;
};

const documents = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as Manifest);

/** Returns the objects that `kubectl apply -k` would send. */
export const kustomize = (directory: string): Manifest[] =>
  documents(execFileSync(join(TOOLS, "kubectl/kubectl"), ["kustomize", directory], { encoding: "utf8" }));

export const helm = (...args: readonly string[]): string =>
  execFileSync(join(TOOLS, "helm/helm"), [...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** Returns the objects that `helm install` would send. */
export const helmTemplate = (...args: readonly string[]): Manifest[] => documents(helm("template", ...args));

/** Returns the type of a manifest. The module of `ConfigMap` in `v1`, for example, is `kubernetes-models/v1/ConfigMap`. */
const typeOf = ({ apiVersion, kind }: Manifest) => `import("kubernetes-models/${apiVersion}/${kind}").I${kind}`;

/** Returns the faults of manifests by the types of their kinds: missing and unknown fields, wrong types, wrong values of enums. */
export function faultsOf(manifests: readonly Manifest[]): string[] {
  const directory = scratch();
  symlinkSync(resolve("test/dependencies/tools/node_modules"), join(directory, "node_modules"));
  const lines = manifests.map(
    (manifest) => `export const _: ${typeOf(manifest)} = ${JSON.stringify(manifest, null, 1)};`,
  );
  const files = lines.map((line, at) => {
    const name = `${manifests[at]?.kind}-${at}.ts`;
    writeFileSync(join(directory, name), line);
    return name;
  });
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--types", "", "--ignoreConfig"];
  const checked = spawnSync(resolve("node_modules/.bin/tsc"), ["--checkers", "1", ...options, ...files], {
    cwd: directory,
    encoding: "utf8",
  });
  const faults = checked.stdout.split("\n").filter((line) => line !== "");
  if (checked.status !== 0 && faults.length === 0) throw new Error(`tsc failed: ${checked.stderr}`);
  return faults;
}

/**
 * Returns the parts of network policies that select everything: an empty selector, an empty list of peers, a rule without ports, and a
 * rule without peers for another port than the public API's.
 */
export function openRulesOf(manifests: readonly Manifest[]): string[] {
  const isEmpty = (value: unknown) => Object.values(value ?? {}).filter((one) => one !== null).length === 0;
  return manifests
    .filter(({ kind }) => kind === "NetworkPolicy")
    .flatMap(({ spec }) =>
      ["ingress", "egress"].flatMap((direction) =>
        spec[direction].flatMap((rule: Manifest, at: number) => {
          const peers = (rule.from ?? rule.to ?? []) as Record<string, Record<string, unknown>>[];
          const ports = (rule.ports ?? []) as { port?: unknown }[];
          const isPublic = direction === "ingress" && ports.length === 1 && ports[0]?.port === "public";
          const isOpen =
            (isEmpty(peers) && !isPublic) ||
            peers.some(
              (peer) => isEmpty(peer) || Object.values(peer).some((inner) => Object.values(inner).some(isEmpty)),
            ) ||
            isEmpty(ports) ||
            ports.some(({ port }) => port === undefined || port === null);
          return isOpen ? [`${direction}[${at}]: ${JSON.stringify(rule)}`] : [];
        }),
      ),
    );
}
