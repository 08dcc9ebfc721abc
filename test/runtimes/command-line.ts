/** The tests of suite.ts as a program for Node, Deno and Bun: it reads commands as lines, and writes a line for each result. */
import { run } from "./commands.ts";

let text = "";
// readline is not used, because it also ends lines at U+2028, which a token may contain.
for await (const chunk of process.stdin.setEncoding("utf8")) {
  const lines = (text + chunk).split("\n");
  text = lines.pop() ?? "";
  for (const line of lines) console.log(await run(line));
}
process.exit(0);
