import { create, type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "../../../gen/google/api/http_pb.ts";
import { fieldByName, pathFieldProblem, resolveFieldPath } from "./field-path.ts";
import { type Route, type RouteTable, routeName } from "./model.ts";
import type { ServiceConfig } from "./service-config.ts";
import { parseTemplate, type Template, TemplateError } from "./template.ts";

/** An annotation that cannot be served. Its route is skipped. */
export interface Problem {
  /** `duplicate`: another binding has the same route, which is always an error. `unmappable`: any other problem, an error if strict. */
  readonly kind: "unmappable" | "duplicate";
  readonly method: DescMethod;
  /** Index of the rule: 0 is the annotation itself, 1 the first of its `additional_bindings`, and so on. */
  readonly binding: number;
  /** The invalid field of the HttpRule, if the problem is in a single field. */
  readonly part: "pattern" | "body" | "response_body" | "additional_bindings" | undefined;
  readonly reason: string;
}

/** The annotations that cannot be served, all in one error. */
export class RouteError extends Error {
  override readonly name = "RouteError";
  readonly #problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(describeProblem).join("\n"));
    this.#problems = problems;
  }

  /** The list is no own property of the error, because Node would print all descriptors with an uncaught error. */
  get problems(): readonly Problem[] {
    return this.#problems;
  }
}

function describeProblem({ method, reason }: Problem): string {
  return `${method.parent.typeName}.${method.name}: ${reason}`;
}

/** The sources of rules other than annotations. */
export interface RuleSources {
  /** The rules of a service configuration, which replace annotations. `parseServiceConfig` reads one. */
  readonly serviceConfig?: ServiceConfig | undefined;
  /** Whether an RPC without a rule gets the route `POST /package.Service/Method` with body `*`. Default: false. */
  readonly autoRoutes?: boolean | undefined;
}

/** How annotations that cannot be served are treated. */
export interface RouteOptions extends RuleSources {
  /** Whether an annotation that cannot be mapped is an error. Default: false, its route is skipped with a warning. */
  readonly strict?: boolean;
  /** Receives a warning for each skipped route. Default: `process.emitWarning`, or `console.warn` where there is no process. */
  readonly onWarning?: (warning: string, problem: Problem) => void;
}

/**
 * Derives the routes of a service from the google.api.http annotations in its descriptors.
 * @throws RouteError if two bindings have the same route, or, if strict, for any annotation that cannot be mapped
 */
export function createRoutes<Service extends DescService>(
  service: Service,
  options: RouteOptions = {},
): RouteTable & { readonly service: Service } {
  const { tables, problems } = describeRoutes([service], options);
  const errors = errorsAmong(problems, options.strict ?? false);
  if (errors.length > 0) throw new RouteError(errors);
  const warn = options.onWarning ?? emitWarning;
  for (const problem of problems) warn(`no route for ${describeProblem(problem)}`, problem);
  return { ...(tables[0] ?? { routes: [] }), service };
}

/** Returns the problems that are errors: duplicate routes always, the others only if strict. */
export function errorsAmong(problems: readonly Problem[], strict: boolean): readonly Problem[] {
  return strict ? problems : problems.filter(({ kind }) => kind === "duplicate");
}

/**
 * Makes the tables of services that are served together, without routes that have problems, and lists all these problems.
 * @throws Error for descriptors without JSON names
 */
export function describeRoutes(
  services: Iterable<DescService>,
  sources: RuleSources = {},
): { tables: RouteTable[]; problems: Problem[] } {
  const tables: RouteTable[] = [];
  const problems: Problem[] = [];
  const seen = new Map<string, string>();
  for (const service of services) {
    const routes: Route[] = [];
    for (const method of service.methods) {
      const ruleOfMethod = ruleOf(method, sources);
      if (ruleOfMethod === undefined) continue;
      checkJsonNames(method);
      [ruleOfMethod, ...ruleOfMethod.additionalBindings].forEach((rule, binding) => {
        const report = (kind: Problem["kind"]) => (part: Problem["part"], reason: string) =>
          void problems.push({ kind, method, binding, part, reason });
        const route = describeRoute(method, rule, binding > 0, report("unmappable"));
        if (route === undefined) return;
        const owner = `${service.typeName}.${method.name} (${routeName(route)})`;
        const other = seen.get(shapeOf(route));
        if (other !== undefined) report("duplicate")("pattern", `${owner} is the same route as ${other}`);
        seen.set(shapeOf(route), owner);
        routes.push(route);
      });
    }
    tables.push(
      sources.serviceConfig?.decodeAll ? { service, routes, multiSegmentDecoding: "all" } : { service, routes },
    );
  }
  return { tables, problems };
}

