/*
 * table: functions with what they hold, one row each, only the seen rows in the document.
 */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { makePalette } from "../model/colour.ts";
import { filterByName } from "../model/search.ts";
import type { Flame } from "../model/flame.ts";
import type { FrameColours } from "../model/frame_colours.ts";
import { sortFunctions, type FunctionRow, type Sort, type SortColumn } from "../model/functions.ts";
import { formatChange, formatExact, formatPercent, formatSigned, formatValue } from "../model/units.ts";
import { Icon } from "../ui/icons.tsx";
import { fitterFor, type LabelFitter } from "./fitter.ts";

const rowPx = 30;
const spareRows = 8;

export interface TableProps {
  flame: Flame;
  rows: readonly FunctionRow[];
  colours: FrameColours;
  unit: string;
  isDark: boolean;
  pattern: RegExp | null;
  sort: Sort | null;
  chosen: string;
  onSort: (sort: Sort) => void;
  onChoose: (name: string) => void;
  onMenu: (name: string, x: number, y: number) => void;
}

interface Column {
  id: SortColumn;
  label: string;
  hint: string;
  className: string;
}

const plainColumns: Column[] = [
  { id: "flat", label: "Self", hint: "in the function itself", className: "value" },
  { id: "cum", label: "Total", hint: "in the function and what it calls", className: "value" },
  { id: "name", label: "Function", hint: "by name", className: "name" },
];
const diffColumns: Column[] = [
  { id: "before", label: "Before", hint: "total on the left side", className: "value before" },
  { id: "cum", label: "After", hint: "total on the right side", className: "value after" },
  { id: "change", label: "Change", hint: "of the total", className: "value" },
  { id: "name", label: "Function", hint: "by name", className: "name" },
];

export const defaultSort = (isDiff: boolean): Sort => ({ column: isDiff ? "change" : "flat", descending: true });

function Header({ columns, sort, onSort }: { columns: Column[]; sort: Sort; onSort: (sort: Sort) => void }) {
  return (
    <div class="row head" role="row" aria-rowindex={1}>
      {columns.map((column) => {
        const isSorted = sort.column === column.id;
        const order = isSorted ? (sort.descending ? "descending" : "ascending") : "none";
        return (
          <div class={`cell ${column.className}`} role="columnheader" aria-sort={order} key={column.id}>
            <button
              type="button"
              title={column.hint}
              onClick={() => onSort({ column: column.id, descending: isSorted ? !sort.descending : column.id !== "name" })}
            >
              {column.label}
              <span class="sort-mark">{isSorted && <Icon name={sort.descending ? "down" : "up"} />}</span>
            </button>
          </div>
        );
      })}
    </div>
  );
}

function ValueCell({ value, total, unit, tone = "" }: { value: number; total: number; unit: string; tone?: string }) {
  const share = total ? Math.min(1, Math.max(0, value / total)) : 0;
  return (
    <div class={`cell value ${tone}`} role="cell" title={formatExact(value, unit)}>
      <span class="amount">{formatValue(value, unit)}</span>
      <span class="percent">{formatPercent(value, total)}</span>
      <span class="bar" style={{ transform: `scaleX(${share.toFixed(4)})` }} />
    </div>
  );
}

function ChangeCell({ row, unit }: { row: FunctionRow; unit: string }) {
  const delta = row.cum - row.baseCum;
  const tone = delta > 0 ? "more" : delta < 0 ? "less" : "";
  return (
    <div class={`cell value change ${tone}`} role="cell" title={formatExact(delta, unit)}>
      <span class="amount">{formatSigned(delta, unit)}</span>
      <span class="percent">{formatChange(row.baseCum, row.cum)}</span>
    </div>
  );
}

