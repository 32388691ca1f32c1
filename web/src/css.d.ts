/* A style sheet as text, imported with { type: "text" }. */
declare module "*.css" {
  const text: string;
  export default text;
}
