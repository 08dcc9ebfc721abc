/** What to look for: a user, a session, or filters over the newest sessions. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";

export type Filter = {
  readonly subjectPrefix: string;
  readonly clientId: string;
  readonly device: string;
  readonly ipAddress: string;
  readonly age: Age;
};
type Age = keyof typeof AGES;

const HOUR = 3_600_000;
const AGES = {
  any: "any time",
  hour: "the last hour",
  day: "the last day",
  week: "the last 7 days",
  older: "more than 30 days ago",
} as const;

export const EMPTY_FILTER: Filter = { subjectPrefix: "", clientId: "", device: "", ipAddress: "", age: "any" };

/** The fields of ListSessions. */
export function requestOf({ age, ...filter }: Filter) {
  const before = (ms: number) => timestampFromMs(Date.now() - ms);
  switch (age) {
    case "any":
      return filter;
    case "hour":
      return { ...filter, createdAfter: before(HOUR) };
    case "day":
      return { ...filter, createdAfter: before(24 * HOUR) };
    case "week":
      return { ...filter, createdAfter: before(168 * HOUR) };
    case "older":
      return { ...filter, createdBefore: before(720 * HOUR) };
  }
}

/** Where the sessions of a user are. */
export const addressOf = (subject: string) => `#/sessions?${new URLSearchParams({ subject })}`;

type Props = { readonly wanted: string; readonly filter: Filter; readonly onFilter: (filter: Filter) => void };

export function SearchForm({ wanted: initial, filter, onFilter }: Props) {
  const [wanted, setWanted] = useState(initial);
  const [draft, setDraft] = useState(filter);
  const set = (change: Partial<Filter>) => setDraft({ ...draft, ...change });
  const isFiltered = JSON.stringify(filter) !== JSON.stringify(EMPTY_FILTER);
  function submit(event: Event) {
    event.preventDefault();
    onFilter(draft);
    const text = wanted.trim();
    location.hash = text === "" ? "#/sessions" : addressOf(text);
  }
  return (
    <form class="search" onSubmit={submit}>
      <div class="find">
        <label for="subject" class="hidden">
          User (subject), or session id
        </label>
        <input
          id="subject"
          type="search"
          placeholder="Find a user by subject, or a session by id"
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
            User begins with
            <input
              value={draft.subjectPrefix}
              placeholder="begin of the subject"
              maxLength={255}
              onInput={(event) => set({ subjectPrefix: event.currentTarget.value })}
            />
          </label>
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
            Place
            <input
              value={draft.ipAddress}
              placeholder="192.0.2.17, or 192.0.2."
              maxLength={64}
              onInput={(event) => set({ ipAddress: event.currentTarget.value })}
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
