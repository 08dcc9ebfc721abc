import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.ts";
import type { HttpRule } from "../../../gen/google/api/http_pb.ts";
import { fieldByName, pathFieldProblem, resolveFieldPath } from "./field-path.ts";
import { type Route, type RouteTable, routeName } from "./model.ts";
import { parseTemplate, type Template, TemplateError } from "./template.ts";

/** An annotation that cannot be served. */
export interface Problem {
  readonly method: DescMethod;
  /** Index of the rule: 0 is the annotation itself, 1 the first of its `additional_bindings`, and so on. */
  readonly binding: number;
  /** The invalid field of the HttpRule, if it is a single one. */
  readonly part: "pattern" | "body" | "response_body" | "additional_bindings" | undefined;
  readonly reason: string;
}

/** Annotations that cannot be served, all of them at once. */
export class RouteError extends Error {
  override readonly name = "RouteError";
  readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(problems.map((p) => `${p.method.parent.typeName}.${p.method.name}: ${p.reason}`).join("\n"));
    this.problems = problems;
  }
}

/**
 * The routes of a service, from the google.api.http annotations in its descriptors.
 * @throws RouteError
 */
export function createRoutes(service: DescService): RouteTable {
  const { tables, problems } = describeRoutes([service]);
  if (problems.length > 0) throw new RouteError(problems);
  return tables[0] ?? { service, routes: [] };
}

/** The tables of services that are served together, and all problems of their annotations. */
export function describeRoutes(services: Iterable<DescService>): { tables: RouteTable[]; problems: Problem[] } {
  const tables: RouteTable[] = [];
  const problems: Problem[] = [];
  const seen = new Map<string, string>();
  for (const service of services) {
    const routes: Route[] = [];
    for (const method of service.methods) {
      if (!hasOption(method, http)) continue;
      const rules = flatten(getOption(method, http), (binding, reason) => {
        problems.push({ method, binding, part: "additional_bindings", reason });
      });
      rules.forEach((rule, binding) => {
        const route = describeRoute(method, rule, (part, reason) => problems.push({ method, binding, part, reason }));
        if (route === undefined) return;
        const key = shapeOf(route);
        const culprit = `${service.typeName}.${method.name} (${routeName(route)})`;
        const other = seen.get(key);
        if (other !== undefined) {
          problems.push({ method, binding, part: "pattern", reason: `${culprit} is the same route as ${other}` });
        }
        seen.set(key, culprit);
        routes.push(route);
      });
    }
    tables.push({ service, routes });
  }
  return { tables, problems };
}

/** Two routes with the same shape match exactly the same requests. */
export function shapeOf(route: Route): string {
  return `${route.method} /${route.segments.join("/")}:${route.verb}`;
}

function flatten(rule: HttpRule, report: (binding: number, reason: string) => void): HttpRule[] {
  rule.additionalBindings.forEach((nested, index) => {
    if (nested.additionalBindings.length > 0) report(index + 1, "additional_bindings do not nest");
  });
  return [rule, ...rule.additionalBindings];
}

type Report = (part: Problem["part"], reason: string) => void;

function describeRoute(method: DescMethod, rule: HttpRule, report: Report): Route | undefined {
  if (method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming") {
    report(undefined, "client and bidirectional streaming cannot be mapped to HTTP routes");
    return undefined;
  }
  const pattern = patternOf(rule);
  if (typeof pattern === "string") {
    report("pattern", pattern);
    return undefined;
  }
  checkBody(method, rule, pattern.method, report);
  const template = checkedTemplate(method, pattern.template, report);
  if (template === undefined) return undefined;
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

function patternOf(rule: HttpRule): { method: string; template: string } | string {
  const { pattern } = rule;
  if (pattern.case === undefined) return "no HTTP method and path";
  if (pattern.case !== "custom") return { method: pattern.case.toUpperCase(), template: pattern.value };
  const { kind, path } = pattern.value;
  if (!TOKEN.test(kind)) return `custom kind "${kind}" is not an HTTP method`;
  return { method: kind, template: path };
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
    const fields = resolveFieldPath(method.input, path);
    if (typeof fields === "string") {
      within(fields);
      continue;
    }
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
