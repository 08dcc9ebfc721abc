/** Every TypeScript example compiles: those of the docs and READMEs, and the `@example`s of docstrings. */
import { execFile } from "node:child_process";
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { packageDirectory, packageNames, readManifest } from "../deploy/packages/build.ts";
import { typedSource } from "../deploy/packages/entry-points.ts";
import { compileProject } from "./support/compiler.ts";
import { scratch } from "./support/service.ts";

const ROOT = join(import.meta.dirname, "..");
const run = promisify(execFile);

type Example = { readonly source: string; readonly line: number; readonly kind: "ts" | "tsx"; readonly text: string };

/** The declarations that examples use when they are not complete modules. A module may declare the same name itself. */
const CONTEXT = `
declare const adminToken: string, refreshToken: string, token: string, body: string;
declare const ca: string, cert: string, key: string;
declare let accessToken: string;
declare const socket: WebSocket, signOutButton: HTMLButtonElement;
declare function show(text: string): void;
declare function showLogin(): void;
declare function retryLater(): void;
declare function Login(): null;
declare const session: import("@session-service/browser").Session;
declare const createSession: typeof import("@session-service/browser").createSession;
declare const useSession: typeof import("@session-service/browser/react").useSession;
declare const createVerifier: typeof import("@session-service/verifier").createVerifier;
declare const verifier: import("@session-service/verifier").Verifier;
declare const createRestClient: typeof import("connect-http-routes/client").createRestClient;
declare const createClient: typeof import("@connectrpc/connect").createClient;
declare const createServer: typeof import("node:http").createServer;
declare const createConnectTransport: (options: object) => import("@connectrpc/connect").Transport;
declare const LibraryServiceRoutes: typeof import("./gen/library/v1/library_http.js").LibraryServiceRoutes;
declare const library: import("@connectrpc/connect").Client<typeof import("./gen/library/v1/library_pb.js").LibraryService>;
declare const database: { ping(): Promise<void> };
declare const implementation: object;
declare const withDeviceKey: typeof import("@session-service/browser/device").withDeviceKey;
type ValueCodec = import("connect-http-routes").ValueCodec;
declare const stringify: (value: unknown) => Uint8Array<ArrayBuffer>;
declare const parse: (text: string) => import("@bufbuild/protobuf").JsonValue;
declare const routes: (router: import("@connectrpc/connect").ConnectRouter) => void;
declare const interceptors: import("@connectrpc/connect").Interceptor[];
declare const adminUrl: string, issuer: string, audience: string, request: Request;
declare const sessions: import("@session-service/server").ServerSessions;
declare const createServerSessions: typeof import("@session-service/server").createServerSessions;
declare const app: {
  use(middleware: unknown): void;
  addHook(name: string, hook: unknown): void;
  get(path: string, handler: (request: object, response: ResponseLike) => unknown): void;
};
interface ResponseLike { json(body: unknown): void; code(status: number): ResponseLike; send(): unknown }
declare const initial: import("@session-service/browser").Initial | undefined;
declare const getSessions: () => import("@session-service/server").ServerSessions;
declare const currentUser: () => Promise<import("@session-service/server").User>;
declare const SessionError: typeof import("@session-service/server").SessionError;
type User = import("@session-service/server").User;
declare module "react-router" {
  export function createContext<T>(): { readonly value: T };
}
declare module "next/server" {
  export const connection: () => Promise<void>;
  export const NextResponse: { next(init: { readonly request: { readonly headers: Headers } }): Response };
}
declare module "next/headers" {
  export const headers: () => Promise<Headers>;
  export const cookies: () => Promise<{ set(name: string, value: string, attributes: object): void }>;
}
declare module "next/navigation" {
  export const redirect: (path: string) => never;
}
`;

const lineAt = (text: string, index: number) => text.slice(0, index).split("\n").length;

/** Removes the indentation that all lines have. */
function dedent(text: string): string {
  const lines = text.split("\n");
  const indents = lines.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length);
  return lines.map((line) => line.slice(Math.min(...indents))).join("\n");
}

function fencesOf(source: string): Example[] {
  const text = readFileSync(join(ROOT, source), "utf8");
  return [...text.matchAll(/^ *```(tsx?)\n([\s\S]*?)^ *```$/gm)].map((match) => ({
    source,
    line: lineAt(text, match.index) + 1,
    kind: match[1] as Example["kind"],
    text: dedent(match[2] ?? ""),
  }));
}

