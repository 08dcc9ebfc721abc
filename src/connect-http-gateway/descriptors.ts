import { readFile } from "node:fs/promises";
import type { DescFile, DescService, FileRegistry, JsonValue } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import {
  describeRoutes,
  parseServiceConfig,
  RouteError,
  type RouteTable,
  readDescriptorSet,
} from "connect-http-routes";
import { reflectServices } from "./reflection.ts";

/** The sources of the descriptors and rules of the served RPCs. */
interface DescriptorSources {
  /** A file with a google.protobuf.FileDescriptorSet; undefined means server reflection. */
  readonly descriptors: string | undefined;
  /** A file with a google.api.Service in YAML or JSON, whose rules are added. */
  readonly serviceConfig: string | undefined;
  readonly autoRoutes: boolean;
  /** The full names of the services to serve; empty means all. */
  readonly services: readonly string[];
}

/** The services and routes that the gateway serves. */
interface Contract {
  readonly registry: FileRegistry;
  readonly tables: readonly RouteTable[];
  /** Warnings about rules that cannot be mapped. Their routes are not served. */
  readonly warnings: readonly string[];
}

/** @throws Error if a source cannot be read, a service is missing, two rules have the same route, or there are no routes */
export async function loadContract(sources: DescriptorSources, transport: Transport): Promise<Contract> {
  const registry =
    sources.descriptors === undefined ? await reflectServices(transport) : await readDescriptors(sources.descriptors);
  const serviceConfig = sources.serviceConfig === undefined ? undefined : await readConfig(sources.serviceConfig);
  const services = selectServices([...registry.files], sources.services);
  const { tables, problems } = describeRoutes(services, { serviceConfig, autoRoutes: sources.autoRoutes });
  const duplicates = problems.filter(({ kind }) => kind === "duplicate");
  if (duplicates.length > 0) {
    const cause = new RouteError(duplicates);
    throw new Error(`${cause.message}\nselect the services to serve with --service`, { cause });
  }
  const servedTables = tables.filter(({ routes }) => routes.length > 0);
  if (servedTables.length === 0) throw new Error("the descriptors contain no google.api.http rules");
  const warnings = problems.map(
    ({ method, reason }) => `no route for ${method.parent.typeName}.${method.name}: ${reason}`,
  );
  for (const selector of serviceConfig?.rules.keys() ?? []) {
    if (!services.some((service) => service.methods.some((m) => `${service.typeName}.${m.name}` === selector))) {
      warnings.push(`service config: there is no RPC ${selector}`);
    }
  }
  return { registry, tables: servedTables, warnings };
}

function selectServices(files: readonly DescFile[], names: readonly string[]): readonly DescService[] {
  const all = files.flatMap(({ services }) => services);
  if (names.length === 0) return all;
  return names.map((name) => {
    const service = all.find(({ typeName }) => typeName === name);
    if (service !== undefined) return service;
    const known = all.map(({ typeName }) => typeName).join(", ");
    throw new Error(`--service: there is no service ${name}; there are ${known}`);
  });
}

async function readDescriptors(file: string): Promise<FileRegistry> {
  const bytes = await readFile(file);
  try {
    return readDescriptorSet(bytes);
  } catch (cause) {
    throw new Error(`${file} is not a complete FileDescriptorSet (buf build -o ${file})`, { cause });
  }
}

async function readConfig(file: string) {
  const text = await readFile(file, "utf8");
  // The parser is loaded only when it is used, because most gateways have no service config.
  const { parse } = await import("yaml");
  try {
    return parseServiceConfig(parse(text) as JsonValue);
  } catch (cause) {
    throw new Error(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
