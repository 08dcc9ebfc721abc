/** What to look for: a user, or filters over the newest sessions. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";

export type Filter = { readonly clientId: string; readonly device: string; readonly age: Age };
type Age = keyof typeof AGES;

const HOUR = 3_600_000;
const AGES = {
  any: "any time",
  hour: "the last hour",
  day: "the last day",
  week: "the last 7 days",
  older: "more than 30 days ago",
} as const;

export const EMPTY_FILTER: Filter = { clientId: "", device: "", age: "any" };

/** The fields of ListSessions. */
export function requestOf({ clientId, device, age }: Filter) {
  const before = (ms: number) => timestampFromMs(Date.now() - ms);
  switch (age) {
    case "any":
      return { clientId, device };
    case "hour":
      return { clientId, device, createdAfter: before(HOUR) };
    case "day":
      return { clientId, device, createdAfter: before(24 * HOUR) };
    case "week":
      return { clientId, device, createdAfter: before(168 * HOUR) };
    case "older":
      return { clientId, device, createdBefore: before(720 * HOUR) };
  }
}

type Props = { readonly subject: string; readonly filter: Filter; readonly onFilter: (filter: Filter) => void };

export function SearchForm({ subject, filter, onFilter }: Props) {
  const [wanted, setWanted] = useState(subject);
  const [draft, setDraft] = useState(filter);
  const set = (change: Partial<Filter>) => setDraft({ ...draft, ...change });
  const isFiltered = JSON.stringify(filter) !== JSON.stringify(EMPTY_FILTER);
  function submit(event: Event) {
    event.preventDefault();
    onFilter(draft);
    const subjectWanted = wanted.trim();
    location.hash =
      subjectWanted === "" ? "#/sessions" : `#/sessions?${new URLSearchParams({ subject: subjectWanted })}`;
  }
  return (
    <form class="search" onSubmit={submit}>
      <div class="find">
        <label for="subject" class="hidden">
          User (subject)
        </label>
        <input
          id="subject"
          type="search"
          placeholder="Find a user by subject"
          value={wanted}
          autocomplete="off"
          spellcheck={false}
          maxLength={255}
          onInput={(event) => setWanted(event.currentTarget.value)}
        />
        <button type="submit" class="primary">
          Find
        </button>
      </div>
      <details open={isFiltered}>
        <summary>Filters</summary>
        <div class="filters">
          <label>
            Application
            <input
              value={draft.clientId}
              placeholder="client_id"
              maxLength={255}
              onInput={(event) => set({ clientId: event.currentTarget.value })}
            />
          </label>
          <label>
            Device
            <input
              value={draft.device}
              placeholder="part of the user agent"
              maxLength={128}
              onInput={(event) => set({ device: event.currentTarget.value })}
            />
          </label>
          <label>
            Created
            <select value={draft.age} onChange={(event) => set({ age: event.currentTarget.value as Age })}>
              {Object.entries(AGES).map(([age, text]) => (
                <option key={age} value={age}>
                  {text}
                </option>
              ))}
            </select>
          </label>
        </div>
      </details>
    </form>
  );
}
