/** The manifests of deploy/, rendered by kubectl and helm, and the schemas of Kubernetes. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv, type ValidateFunction } from "ajv";
import { parseAllDocuments } from "yaml";

const TOOLS = "test/tools/node_modules/.installed";
const SCHEMAS = join(TOOLS, "python/kubernetes_validate/kubernetes-json-schema/v1.35.0-local-strict");

export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Record<string, string> };
  // Its shape is what the schemas are for.
  // biome-ignore lint/suspicious/noExplicitAny: manifests are checked against their schemas first
  readonly [field: string]: any;
};

const documents = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as Manifest);

/** What `kubectl apply -k` would send. */
export const kustomize = (directory: string): Manifest[] =>
  documents(execFileSync(join(TOOLS, "kubectl/kubectl"), ["kustomize", directory], { encoding: "utf8" }));

export const helm = (...args: readonly string[]): string =>
  execFileSync(join(TOOLS, "helm/helm"), [...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** What `helm install` would send. */
export const helmTemplate = (...args: readonly string[]): Manifest[] => documents(helm("template", ...args));

const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
const validators = new Map<string, ValidateFunction>();

function readSchema(name: string): object {
  const { $schema: _, ...schema } = JSON.parse(readFileSync(join(SCHEMAS, name), "utf8"));
  return schema;
}

ajv.addSchema(readSchema("_definitions.json"), "/api/_definitions.json");

/** The faults of a manifest by the strict schema of its kind: unknown fields are faults. */
export function faultsOf(manifest: Manifest): string[] {
  const [group = "", version] = manifest.apiVersion.includes("/") ? manifest.apiVersion.split("/") : ["", "v1"];
  const groupName = group.split(".")[0];
  const name = [manifest.kind.toLowerCase(), ...(groupName === "" ? [] : [groupName]), version].join("-");
  let validate = validators.get(name);
  if (validate === undefined) {
    validate = ajv.compile({ ...readSchema(`${name}.json`), $id: `${name}.json` });
    validators.set(name, validate);
  }
  validate(manifest);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${manifest.kind}${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}
