import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type AdminApi, callOptions, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CommandError, usageError } from "../exit.ts";
import { confirm, readLines } from "../input.ts";
import { forEach } from "./each.ts";

export type EndAllOptions = ConnectionOptions & {
  readonly subject?: string;
  readonly except?: string;
  readonly subjectsFrom?: string;
  readonly everyone?: boolean;
  readonly createdBefore?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
};

export async function endAllSessions(context: Context, options: EndAllOptions): Promise<void> {
  checkOptions(options);
  if (options.everyone) return endEverybodys(context, options);
  // Read before the credential, which may be wanted from standard input too: checkOptions has refused that.
  const subjects = options.subjectsFrom === undefined ? [options.subject ?? ""] : readLines(options.subjectsFrom);
  const api = openAdminApi(context.env, options);
  const counts = await forEach("ending", subjects, (subject) => endOf(api, subject, options.except ?? ""));
  const endedCount = counts.reduce((sum, ended) => sum + ended, 0);
  if (options.json) context.print(JSON.stringify({ subjects: subjects.length, endedCount }));
  else context.print(`ended ${countOf(endedCount, "session")} of ${countOf(subjects.length, "user")}`);
}

const countOf = (count: number, thing: string) => `${count} ${thing}${count === 1 ? "" : "s"}`;

function checkOptions({ subject, subjectsFrom, everyone, except, createdBefore, yes, tokenFile }: EndAllOptions): void {
  if ([subject, subjectsFrom, everyone].filter((given) => given !== undefined).length !== 1) {
    throw usageError("give exactly one of --subject, --subjects-from and --everyone");
  }
  if (except !== undefined && subject === undefined) throw usageError("--except needs --subject");
  if (createdBefore !== undefined && !everyone) throw usageError("--created-before needs --everyone");
  if (yes && !everyone) throw usageError("--yes needs --everyone");
  if (subjectsFrom === "-" && tokenFile === "-") {
    throw usageError("standard input has the subjects: give the token by another way");
  }
}

async function endOf(api: AdminApi, subject: string, exceptSessionId: string): Promise<number> {
  try {
    return (await api.client.revokeSubjectSessions({ subject, exceptSessionId }, callOptions())).revokedCount;
  } catch (error) {
    throw api.failure(error);
  }
}

async function endEverybodys(context: Context, options: EndAllOptions): Promise<void> {
  const api = openAdminApi(context.env, options);
  const which =
    options.createdBefore === undefined ? "every session" : `every session created before ${options.createdBefore}`;
  if (!options.yes && !(await confirm(`End ${which} at ${api.url}? Their users must log in again.`))) {
    throw new CommandError(`nothing was ended: confirm with --yes that ${which} at ${api.url} is to end`);
  }
  const issuedBefore =
    options.createdBefore === undefined ? {} : { issuedBefore: timestampFromDate(new Date(options.createdBefore)) };
  const { revokedUntilTime } = await api.client.revokeAllSessions(issuedBefore, callOptions()).catch((error) => {
    throw api.failure(error);
  });
  const until = revokedUntilTime === undefined ? "now" : timestampDate(revokedUntilTime).toISOString();
  if (options.json) context.print(JSON.stringify({ endedUntilTime: until }));
  else context.print(`ended every session that was created until ${until}`);
}
