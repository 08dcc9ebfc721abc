/** The suite as a command of Node, Deno and Bun: a line in, a line out. */
import { run } from "./commands.ts";

let text = "";
// readline is not used, because it also ends lines at U+2028, which a token may contain.
for await (const chunk of process.stdin.setEncoding("utf8")) {
  const lines = (text + chunk).split("\n");
  text = lines.pop() ?? "";
  for (const line of lines) console.log(await run(line));
}
process.exit(0);
