/** The search form: for a user, for a session, or for the newest sessions by filters. */
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
  any: { text: "any time", ms: undefined },
  hour: { text: "the last hour", ms: HOUR },
  day: { text: "the last day", ms: 24 * HOUR },
  week: { text: "the last 7 days", ms: 168 * HOUR },
  older: { text: "more than 30 days ago", ms: 720 * HOUR },
} as const;

export const EMPTY_FILTER: Filter = { subjectPrefix: "", clientId: "", device: "", ipAddress: "", age: "any" };

export function requestOf({ age, ...filter }: Filter) {
  const { ms } = AGES[age];
  if (ms === undefined) return filter;
  return { ...filter, [age === "older" ? "createdBefore" : "createdAfter"]: timestampFromMs(Date.now() - ms) };
}

/** Returns the path of the page with a user's sessions. */
export const addressOf = (subject: string) => `#/sessions?${new URLSearchParams({ subject })}`;

type Props = { readonly wanted: string; readonly filter: Filter; readonly onFilter: (filter: Filter) => void };

export function SearchForm({ wanted: initial, filter, onFilter }: Props) {
  const [wanted, setWanted] = useState(initial);
  const [draft, setDraft] = useState(filter);
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
        <Filters draft={draft} onChange={(change) => setDraft({ ...draft, ...change })} />
      </details>
    </form>
  );
}

type FiltersProps = { readonly draft: Filter; readonly onChange: (change: Partial<Filter>) => void };

function Filters({ draft, onChange }: FiltersProps) {
  const text = (label: string, name: Exclude<keyof Filter, "age">, placeholder: string, maxLength: number) => (
    <label>
      {label}
      <input
        value={draft[name]}
        placeholder={placeholder}
        maxLength={maxLength}
        onInput={(event) => onChange({ [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <div class="filters">
      {text("User begins with", "subjectPrefix", "begin of the subject", 255)}
      {text("Application", "clientId", "client_id", 255)}
      {text("Device", "device", "part of the user agent", 128)}
      {text("Place", "ipAddress", "192.0.2.17, or 192.0.2.", 64)}
      <label>
        Created
        <select value={draft.age} onChange={(event) => onChange({ age: event.currentTarget.value as Age })}>
          {Object.entries(AGES).map(([age, { text }]) => (
            <option key={age} value={age}>
              {text}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
