/** `fault`: users cannot use the service as it is configured. `warning`: it works, but a setting is unwise or has no effect. */
export type ConfigFinding = {
  readonly about: "configuration" | "browsers";
  readonly level: "warning" | "fault";
  /** A sentence without a full stop. */
  readonly found: string;
  readonly remedy: string;
};

/** Returns the makers of findings about one part of the configuration. */
export function findingsAbout(about: ConfigFinding["about"]) {
  const findingOf =
    (level: ConfigFinding["level"]) =>
    (found: string, remedy: string): ConfigFinding => ({ about, level, found, remedy });
  return { fault: findingOf("fault"), warning: findingOf("warning") };
}
