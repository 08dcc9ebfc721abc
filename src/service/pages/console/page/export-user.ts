/** Saves what is stored of a user as a file, the same document as `session-service subjects export`. */
import { create, toJson } from "@bufbuild/protobuf";
import { ExportSubjectResponseSchema } from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { sessions as api } from "./api.ts";

/** @throws ConnectError */
export async function exportUser(subject: string): Promise<void> {
  const all = create(ExportSubjectResponseSchema);
  let pageToken = "";
  do {
    const page = await api.exportSubject({ subject, pageToken });
    all.sessions.push(...page.sessions);
    all.events.push(...page.events);
    all.signals.push(...page.signals);
    all.subscriptionIds.push(...page.subscriptionIds);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  save("user.json", JSON.stringify(toJson(ExportSubjectResponseSchema, all), undefined, 2));
}

/** Lets the browser save a text. The name of the file does not have the subject, which may be no file name. */
function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
