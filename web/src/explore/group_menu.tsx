/* group_menu: chooses the labels that divide the graph into lines. */
import { listLabelNames } from "../api/explore_api.ts";
import type { QueryRequest } from "../model/continuous/explore_state.ts";
import { joinQuery, splitQuery } from "../model/continuous/selector.ts";
import { ErrorLine, Loading, Menu, Name } from "../ui/kit.tsx";
import { useLoaded, type Loaded } from "./use_selection.ts";

/** The label names of the series of that type in the window. */
export function useLabelNames(window: QueryRequest): Loaded<string[]> {
  const { type } = splitQuery(window.query);
  return useLoaded(type && `${type}\n${window.from}\n${window.to}`, (signal) =>
    listLabelNames(joinQuery(type, ""), window, signal),
  );
}

function Names({
  names,
  by,
  onChange,
}: {
  names: Loaded<string[]>;
  by: readonly string[];
  onChange: (by: string[]) => void;
}) {
  if (names.problem) return <ErrorLine error={names.problem} />;
  if (!names.value) return <Loading label="Loading labels" />;
  const all = [...new Set([...names.value, ...by])];
  return (
    <fieldset class="group-names">
      <legend>Group by</legend>
      {all.length === 0 && <p class="hint">These profiles have no labels.</p>}
      {all.map((name) => (
        <label class="check" key={name}>
          <input
            type="checkbox"
            checked={by.includes(name)}
            onChange={(event) =>
              onChange(
                event.currentTarget.checked ? [...by, name] : by.filter((one) => one !== name),
              )
            }
          />
          <Name text={name} />
        </label>
      ))}
    </fieldset>
  );
}

export const GroupMenu = (props: Parameters<typeof Names>[0]) => (
  <Menu
    label={`Group by: ${props.by.length ? props.by.join(", ") : "none"}`}
    icon="labels"
    class="group-menu"
    isLazy
  >
    <Names {...props} />
  </Menu>
);
