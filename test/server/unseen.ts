/** What the router of a framework makes of strange paths. The pages of `fixtures` rely on the kit's gate alone. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Service } from "../support/service.ts";
import { getRaw } from "./raw-request.ts";
import { SECRET } from "./routers.ts";
import { PLAIN, spellings } from "./spellings.ts";
import { signIn } from "./world.ts";

const RUNS = Number(process.env.SPELLINGS ?? 500);

/**
 * @param open the first segment of public paths
 * @param running the application and the service that it uses
 */
export function unseen(open: string, running: () => { readonly service: Service; readonly url: string }): void {
  test("no request of a stranger gets to a protected page, however its path is written", async () => {
    const { service, url } = running();
    const port = Number(new URL(url).port);
    const { header: cookie } = await signIn(service);
    const reached = new Set<string>();
    const unguarded = new Set<string>();
    const property = fc.asyncProperty(spellings(open), async (path) => {
      if (!(await getRaw(port, path, { cookie })).body.includes(SECRET)) return;
      reached.add(path);
      if ((await getRaw(port, path)).body.includes(SECRET)) unguarded.add(path);
    });
    await fc.assert(property, { numRuns: RUNS, examples: PLAIN.map((path) => [path]) });
    expect([...unguarded]).toEqual([]);
    expect([...reached]).toEqual(expect.arrayContaining([...PLAIN]));
  });
}
