/** Read by build.mjs from lib/profile/formats/format_list.h; see model/text/upload_formats.ts. */
declare module "perfolio:upload-formats" {
  const formats: { name: string; title: string; extension: string }[];
  export default formats;
}

/** A style sheet as text, minified by the build; for addStyle in ui/later.tsx. */
declare module "*.css?text" {
  const text: string;
  export default text;
}
