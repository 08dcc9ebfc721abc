import { InvalidArgumentError, Option } from "commander";
import { DAY_MS, duration } from "../../config/values.ts";

export const retryOption = () =>
  new Option(
    "--retry-for <duration>",
    "how long to try again while the service is unavailable: 10s, 5m; 0 is not at all",
  )
    .default(120_000, "2m")
    .argParser((text) => {
      const parsed = duration(0, DAY_MS)(text);
      if (parsed.ok) return parsed.value;
      throw new InvalidArgumentError(`It ${parsed.reason}.`);
    });
