/** Colours, on a terminal alone; `NO_COLOR` and `FORCE_COLOR` are respected (util.styleText reads them). */
import { styleText } from "node:util";

type Style = "bold" | "dim" | "red" | "yellow" | "green";

export function style(format: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(format, text, { stream });
}
