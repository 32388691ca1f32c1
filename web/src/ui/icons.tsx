/*
 * icons: drawn on a 16-pixel grid with a 1.5-pixel stroke, in the colour of the surrounding text.
 */

const paths = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14",
  copy: "M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8z",
  check: "M2.5 8.5 6 12l7.5-8",
  download: "M8 2v8m-3.5-3.5L8 10l3.5-3.5M2.5 13.5h11",
  settings:
    "M2 4.5h6m4 0h2M2 11.5h2m4 0h6M10 6.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4Zm-4 7a2 2 0 1 0 0-4 2 2 " +
    "0 0 0 0 4Z",
  sun:
    "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.5m0 11V15M1 8h1.5m11 0H15M3 3l1 1m8 8 1 " +
    "1m0-10-1 1m-8 8-1 1",
  moon: "M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1Z",
  close: "m3.5 3.5 9 9m0-9-9 9",
  minus: "M2.5 8h11",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6m0 4v3.5H10m-4 0H2.5V10",
  plus: "M8 2.5v11M2.5 8h11",
  swap: "M11 2.5 13.5 5 11 7.5M13 5H3m2 3.5L2.5 11 5 13.5M3 11h10",
  zoomout: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14M5 7h4",
  trash: "M2.5 4.5h11M6 4V2.5h4V4m-6 .5.7 9h6.6l.7-9M6.7 7v4m2.6-4v4",
  upload: "M8 11V3M4.5 6.5 8 3l3.5 3.5M2.5 13.5h11",
  icicle: "M2 2.5h12v3H2zm0 4h7v3H2zm8.5 0H14v3h-3.5zM2 10.5h4v3H2z",
  flame: "M2 10.5h12v3H2zm0-4h7v3H2zm8.5 0H14v3h-3.5zM2 2.5h4v3H2z",
  table: "M2 3.5h12M2 8h12M2 12.5h12",
  sandwich: "M3 2.5h10v3H3zm-1 5h12v1.5H2zm1 3.5h10v2.5H3z",
  graph: "M6 1.5h4v3H6zM1.5 11.5h4v3h-4zm9 0h4v3h-4zM8 4.5l-4.5 7M8 4.5l4.5 7",
  peek:
    "M6 6.5h4v3H6zM1.5 2.5h2v3h-2zm0 8h2v3h-2zm11-8h2v3h-2zm0 8h2v3h-2zM3.5 4 6 7m-2.5 5L6 " +
    "9m6.5-5L10 7m2.5 5L10 9",
  comments: "M2 2.5h12v8.5H7L4 13.5V11H2z",
  filter: "M2 3h12L9.5 8.5v4l-3 1.5V8.5z",
  left: "m10 4-4 4 4 4",
  columns: "M2 2.5h12v11H2zm4 0v11m4-11v11",
  labels: "M2 2.5h5.5l6.5 6.5-5 5-7-7zM5 5.5h.01",
  lock: "M4 7h8v6.5H4zm1.5 0V5a2.5 2.5 0 0 1 5 0v2",
  user: "M8 8a2.75 2.75 0 1 0 0-5.5A2.75 2.75 0 0 0 8 8Zm-5 6c.5-2.5 2.5-4 5-4s4.5 1.5 5 4",
  keyboard: "M1.5 4h13v8h-13zM4 6.5h.01M6.7 6.5h.01M9.3 6.5h.01M12 6.5h.01M5 9.5h6",
  flag: "M3.5 14V2.5h8l-1.5 3 1.5 3h-8",
  file: "M3.5 1.5H9L12.5 5v9.5h-9zM9 1.5V5h3.5",
  down: "m4 6 4 4 4-4",
  up: "m4 10 4-4 4 4",
  compare: "M6.5 2.5h-4v11h4m3-11h4v11h-4M8 1v14",
  refresh: "M13.5 8A5.5 5.5 0 1 1 11.5 3.8M13.5 1.5v3h-3",
  alert: "M8 2 14.5 13.5h-13zM8 6.5V9.5M8 11.5h.01",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="icon"
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}

/** The logo: three rows of an icicle. */
export function Mark() {
  return (
    <svg class="mark" width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
      <rect class="mark-1" x="1" y="2" width="20" height="5" rx="1.5" />
      <rect class="mark-2" x="1" y="8.5" width="12" height="5" rx="1.5" />
      <rect class="mark-3" x="14.5" y="8.5" width="6.5" height="5" rx="1.5" />
      <rect class="mark-4" x="1" y="15" width="7" height="5" rx="1.5" />
    </svg>
  );
}
