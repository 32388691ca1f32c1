/* table: functions with their values, one row each; only visible rows are in the document. */
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Palette } from "../../model/colours/colour.ts";
import type { Pattern } from "../../model/search/regex.ts";
import { filterByName } from "../../model/search/search.ts";
import type { Bound, Flame } from "../../model/tree/flame.ts";
import type { FrameColours } from "../../model/colours/frame_colours.ts";
import {
  frameTitle,
  sortFunctions,
  type FunctionRow,
  type Sort,
  type SortColumn,
} from "../../model/functions/functions.ts";
import {
  changeOf,
  formatChange,
  formatExact,
  formatPercent,
  formatSigned,
  formatValue,
} from "../../model/text/units.ts";
import { shownName } from "../../model/text/visible_text_model.ts";
import { Icon } from "../../ui/icons.tsx";
import { Menu, ProblemView } from "../../ui/kit.tsx";
import type { PaneContext, PaneProps } from "../panes.tsx";
import { fitterFor, type LabelFitter } from "../icicle/label_fitter.ts";
import { listScroll, listSpace } from "../icicle/rows.ts";

const rowPx = 30;
const spareRows = 8;

interface TableProps {
  flame: Flame;
  rows: readonly FunctionRow[];
  isAwaitingRows: boolean;
  bound: Bound;
  colours: FrameColours;
  unit: string;
  palette: Palette;
  pattern: Pattern | null;
  sort: Sort | null;
  chosen: string;
  /** The function under the pointer, in any view. */
  hovered: string;
  /** The columns besides the name; empty is the default. */
  columns: readonly SortColumn[];
  onColumns: (columns: SortColumn[]) => void;
  onHover: (name: string) => void;
  onSort: (sort: Sort) => void;
  onChoose: (name: string) => void;
  onMenu: (name: string, x: number, y: number) => void;
  placed: PaneContext["placed"];
}

interface Column {
  label: string;
  hint: string;
  className: string;
  Cell: (props: CellProps) => JSX.Element;
}

interface CellProps {
  row: FunctionRow;
  bound: Bound;
  flame: Flame;
  unit: string;
  placed: PaneContext["placed"];
}

const after = (label: string, className: string): Column => ({
  label,
  hint: "in the function and its callees",
  className: `value ${className}`,
  Cell: ({ row, flame, unit, bound }) => (
    <ValueCell value={row.cum} total={flame.total} {...{ unit, bound }} tone={className} />
  ),
});
const own = (label: string): Column => ({
  label,
  hint: "in the function itself",
  className: "value",
  Cell: ({ row, flame, unit, bound }) => (
    <ValueCell value={row.flat} total={flame.total} {...{ unit, bound }} />
  ),
});
const place = (
  label: string,
  hint: string,
  textOf: (row: FunctionRow) => string,
  isSource: boolean,
): Column => ({
  label,
  hint,
  className: "place",
  Cell: ({ row, placed }) => (
    <div class="cell place" role="cell" title={textOf(row)}>
      <bdi>{isSource && row.file ? placed(row.frame, row.file) : textOf(row)}</bdi>
    </div>
  ),
});
const file = place("File", "by the file of its code", (row) => row.file, true);
const binary = place("Binary", "by the program or library", (row) => row.binary, false);

/** The table creates its cells, which are buttons. */
const nameColumn: Column = {
  label: "Function",
  hint: "by name",
  className: "name",
  Cell: () => <></>,
};

type Columns = Partial<Record<SortColumn, Column>>;
const plainColumns: Columns = { flat: own("Self"), cum: after("Total", "cum"), file, binary };
const diffColumns: Columns = {
  before: {
    label: "Before",
    hint: "total on the left side",
    className: "value before",
    Cell: ({ row, flame, unit, bound }) => (
      <ValueCell value={row.baseCum} total={flame.baseTotal} {...{ unit, bound }} tone="before" />
    ),
  },
  cum: { ...after("After", "after"), hint: "total on the right side" },
  change: {
    label: "Change",
    hint: "of the total",
    className: "value",
    Cell: ({ row, unit, bound }) => (
      <ChangeCell before={row.baseCum} after={row.cum} {...{ unit, bound }} />
    ),
  },
  flatbefore: {
    label: "Self before",
    hint: "in the function itself, on the left side",
    className: "value before",
    Cell: ({ row, flame, unit, bound }) => (
      <ValueCell value={row.baseFlat} total={flame.baseTotal} {...{ unit, bound }} tone="before" />
    ),
  },
  flat: { ...own("Self after"), hint: "in the function itself, on the right side" },
  flatchange: {
    label: "Self change",
    hint: "in the function itself",
    className: "value",
    Cell: ({ row, unit, bound }) => (
      <ChangeCell before={row.baseFlat} after={row.flat} {...{ unit, bound }} />
    ),
  },
  file,
  binary,
};
/** Numbers, then the name, then the source location. */
const inOrder = (ids: readonly SortColumn[]): SortColumn[] => [
  ...ids.filter((id) => !isText(id)),
  "name",
  ...ids.filter(isText),
];
/** When grouped by line, a name alone is ambiguous. */
const defaultColumns = ({ isDiff, metadata }: Flame): SortColumn[] =>
  isDiff
    ? ["before", "cum", "change"]
    : metadata.group_by === "line"
      ? ["flat", "cum", "file"]
      : ["flat", "cum"];

