/** Bundles the script of the page and reads its other files. In your project, use a bundler of your choice instead. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { rolldown } from "rolldown";

export type File = { readonly type: string; readonly body: string };

const PAGE = join(import.meta.dirname, "page");

export async function buildPage(): Promise<ReadonlyMap<string, File>> {
  const build = await rolldown({ input: join(PAGE, "main.ts"), platform: "browser" });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  const read = (name: string) => readFile(join(PAGE, name), "utf8");
  return new Map([
    ["/", { type: "text/html; charset=utf-8", body: await read("index.html") }],
    ["/style.css", { type: "text/css", body: await read("style.css") }],
    ["/icon.svg", { type: "image/svg+xml", body: await read("icon.svg") }],
    ["/main.js", { type: "text/javascript", body: output[0].code }],
  ]);
}