function docstringsOf(source: string): Example[] {
  const text = readFileSync(join(ROOT, source), "utf8");
  return [...text.matchAll(/@example\n([\s\S]*?)(?=\n *\* @|\n *\*\/)/g)].map((match) => ({
    source,
    line: lineAt(text, match.index) + 1,
    kind: "ts",
    text: dedent((match[1] ?? "").replaceAll(/^ *\* ?(```(ts)?$)?/gm, "")),
  }));
}

const namesBelow = (directory: string, ending: string) =>
  readdirSync(join(ROOT, directory), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(directory, name))
    .toSorted();

const examples = [
  ...[
    "README.md",
    ...namesBelow("docs", ".md"),
    ...namesBelow("deploy/packages", "README.md"),
    ...namesBelow("src", "README.md"),
  ].flatMap(fencesOf),
  ...namesBelow("src", ".ts").flatMap(docstringsOf),
];

/** Returns the sources of the modules that consumers import: `@session-service/http/client` and so on. */
function sourcesByImport(): Record<string, string[]> {
  const entries = packageNames().flatMap((folder) => {
    const { name, exports = {} } = readManifest(folder);
    return Object.entries(exports).map(([path, entry]) => [
      join(name, path),
      [join(packageDirectory(folder), typedSource(entry))],
    ]);
  });
  return Object.fromEntries(entries);
}

/** Creates a project with all examples as modules, with the packages' sources and the stubs that examples import. */
async function writeProject(): Promise<string> {
  const project = scratch();
  symlinkSync(join(ROOT, "node_modules"), join(project, "node_modules"));
  cpSync(join(ROOT, "examples/library/proto"), join(project, "proto"), { recursive: true });
  for (const name of ["google", "buf"])
    cpSync(join(ROOT, "proto", name), join(project, "proto", name), { recursive: true });
  const options = { out: "gen", include_imports: true, strategy: "all" };
  const plugin = (path: string, ...opt: string[]) => ({
    ...options,
    local: [process.execPath, join(ROOT, path)],
    opt: ["target=ts", "import_extension=js", ...opt],
  });
  const plugins = [
    plugin("node_modules/@bufbuild/protoc-gen-es/bin/protoc-gen-es"),
    plugin("src/protoc-gen-connect-http/main.ts"),
  ];
  const buf = join(ROOT, "node_modules/@bufbuild/buf/bin/buf");
  const template = JSON.stringify({ version: "v2", plugins });
  await run(process.execPath, [buf, "generate", "proto", "--template", template], { cwd: project });
  cpSync(join(ROOT, "gen"), join(project, "gen"), { recursive: true, force: false });
  const compilerOptions = {
    lib: ["es2024", "esnext.typedarrays", "esnext.disposable", "dom", "dom.iterable", "dom.asynciterable"],
    jsx: "preserve",
    noImplicitAny: false, // Some examples are valid as JavaScript too, and thus have no types.
    erasableSyntaxOnly: false,
    noUnusedLocals: false,
    noUnusedParameters: false,
    verbatimModuleSyntax: false,
    typeRoots: [join(ROOT, "node_modules/@types")],
    paths: sourcesByImport(),
  };
  const tsconfig = { extends: join(ROOT, "tsconfig.json"), compilerOptions, include: ["*.ts", "*.tsx"] };
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify(tsconfig));
  writeFileSync(join(project, "package.json"), '{"type":"module"}');
  writeFileSync(join(project, "context.d.ts"), CONTEXT);
  for (const [index, { kind, text }] of examples.entries()) {
    writeFileSync(join(project, `example-${index}.${kind}`), `${text}\nexport {};\n`);
  }
  return project;
}

test("the examples of the docs, the READMEs and the docstrings compile", async () => {
  expect(examples.length).toBeGreaterThan(20);
  const project = await writeProject();
  const stdout = await compileProject(project);
  const faults = stdout.trim().replaceAll(/example-(\d+)\.tsx?\((\d+),/g, (_, index: string, line: string) => {
    const { source, line: start } = examples[Number(index)] as Example;
    return `${source}:${start + Number(line) - 1} (`;
  });
  expect(faults).toBe("");
});

test("examples and pages name packages where the build puts them", () => {
  const files = [...namesBelow("examples", "package.json"), ...namesBelow("docs", ".md"), "README.md", "RELEASING.md"];
  const named = files.flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(/dist\/packages\/([\w-]+)/g)].map(([, folder]) => folder ?? ""),
  );
  expect(named).toContain("verifier");
  expect(named.filter((folder) => !packageNames().includes(folder))).toEqual([]);
});