const defaultSort = (isDiff: boolean): Sort => ({
  column: isDiff ? "change" : "flat",
  descending: true,
});

interface HeaderProps {
  columns: [SortColumn, Omit<Column, "Cell">][];
  sort: Sort;
  onSort: (sort: Sort) => void;
}

/** Whether a column contains text. Text sorts ascending on the first press, numbers descending. */
const isText = (id: SortColumn) => id === "name" || id === "file" || id === "binary";

function Header({ columns, sort, onSort }: HeaderProps) {
  return (
    <div class="row head" role="row" aria-rowindex={1}>
      {columns.map(([id, column]) => {
        const isSorted = sort.column === id;
        const order = isSorted ? (sort.descending ? "descending" : "ascending") : "none";
        return (
          <div class={`cell ${column.className}`} role="columnheader" aria-sort={order} key={id}>
            <button
              type="button"
              title={column.hint}
              onClick={() =>
                onSort({ column: id, descending: isSorted ? !sort.descending : !isText(id) })
              }
            >
              {column.label}
              <span class="sort-mark">
                {isSorted && <Icon name={sort.descending ? "down" : "up"} />}
              </span>
            </button>
          </div>
        );
      })}
    </div>
  );
}

/** Chooses the columns; they are shown in a fixed order. */
function ColumnMenu({
  known,
  shown,
  onChange,
}: {
  known: Columns;
  shown: readonly SortColumn[];
  onChange: (columns: SortColumn[]) => void;
}) {
  const ids = Object.keys(known) as SortColumn[];
  const toggle = (id: SortColumn) =>
    onChange(ids.filter((other) => shown.includes(other) !== (other === id)));
  return (
    <Menu label="Columns" icon="columns" class="column-menu">
      {ids.map((id) => (
        <label key={id} class="menu-check">
          <input type="checkbox" checked={shown.includes(id)} onChange={() => toggle(id)} />{" "}
          {known[id]!.label}
        </label>
      ))}
    </Menu>
  );
}

interface ValueProps {
  value: number;
  total: number;
  unit: string;
  bound: Bound;
  tone?: string;
}

export function ValueCell({ value, total, unit, bound, tone = "" }: ValueProps) {
  const share = total ? Math.min(1, Math.max(0, value / total)) : 0;
  return (
    <div class={`cell value ${tone}`} role="cell" title={bound + formatExact(value, unit)}>
      <span class="amount">
        {bound}
        {formatValue(value, unit)}
      </span>
      <span class="percent">{formatPercent(value, total)}</span>
      <span class="bar" style={{ transform: `scaleX(${share.toFixed(4)})` }} />
    </div>
  );
}

/** If the numbers are lower bounds, the change is approximate. */
export function ChangeCell({
  before,
  after,
  unit,
  bound,
}: {
  before: number;
  after: number;
  unit: string;
  bound: Bound;
}) {
  const delta = changeOf(before, after);
  const tone = delta > 0 ? "more" : delta < 0 ? "less" : "";
  return (
    <div class={`cell value change ${tone}`} role="cell" title={formatExact(delta, unit)}>
      <span class="amount">
        {bound && "≈ "}
        {formatSigned(delta, unit)}
      </span>
      <span class="percent">{formatChange(before, after)}</span>
    </div>
  );
}

/** The number of rows that a key moves by; page is that of a page key. */
const stepOf = (key: string, page: number): number | undefined =>
  ({ ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity })[
    key
  ];

/**
 * The visible rows, their position and the width for names, kept up to date; pass `columns` so that
 * they are measured again when other columns are shown. The rows are one tab stop: `press` moves
 * the focus from row to row, and from the scroller into the rows.
 */
