/** Shell completion, tested by running the shells. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { scratch } from "../../support/service.ts";
import { commandHere } from "./command.ts";

const directory = scratch();
const script = (shell: string) => join(directory, shell);
beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, out, err } = await commandHere(["completion", shell]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    writeFileSync(script(shell), out);
  }
  writeFileSync(join(directory, "a file"), "");
});

function run(shell: string, args: readonly string[], input: string): readonly string[] {
  const { stdout, stderr, status } = spawnSync(shell, args, { input, cwd: directory, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.split("\n").filter((line) => line !== "");
}

/** Returns the words that a shell offers for the last word of a line. */
const SHELLS: Readonly<Record<string, (line: string) => readonly string[]>> = {
  bash(line) {
    const words = line.split(" ").map((word) => `'${word}'`);
    return run(
      "bash",
      ["--norc"],
      `source ./bash\nCOMP_WORDS=(${words.join(" ")}); COMP_CWORD=${words.length - 1}\n_session_service 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"\n`,
    );
  },
  /** Replaces the function by which zsh displays candidates, and so collects them. */
  zsh(line) {
    const words = line.split(" ").map((word) => `'${word}'`);
    return run(
      "zsh",
      ["-f"],
      `compdef() { }
_describe() { for each in \${(P)2}; do each=\${each//\\\\:/=}; print -- \${\${each%%:*}//=/:}; done }
compadd() { shift; print -l -- $@ }
_files() { print -l -- * }
_message() { }
source ./zsh
words=(${words.join(" ")}) CURRENT=${words.length}
_session_service
true
`,
    ).filter((word) => word.startsWith(line.split(" ").at(-1) ?? ""));
  },
  fish: (line) =>
    run("fish", ["--no-config", "-c", `source ./fish; complete -C '${line}'; true`], "").map(
      (each) => each.split("\t")[0] ?? "",
    ),
};

describe.each(Object.keys(SHELLS))("in %s", (shell) => {
  const offered = (line: string) => SHELLS[shell]?.(line) ?? [];

  test("commands are completed", () => {
    expect(offered("session-service ")).toEqual(expect.arrayContaining(["sessions", "keys", "doctor", "completion"]));
    expect(offered("session-service se").toSorted()).toEqual(["serve", "sessions"]);
    expect(offered("session-service sessions en").toSorted()).toEqual(["end", "end-all"]);
  });

  test("options, their values and words of arguments are completed", () => {
    expect(offered("session-service keys rotate --f").toSorted()).toEqual(["--file", "--force"]);
    expect(offered("session-service keys create --alg ").toSorted()).toEqual(["ES256", "EdDSA", "RS256"]);
    expect(offered("session-service keys rotate ")).toEqual(expect.arrayContaining(["signing", "mac"]));
    expect(offered("session-service sessions list --subject ")).toEqual([]);
  });

  test("files are completed where one is wanted, and nowhere else", () => {
    const files = (line: string) => offered(line).some((word) => word.replaceAll("\\", "").includes("a file"));
    expect(files("session-service keys list --file ")).toBe(true);
    expect(files("session-service backup ")).toBe(true);
    expect(files("session-service keys ")).toBe(false);
  });
});
