/** Reads and changes a changelog in the form of Keep a Changelog: https://keepachangelog.com/en/1.1.0/. */

/** Matches the line of a link that compares versions. */
const LINK = /^\[[^\]]+\]: \S+\n/gm;
const UNRELEASED = "## [Unreleased]";

/**
 * Gives the unreleased section a version and a date, and adds a new, empty section above it.
 * @param repository the URL of the repository, for the links that compare versions
 * @throws Error if nothing is unreleased, or the version has a section already
 */
export function cutRelease(
  changelog: string,
  { version, date, repository }: { readonly version: string; readonly date: string; readonly repository: string },
): string {
  if (changelog.includes(`\n## [${version}]`)) throw new Error(`the changelog has a section ${version} already`);
  const [head, rest] = changelog.split(`${UNRELEASED}\n`);
  if (head === undefined || rest === undefined) throw new Error(`the changelog has no section ${UNRELEASED}`);
  const [entries = ""] = rest.split(/^## \[/m);
  if (!/^- /m.test(entries)) throw new Error("the changelog has nothing unreleased");
  const dated = `${head}${UNRELEASED}\n\n## [${version}] - ${date}\n${rest}`;
  const text = `${dated.replace(LINK, "").trimEnd()}\n`;
  return `${text}\n${compareLinks(text, repository)}`;
}

/** Returns what a changelog says of a version, without its heading. */
export function sectionOf(changelog: string, version: string): string {
  const [, section = ""] = changelog.split(`\n## [${version}]`);
  return `${section.split("\n## ")[0]?.replace(/^.*\n/, "").replace(LINK, "").trim()}\n`;
}

/** Returns the versions of a changelog, the newest first. */
export const versionsOf = (changelog: string): string[] =>
  [...changelog.matchAll(/^## \[(\d[^\]]*)\]/gm)].map(([, version = ""]) => version);

function compareLinks(changelog: string, repository: string): string {
  const versions = versionsOf(changelog);
  const links = versions.map((version, i) => {
    const before = versions[i + 1];
    const path = before === undefined ? `releases/tag/v${version}` : `compare/v${before}...v${version}`;
    return `[${version}]: ${repository}/${path}\n`;
  });
  return `[Unreleased]: ${repository}/compare/v${versions[0]}...HEAD\n${links.join("")}`;
}
