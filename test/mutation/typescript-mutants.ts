/** Mutants of a TypeScript file: one small change each, found in its syntax tree. */
import { parseSync } from "rolldown/utils";
import type { Change } from "./change.ts";

type Node = { readonly type: string; readonly start: number; readonly end: number } & Record<string, unknown>;

/** For each operator, the one that somebody might write in its place by mistake. */
const OPERATORS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "&&": "||",
  "||": "&&",
  "++": "--",
  "--": "++",
  "+=": "-=",
  "-=": "+=",
};

const METHODS: ReadonlyMap<string, string> = new Map([
  ["min", "max"],
  ["max", "min"],
  ["some", "every"],
  ["every", "some"],
  ["startsWith", "endsWith"],
  ["endsWith", "startsWith"],
  ["floor", "ceil"],
  ["ceil", "floor"],
]);

/** A constant above this is a limit or a time, where off-by-one makes no difference. It is replaced by 0 instead of a neighbour. */
const LARGEST_COUNT = 64;

/**
 * The names of functions whose arguments are not mutated, because their texts are for people. For the same reason, texts with three words
 * in a row (`PROSE`) are not mutated, such as log lines.
 */
const TEXT_FOR_PEOPLE = /(?:Error|Fault|Refused|Refusal|Unavailable|Cursor|Failed)$/;
const PROSE = /\p{L}+ \p{L}+ \p{L}+/u;
/** Types of syntax nodes that have no behaviour. */
const SILENT = /^TS|^Import|^ExportAll/;

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

export function typescriptMutants(text: string, file: string): Change[] {
  const found: Change[] = [];
  const add = (kind: string, start: number, end: number, replacement: string) => {
    if (text.slice(start, end) !== replacement) found.push({ kind, start, end, replacement });
  };
  visit(parseSync(file, text).program as unknown as Node, add, text);
  return found;
}

type Add = (kind: string, start: number, end: number, replacement: string) => void;

function visit(node: Node, add: Add, text: string): void {
  if (SILENT.test(node.type)) {
    // A type assertion has no behaviour, but the expression inside it has.
    if (isNode(node.expression)) visit(node.expression, add, text);
    return;
  }
  mutate(node, add, text);
  for (const [name, value] of Object.entries(node)) {
    if (isSilent(node, name)) continue;
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, add, text);
  }
}

function isSilent(node: Node, name: string): boolean {
  if (name === "typeAnnotation" || name === "returnType" || name === "typeArguments" || name === "typeParameters")
    return true;
  if (name === "key" && node.computed !== true) return true;
  if (node.type === "JSXAttribute") return isNode(node.name) && node.name.name === "class";
  return name === "arguments" && isNode(node.callee) && TEXT_FOR_PEOPLE.test(String(node.callee.name ?? ""));
}

function mutate(node: Node, add: Add, text: string): void {
  const { start, end } = node;
  const source = (part: unknown) => (isNode(part) ? text.slice(part.start, part.end) : "");
  switch (node.type) {
    case "IfStatement":
    case "ConditionalExpression":
    case "WhileStatement":
      if (isNode(node.test)) add("condition flipped", node.test.start, node.test.end, `!(${source(node.test)})`);
      return;
    case "BinaryExpression":
    case "LogicalExpression":
    case "AssignmentExpression":
      operator(node, add, text);
      return;
    case "UpdateExpression":
      add(
        "operator",
        start,
        end,
        text.slice(start, end).replace(/\+\+|--/, (sign) => OPERATORS[sign] ?? sign),
      );
      return;
    case "UnaryExpression":
      if (node.operator === "!") add("negation removed", start, end, `(${source(node.argument)})`);
      return;
    case "Literal":
      literal(node, add);
      return;
    case "TemplateLiteral":
      if (end - start > 2 && !PROSE.test(source(node))) add("text emptied", start, end, "``");
      return;
    case "ArrayExpression":
      if (Array.isArray(node.elements) && node.elements.length > 0) add("list emptied", start, end, "[]");
      return;
    case "ExpressionStatement":
      if (typeof node.directive !== "string") add("statement removed", start, end, ";");
      return;
    case "ThrowStatement":
      add("throw removed", start, end, ";");
      return;
    case "ReturnStatement":
      // `return undefined;` means the same as `return;`, so replacing one by the other is not a mutant.
      if (node.argument !== null && source(node.argument) !== "undefined") add("return emptied", start, end, "return;");
      return;
    case "MemberExpression": {
      const method =
        isNode(node.property) && node.computed !== true ? METHODS.get(String(node.property.name)) : undefined;
      if (method !== undefined && isNode(node.property)) add("method", node.property.start, node.property.end, method);
      return;
    }
    case "AwaitExpression":
      if (source(node.argument).startsWith("Promise.all")) return;
      add("await removed", start, end, `(${source(node.argument)})`);
      return;
  }
}

function operator(node: Node, add: Add, text: string) {
  const { left, right } = node;
  if (!isNode(left) || !isNode(right)) return;
  const sign = String(node.operator);
  const between = text.slice(left.end, right.start);
  const at = left.end + between.indexOf(sign);
  if (sign === "??") add("default removed", node.start, node.end, text.slice(left.start, left.end));
  const other = Object.hasOwn(OPERATORS, sign) ? OPERATORS[sign] : undefined;
  if (other === undefined || !between.includes(sign)) return;
  const mixed = node.type === "LogicalExpression";
  const whole = `(${text.slice(left.start, left.end)} ${other} ${text.slice(right.start, right.end)})`;
  if (mixed) add("operator", node.start, node.end, whole);
  else add("operator", at, at + sign.length, other);
}

function literal(node: Node, add: Add) {
  const { start, end, value } = node;
  if (typeof value === "boolean") add("constant", start, end, String(!value));
  else if (typeof value === "number") add("constant", start, end, value > LARGEST_COUNT ? "0" : String(value + 1));
  else if (typeof value === "string" && value !== "" && !PROSE.test(value)) add("text emptied", start, end, '""');
  else if (isNode(node.regex) || typeof node.regex === "object") {
    const raw = String(node.raw);
    if (raw.startsWith("/^")) add("anchor removed", start, end, `/${raw.slice(2)}`);
    const last = raw.lastIndexOf("/");
    if (raw[last - 1] === "$") add("anchor removed", start, end, raw.slice(0, last - 1) + raw.slice(last));
  }
}
