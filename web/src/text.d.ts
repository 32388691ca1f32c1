/** A style sheet as text, minified by the build; for addStyle in ui/later.tsx. */
declare module "*.css?text" {
  const text: string;
  export default text;
}