/** Which rows are seen and how wide their names may be, kept up to date. */
function useSeenRows(count: number) {
  const scroller = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ first: 0, last: 40, nameWidth: 0 });
  const update = () => {
    const element = scroller.current;
    if (!element) return;
    const first = Math.max(0, Math.floor(element.scrollTop / rowPx) - spareRows);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / rowPx) + spareRows;
    const nameWidth = element.querySelector(".cell.name")?.clientWidth ?? 0;
    setSeen((old) => (old.first === first && old.last === last && old.nameWidth === nameWidth ? old : { first, last, nameWidth }));
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(update);
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(update, [count > 0]);
  return { scroller, update, nameWidth: seen.nameWidth, first: Math.min(seen.first, Math.max(0, count - 1)), last: Math.min(count, seen.last) };
}

export function Table(props: TableProps) {
  const { flame, rows, unit, pattern, chosen, colours, isDark } = props;
  const sort = props.sort ?? defaultSort(flame.isDiff);
  const columns = flame.isDiff ? diffColumns : plainColumns;
  const palette = useMemo(() => makePalette(isDark), [isDark]);
  const sorted = useMemo(() => {
    const wanted = pattern ? filterByName(rows, pattern) : rows;
    return sortFunctions(wanted, sort);
  }, [rows, pattern, sort.column, sort.descending]);
  const { scroller, update, nameWidth, first, last } = useSeenRows(sorted.length);
  const fitter = useRef<LabelFitter | null>(null);
  const shown = (name: string) => {
    if (nameWidth === 0) return name;
    fitter.current ??= scroller.current && fitterFor(scroller.current);
    return fitter.current?.fit(name, nameWidth - (flame.isDiff ? 4 : 24)) || name;
  };
  /** A button's spoken name must hold the text that is seen; the whole name is its description then. */
  const spoken = (name: string) => (name.includes(shown(name)) ? { "aria-label": name } : { title: name });

  return (
    <div class={`table ${flame.isDiff ? "diff" : ""}`} role="table" aria-label="Functions" aria-rowcount={sorted.length + 1}>
      <div role="rowgroup">
        <Header columns={columns} sort={sort} onSort={props.onSort} />
      </div>
      <div class="rows" role="rowgroup" ref={scroller} onScroll={update} tabIndex={0} aria-label="Rows">
        <div class="rows-space" style={{ height: `${sorted.length * rowPx}px` }} role="presentation">
          {sorted.slice(first, last).map((row, i) => (
            <div
              class={`row ${row.name === chosen ? "chosen" : ""}`}
              role="row"
              aria-rowindex={first + i + 2}
              key={first + i}
              style={{ transform: `translateY(${(first + i) * rowPx}px)` }}
              onClick={() => props.onChoose(row.name)}
              onContextMenu={(event) => {
                event.preventDefault();
                props.onMenu(row.name, event.clientX, event.clientY);
              }}
            >
              {flame.isDiff ? (
                <>
                  <ValueCell value={row.baseCum} total={flame.baseTotal} unit={unit} tone="before" />
                  <ValueCell value={row.cum} total={flame.total} unit={unit} tone="after" />
                  <ChangeCell row={row} unit={unit} />
                </>
              ) : (
                <>
                  <ValueCell value={row.flat} total={flame.total} unit={unit} />
                  <ValueCell value={row.cum} total={flame.total} unit={unit} tone="cum" />
                </>
              )}
              <div class="cell name" role="cell" title={row.file ? `${row.name}\n${row.file}` : row.name}>
                {!flame.isDiff && <span class="swatch" style={{ background: row.frame < 0 ? "transparent" : palette.fills[colours.fill(row.frame)] }} />}
                <button
                  type="button"
                  aria-pressed={row.name === chosen}
                  {...spoken(row.name)}
                  onClick={(event) => {
                    event.stopPropagation();
                    props.onChoose(row.name);
                  }}
                >
                  <bdi>{shown(row.name)}</bdi>
                </button>
              </div>
            </div>
          ))}
        </div>
        {sorted.length === 0 && <p class="nothing">No function matches the search.</p>}
      </div>
    </div>
  );
}
