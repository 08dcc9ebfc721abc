import type { DescMethod } from "@bufbuild/protobuf";
import { errorsAmong, type Problem } from "connect-http-routes/descriptors";

/** Field numbers on the path from a file to the annotation of a method (descriptor.proto, google/api/annotations.proto). */
const SERVICE_OF_FILE = 6;
const METHOD_OF_SERVICE = 2;
const OPTIONS_OF_METHOD = 4;
const HTTP_OPTION = 72295728;
const ADDITIONAL_BINDINGS = 11;
/** The field numbers of the parts of an HttpRule. A rule sets one pattern. */
const PARTS = {
  pattern: [[2], [3], [4], [5], [6]],
  body: [[7]],
  response_body: [[12]],
  additional_bindings: [[ADDITIONAL_BINDINGS, 0]],
} as const;

/**
 * Throws if there are errors; otherwise prints each problem to stderr as a warning, and its route is skipped.
 * @param strict whether annotations that cannot be mapped are errors, too; duplicate routes always are
 */
export function reportProblems(problems: readonly Problem[], strict: boolean): void {
  const errors = errorsAmong(problems, strict);
  if (errors.length > 0) throw new Error(errors.map(describeProblem).join("\n"));
  for (const problem of problems) process.stderr.write(`warning: ${describeProblem(problem)} (route skipped)\n`);
}

/** Formats a problem as `dir/file.proto:12:5: reason`; lines and columns count from 1. */
function describeProblem(problem: Problem): string {
  const { method, reason } = problem;
  const at = locate(problem);
  const file = `${method.parent.file.name}.proto`;
  const where = at === undefined ? file : `${file}:${at.line + 1}:${at.column + 1}`;
  return `${where}: rpc ${method.name}: ${reason}`;
}

/** Finds the most specific location in the source info: the part of the rule, the rule, the annotation, or the RPC. */
function locate({ method, binding, part }: Problem): { line: number; column: number } | undefined {
  const rpc = [SERVICE_OF_FILE, method.parent.file.services.indexOf(method.parent), METHOD_OF_SERVICE, indexOf(method)];
  const option = [...rpc, OPTIONS_OF_METHOD, HTTP_OPTION];
  const rule = binding === 0 ? option : [...option, ADDITIONAL_BINDINGS, binding - 1];
  const exact = part === undefined ? [] : PARTS[part].map((field) => [...rule, ...field]);
  const candidates = [...exact, rule, option, rpc];
  const locations = method.parent.file.proto.sourceCodeInfo?.location ?? [];
  for (const path of candidates) {
    const span = locations.find((location) => same(location.path, path))?.span;
    if (span?.[0] !== undefined && span[1] !== undefined) return { line: span[0], column: span[1] };
  }
  return undefined;
}

function indexOf(method: DescMethod): number {
  return method.parent.methods.indexOf(method);
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((number, index) => number === b[index]);
}