export function useSeenRows(count: number, columns = "") {
  const scroller = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ first: 0, last: 40, shift: 0, nameWidth: 0 });
  const latest = useRef(count);
  latest.current = count;
  /** The row that gets the focus once it is in the document; -1: none. */
  const wanted = useRef(-1);
  const update = () => {
    const element = scroller.current;
    if (!element) return;
    const { top, shift } = listSpace(
      latest.current * rowPx,
      element.clientHeight,
      element.scrollTop,
    );
    const first = Math.max(0, Math.floor(top / rowPx) - spareRows);
    const last = Math.ceil((top + element.clientHeight) / rowPx) + spareRows;
    const nameWidth = element.querySelector(".cell.name")?.clientWidth ?? 0;
    setSeen((old) =>
      old.first === first && old.last === last && old.shift === shift && old.nameWidth === nameWidth
        ? old
        : { first, last, shift, nameWidth },
    );
  };
  const focusWanted = () => {
    const name = scroller.current?.querySelector<HTMLElement>(
      `[aria-rowindex="${wanted.current + 2}"] > .name > [tabindex]`,
    );
    if (!name) return;
    wanted.current = -1;
    name.focus({ preventScroll: true });
  };
  const press = (event: KeyboardEvent) => {
    const element = scroller.current!;
    const { clientHeight, scrollTop } = element;
    const whole = count * rowPx;
    const { top } = listSpace(whole, clientHeight, scrollTop);
    const step = stepOf(event.key, Math.max(1, Math.floor(clientHeight / rowPx) - 1));
    if (!step || !count || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const index = (event.target as Element).closest(".row")?.getAttribute("aria-rowindex");
    const from = index ? Number(index) - 2 : Math.ceil(top / rowPx) - (step === 1 ? 1 : 0);
    const row = Math.min(count - 1, Math.max(0, from + step));
    const edge = Math.min(row * rowPx, Math.max(top, (row + 1) * rowPx - clientHeight));
    if (edge !== top) element.scrollTop = listScroll(whole, clientHeight, edge);
    wanted.current = row;
    update();
    focusWanted();
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(update);
    observer.observe(scroller.current!);
    // When the table appears beside another view, its width is set before its columns are laid out.
    for (const head of scroller.current!.parentElement!.querySelectorAll(".head > .name"))
      observer.observe(head);
    return () => observer.disconnect();
  }, [columns]);
  useLayoutEffect(update, [count, columns]);
  useLayoutEffect(focusWanted);
  return {
    /** Properties of the scroller. */
    list: { ref: scroller, onScroll: update, onKeyDown: press, tabIndex: 0 },
    scroller,
    nameWidth: seen.nameWidth,
    first: Math.min(seen.first, Math.max(0, count - 1)),
    last: Math.min(count, seen.last),
    spacePx: listSpace(count * rowPx, 0, 0).spacePx,
    /** The upper edge of a row. */
    topOf: (row: number) => row * rowPx + seen.shift,
  };
}

/** Chosen columns may need more space than there is; then the table scrolls sideways. */
function widthsOf(columns: [SortColumn, Column][]) {
  const widthOf = ([id]: [SortColumn, unknown]) =>
    id === "name" ? "minmax(9rem, 2fr)" : isText(id) ? "minmax(7rem, 1fr)" : "var(--value)";
  return {
    "--columns": columns.map(widthOf).join(" "),
    "--least": `${columns.reduce((sum, [id]) => sum + (isText(id) ? 7 : 9), 4)}rem`,
  };
}

interface FunctionNameProps extends Pick<TableProps, "flame" | "colours" | "palette" | "onChoose"> {
  row: FunctionRow;
  isChosen: boolean;
  /** The name as it fits. */
  shown: string;
}

function FunctionName(props: FunctionNameProps) {
  const { row, flame, colours, palette, isChosen, shown, onChoose } = props;
  const whole = shownName(row.name);
  // The accessible name of a button must contain its visible text; otherwise the whole name becomes
  // its description.
  const spoken = { [whole.includes(shown) ? "aria-label" : "title"]: whole };
  return (
    <div class="cell name" role="cell" title={[whole, row.file].filter(Boolean).join("\n")}>
      {!flame.isDiff && (
        <span
          class="swatch"
          style={{
            background: row.frame < 0 ? "transparent" : palette.fills[colours.fill(row.frame)],
          }}
        />
      )}
      <button
        type="button"
        tabIndex={-1}
        aria-pressed={isChosen}
        {...spoken}
        onClick={(event) => {
          event.stopPropagation();
          onChoose(row.name);
        }}
      >
        <bdi>{shown}</bdi>
      </button>
    </div>
  );
}

