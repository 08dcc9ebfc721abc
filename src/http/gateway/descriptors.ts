import { readFile } from "node:fs/promises";
import { createFileRegistry, type DescFile, type FileRegistry, fromBinary, type JsonValue } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { parse } from "yaml";
import type { RouteTable } from "../routes/model.ts";
import { describeRoutes, type Problem, RouteError } from "../routes/rules.ts";
import { parseServiceConfig } from "../routes/service-config.ts";
import { reflectServices } from "./reflection.ts";

/** Where the gateway learns what to serve. */
export interface DescriptorSources {
  /** A file with a google.protobuf.FileDescriptorSet; undefined: server reflection. */
  readonly descriptors: string | undefined;
  /** A file with a google.api.Service in YAML or JSON. */
  readonly serviceConfig: string | undefined;
  readonly autoRoutes: boolean;
}

/** What the gateway serves. */
export interface Contract {
  readonly registry: FileRegistry;
  readonly tables: readonly RouteTable[];
  /** Rules that cannot be mapped: their routes are not served. */
  readonly warnings: readonly string[];
}

/** @throws Error if a source cannot be read, if two rules have the same route, or if there are no routes at all */
export async function loadContract(sources: DescriptorSources, transport: Transport): Promise<Contract> {
  const registry =
    sources.descriptors === undefined ? await reflectServices(transport) : await readDescriptors(sources.descriptors);
  const serviceConfig = sources.serviceConfig === undefined ? undefined : await readConfig(sources.serviceConfig);
  const services = [...registry.files].flatMap((file: DescFile) => file.services);
  const { tables, problems } = describeRoutes(services, { serviceConfig, autoRoutes: sources.autoRoutes });
  const duplicates = problems.filter(({ kind }) => kind === "duplicate");
  if (duplicates.length > 0) throw new RouteError(duplicates);
  const served = tables.filter(({ routes }) => routes.length > 0);
  if (served.length === 0) throw new Error("the descriptors contain no google.api.http rules");
  const warnings = problems.map(describeProblem);
  for (const selector of serviceConfig?.rules.keys() ?? []) {
    if (!services.some((service) => service.methods.some((m) => `${service.typeName}.${m.name}` === selector))) {
      warnings.push(`service config: there is no RPC ${selector}`);
    }
  }
  return { registry, tables: served, warnings };
}

function describeProblem({ method, reason }: Problem): string {
  return `no route for ${method.parent.typeName}.${method.name}: ${reason}`;
}

async function readDescriptors(file: string): Promise<FileRegistry> {
  const bytes = await readFile(file);
  try {
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  } catch (cause) {
    throw new Error(`${file} is not a complete FileDescriptorSet (buf build -o ${file})`, { cause });
  }
}

async function readConfig(file: string) {
  const text = await readFile(file, "utf8");
  try {
    return parseServiceConfig(parse(text) as JsonValue);
  } catch (cause) {
    throw new Error(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}
