/** What the gate lets pass, and what real routers serve for it. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { GateOptions } from "../../src/server/gate.ts";
import * as routers from "./routers.ts";
import { PLAIN, spellings } from "./spellings.ts";

const OPEN = (path: string) =>
  path === "/" || path === "/open" || path.startsWith("/open/") || path.startsWith("/files/open/");
const GUARDS: readonly (readonly [string, GateOptions])[] = [
  ["all that is not public is protected", { isPublic: OPEN }],
  ["all but the account is public", { isPublic: () => true, isProtected: (path) => routers.isAccount(path) }],
];
const RUNS = Number(process.env.SPELLINGS ?? 1_000);

describe.each([
  ["Express", routers.runExpress],
  ["Fastify with files", routers.runFastifyWithFiles],
  ["Fastify with a lenient router", routers.runLenientFastify],
  ["Hono", routers.runHono],
  ["React Router", routers.runReactRouter],
  ["h3 1", routers.runH3],
  ["h3 2", routers.runH3Next],
])("%s", (_, run) => {
  let open: routers.Router;
  let reached: readonly string[];
  beforeAll(async () => {
    // Frameworks warn about paths that they cannot decode.
    vi.spyOn(console, "warn").mockImplementation(() => {});
    open = await run({ isPublic: () => true });
    const found = new Set<string>();
    const property = fc.asyncProperty(spellings("open"), async (path) => {
      if ((await open.get(path)).includes(routers.SECRET)) found.add(path);
    });
    await fc.assert(property, { numRuns: RUNS, examples: PLAIN.map((path) => [path]) });
    reached = [...found];
  });
  afterAll(() => {
    vi.restoreAllMocks();
    return open.close();
  });

  test("the account is reached without a guard", () => {
    expect(reached).toEqual(expect.arrayContaining([...PLAIN]));
  });

  test.each(GUARDS)("%s: no request gets to the account unseen", async (_name, options) => {
    const guarded = await run(options);
    const unseen: string[] = [];
    for (const path of reached) if ((await guarded.get(path)).includes(routers.SECRET)) unseen.push(path);
    await guarded.close();
    expect(unseen).toEqual([]);
  });

  test("a public page is served", async () => {
    const guarded = await run({ isPublic: OPEN });
    expect(await guarded.get("/open/x")).toContain("open");
    expect(await guarded.get("/account/x")).toBe("");
    await guarded.close();
  });
});
