/** A style sheet as text, made small by the build; for ui/style.ts. */
declare module "*.css?text" {
  const text: string;
  export default text;
}
