/** Colours for terminals only. util.styleText respects `NO_COLOR` and `FORCE_COLOR`. */
import { styleText } from "node:util";

type Style = "bold" | "red" | "yellow" | "green";

export function style(format: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  return styleText(format, text, { stream });
}
