import type { Route, Variable } from "connect-http-routes/descriptors";
import { unique } from "./json.ts";

/**
 * The parameter for one wildcard of a path template. The value of an OpenAPI path parameter has no slashes, so a variable with several
 * wildcards becomes several parameters.
 */
export interface PathParameter {
  readonly name: string;
  /** Whether the wildcard takes any number of segments, which OpenAPI 3.1 cannot express. */
  readonly multi: boolean;
  /** The variable that contains the wildcard, if any. */
  readonly variable: Variable | undefined;
  /** Whether the wildcard is the whole variable, so that its value is that of the field. */
  readonly whole: boolean;
  /** The literal segment before the wildcard, or "". */
  readonly collection: string;
}

interface Path {
  /** The key in `paths`: `/v1/shelves/{shelf}`. */
  readonly path: string;
  readonly parameters: readonly PathParameter[];
}

/**
 * Converts path templates to OpenAPI paths. Templates that match the same paths get the spelling of the first, because OpenAPI forbids
 * paths that differ only in parameter names.
 */
export function createPaths(): (route: Route) => Path {
  const taken = new Set<string>();
  const spellings = new Map<string, readonly string[]>();
  return (route) => {
    const wildcards = wildcardsOf(route);
    const shape = pathOf(route, route.segments);
    let names = spellings.get(shape);
    if (names === undefined) {
      const inRoute = new Set<string>();
      const own = wildcards.map((wildcard, index) => unique(inRoute, nameOf(wildcard, index)));
      // `/{x}` and `/{x=**}` match different paths but would get the same spelling, so the names of the later one get underscores.
      names = own;
      while (taken.has(pathOf(route, fill(route, names)))) names = names.map((name) => `${name}_`);
      taken.add(pathOf(route, fill(route, names)));
      spellings.set(shape, names);
    }
    return {
      path: pathOf(route, fill(route, names)),
      parameters: wildcards.map((wildcard, index) => ({ ...wildcard, name: names[index] ?? nameOf(wildcard, index) })),
    };
  };
}

type Wildcard = Omit<PathParameter, "name">;

function wildcardsOf({ segments, variables }: Route): Wildcard[] {
  return segments.flatMap((segment, at) => {
    if (segment !== "*" && segment !== "**") return [];
    const variable = variables.find(({ start, end }) => start <= at && at < end);
    const whole = variable !== undefined && variable.end - variable.start === 1;
    const before = segments[at - 1] ?? "";
    return [{ multi: segment === "**", variable, whole, collection: before.startsWith("*") ? "" : before }];
  });
}

/**
 * Names a wildcard: by its field without dots, because some tools do not find names with dots in paths; or, if it is only a part of a
 * variable, by its collection, such as `shelf` for `shelves/*`.
 */
function nameOf({ variable, whole, multi, collection }: Wildcard, index: number): string {
  const field = variable?.field.replaceAll(".", "_") ?? "segment";
  if (whole) return field;
  return (variable === undefined || multi ? undefined : singularOf(collection)) ?? `${field}_${index + 1}`;
}

/** Collections are named by plurals of English words (google.aip.dev/122). */
const PLURALS: readonly (readonly [plural: RegExp, singular: string])[] = [
  [/lves$/, "lf"],
  [/ies$/, "y"],
  [/(ss|x|ch|sh|z)es$/, "$1"],
  [/(?<!s)s$/, ""],
];

function singularOf(collection: string): string | undefined {
  if (!/^[a-zA-Z]\w*$/.test(collection)) return undefined;
  const found = PLURALS.find(([plural]) => plural.test(collection));
  return found && collection.replace(...found);
}

/** Returns the segments with `{name}` for each wildcard. */
function fill({ segments }: Route, names: readonly string[]): string[] {
  let next = 0;
  return segments.map((segment) => (segment === "*" || segment === "**" ? `{${names[next++]}}` : segment));
}

function pathOf({ verb }: Route, segments: readonly string[]): string {
  return `/${segments.join("/")}${verb === "" ? "" : `:${verb}`}`;
}