function Table(props: TableProps) {
  const { flame, rows, bound, unit, pattern, chosen, colours, palette, placed } = props;
  const sort = props.sort ?? defaultSort(flame.isDiff);
  const known = flame.isDiff ? diffColumns : plainColumns;
  const wanted = props.columns.filter((id) => known[id]);
  const ids = wanted.length ? wanted : defaultColumns(flame);
  const isCustom = wanted.length > 0 || ids.includes("file");
  const columns = inOrder(ids).map((id): [SortColumn, Column] => [
    id,
    id === "name" ? { ...nameColumn, label: frameTitle(flame) } : known[id]!,
  ]);
  // Sorting costs more than filtering, so typing a search does not sort again.
  const all = useMemo(() => sortFunctions(rows, sort), [rows, sort.column, sort.descending]);
  const sorted = useMemo(() => (pattern ? filterByName(all, pattern) : all), [all, pattern]);
  const { list, scroller, nameWidth, first, last, spacePx, topOf } = useSeenRows(
    sorted.length,
    ids.join(),
  );
  const fitter = useRef<LabelFitter | null>(null);
  const shown = (name: string) => {
    if (nameWidth === 0) return shownName(name);
    fitter.current ??= scroller.current && fitterFor(scroller.current);
    return fitter.current?.fit(name, nameWidth - (flame.isDiff ? 4 : 24)) || shownName(name);
  };
  return (
    <div class="table-frame">
      <div
        class={`table ${flame.isDiff ? "diff" : ""} ${isCustom ? "custom" : ""}`}
        style={isCustom ? widthsOf(columns) : undefined}
        role="table"
        aria-label="Functions"
        aria-rowcount={sorted.length + 1}
      >
        <div role="rowgroup">
          <Header columns={columns} sort={sort} onSort={props.onSort} />
        </div>
        <div
          class="rows"
          role="rowgroup"
          aria-label="Rows. Arrow keys move between them."
          {...list}
        >
          <div class="rows-space" style={{ height: `${spacePx}px` }} role="presentation">
            {sorted.slice(first, last).map((row, i) => (
              <div
                class={
                  `row ${row.name === chosen ? "chosen" : ""} ` +
                  (row.name === props.hovered ? "hovered" : "")
                }
                role="row"
                data-function={row.name}
                aria-rowindex={first + i + 2}
                key={first + i}
                style={{ transform: `translateY(${topOf(first + i)}px)` }}
                onClick={() => props.onChoose(row.name)}
                onPointerEnter={() => props.onHover(row.name)}
                onPointerLeave={() => props.onHover("")}
                onContextMenu={(event) => {
                  event.preventDefault();
                  props.onMenu(row.name, event.clientX, event.clientY);
                }}
              >
                {columns.map(([id, { Cell }]) =>
                  id === "name" ? (
                    <FunctionName
                      key="name"
                      {...{ row, flame, colours, palette }}
                      isChosen={row.name === chosen}
                      shown={shown(row.name)}
                      onChoose={props.onChoose}
                    />
                  ) : (
                    <Cell key={id} {...{ row, flame, unit, bound, placed }} />
                  ),
                )}
              </div>
            ))}
          </div>
          {sorted.length === 0 && (
            <p class="nothing">
              {props.isAwaitingRows
                ? "Counting the table."
                : pattern
                  ? "Nothing matches the search."
                  : "No functions."}
            </p>
          )}
        </div>
      </div>
      <ColumnMenu known={known} shown={ids} onChange={props.onColumns} />
    </div>
  );
}

export function TablePane({ context }: PaneProps) {
  const {
    state,
    flame,
    rows,
    isAwaitingRows,
    rowBound,
    rowsFailed,
    colours,
    unit,
    palette,
    pattern,
    hovered,
    onHoverName,
    update,
    mark,
    openMenu,
    placed,
  } = context;
  if (rowsFailed) return <ProblemView {...rowsFailed} />;
  return (
    <Table
      {...{ flame, rows, isAwaitingRows, colours, unit, palette, pattern, hovered, placed }}
      bound={rowBound}
      columns={state.columns}
      onColumns={(columns) => update({ columns })}
      onHover={onHoverName}
      sort={state.sort}
      chosen={state.marked}
      onSort={(sort) => update({ sort })}
      onChoose={mark}
      onMenu={openMenu}
    />
  );
}