/** Without JSON names, every field would be read from the key "". */
function checkJsonNames({ parent, input, output }: DescMethod): void {
  if (![input, output].some(({ fields }) => fields.some(({ jsonName }) => jsonName === ""))) return;
  throw new Error(`the descriptors of ${parent.typeName} have no JSON names: read them with readDescriptorSet`);
}

function ruleOf(method: DescMethod, { serviceConfig, autoRoutes }: RuleSources): HttpRule | undefined {
  const configured = serviceConfig?.rules.get(`${method.parent.typeName}.${method.name}`);
  if (configured !== undefined) return configured;
  if (hasOption(method, http)) return getOption(method, http);
  if (!autoRoutes) return undefined;
  const value = `/${method.parent.typeName}/${method.name}`;
  return create(HttpRuleSchema, { pattern: { case: "post", value }, body: "*" });
}

/** Returns a key of the shape: two routes with the same shape match exactly the same requests. */
export function shapeOf(route: Route): string {
  return `${route.method} /${route.segments.join("/")}:${route.verb}`;
}

type Report = (part: Problem["part"], reason: string) => void;

/** Describes the route of a rule; undefined if it has problems, which are reported. */
function describeRoute(method: DescMethod, rule: HttpRule, nested: boolean, report: Report): Route | undefined {
  const streamsIn = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming";
  if (streamsIn && rule.body === "") {
    report(undefined, "a request stream needs a body to carry its messages");
    return undefined;
  }
  let problems = 0;
  const count: Report = (part, reason) => {
    problems++;
    report(part, reason);
  };
  if (nested && rule.additionalBindings.length > 0) count("additional_bindings", "additional_bindings do not nest");
  const pattern = patternOf(rule);
  if (!pattern.ok) {
    count("pattern", pattern.reason);
    return undefined;
  }
  checkBody(method, rule, pattern.method, count);
  const template = checkedTemplate(method, pattern.template, count);
  if (template === undefined || problems > 0) return undefined;
  return {
    rpc: method.localName,
    method: pattern.method,
    template: pattern.template,
    segments: template.segments,
    verb: template.verb,
    variables: template.variables,
    body: rule.body,
    responseBody: rule.responseBody,
  };
}

/** `token` of RFC 9110 section 5.6.2: the syntax of an HTTP method. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

type Pattern =
  | { readonly ok: true; readonly method: string; readonly template: string }
  | { readonly ok: false; readonly reason: string };

function patternOf({ pattern }: HttpRule): Pattern {
  if (pattern.case === undefined) return { ok: false, reason: "no HTTP method and path" };
  if (pattern.case !== "custom") return { ok: true, method: pattern.case.toUpperCase(), template: pattern.value };
  const { kind, path } = pattern.value;
  if (!TOKEN.test(kind)) return { ok: false, reason: `custom kind "${kind}" is not an HTTP method` };
  return { ok: true, method: kind, template: path };
}

function checkBody(method: DescMethod, rule: HttpRule, httpMethod: string, report: Report): void {
  if (rule.body !== "" && (httpMethod === "GET" || httpMethod === "HEAD")) {
    report("body", `${httpMethod} cannot have a body`);
  }
  if (rule.body !== "" && rule.body !== "*" && fieldByName(method.input, rule.body) === undefined) {
    report("body", `message ${method.input.typeName} has no field "${rule.body}"`);
  }
  if (rule.responseBody !== "" && fieldByName(method.output, rule.responseBody) === undefined) {
    report("response_body", `message ${method.output.typeName} has no field "${rule.responseBody}"`);
  }
}

function checkedTemplate(method: DescMethod, source: string, report: Report): Template | undefined {
  let template: Template;
  try {
    template = parseTemplate(source);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    report("pattern", error.message);
    return undefined;
  }
  const oneofs = new Map<string, string>();
  for (const { field: path } of template.variables) {
    const within = (reason: string) => report("pattern", `invalid path variable "${path}" in "${source}": ${reason}`);
    const resolved = resolveFieldPath(method.input, path);
    if (!resolved.ok) {
      within(resolved.reason);
      continue;
    }
    const { fields } = resolved;
    const problem = pathFieldProblem(fields);
    if (problem !== undefined) within(problem);
    fields.forEach((field, depth) => {
      if (field.oneof === undefined) return;
      const parent = path.split(".").slice(0, depth);
      const oneof = [...parent, field.oneof.name].join(".");
      const other = oneofs.get(oneof);
      if (other !== undefined && other !== field.name) within(`"${other}" of the same oneof is bound too`);
      oneofs.set(oneof, field.name);
    });
  }
  return template;
}

function emitWarning(warning: string): void {
  const { process } = globalThis as { readonly process?: NodeJS.Process };
  if (process?.emitWarning !== undefined) process.emitWarning(warning, "RouteWarning");
  else console.warn(warning);
}
