/*
 * names: shorter forms of a function's name, for boxes that are too narrow for the whole name.
 *
 * The forms drop, in this order: the path of the package; arguments, template arguments and
 * decorations of compilers; packages or namespaces. The server's pictures use the same forms
 * (lib/profile/picture/short_name.h); tests/short_names.txt tests both.
 */

const operatorName = /^operator\s*(?:\(\)|\[\]|(?:new|delete)\[\]|<=>|<<=?|>>=?|<=?|>=?|->\*?)/;
const fileName =
  /\.(?:so(?:\.[\w.-]+)?|dll|exe|dylib|jar|ko|wasm|go|rs|cc?|cpp|cxx|hh?|hpp|java|kt|scala|swift|cs|pyx?|rb|php|pl|lua|[cm]?[jt]sx?|s|S)(?:\+0x[\da-f]+)?$/;
const afterName =
  /(?: \[clone [^\]]*\]| (?:const|volatile|noexcept|&&?)|\.(?:part|constprop|isra|cold|lto_priv|llvm)(?:\.\d+)*|::h[\da-f]{16}|::)+$/;
const inName = /[\w$~\x80-\uffff]$/;
const maxForms = 8;
/** Longer names are not readable, and some of the code below takes quadratic time. */
const maxLength = 2048;

/** The position at which the name of an operator starts; -1 if it is not an operator. */
const operatorAt = (name: string) => name.search(/(?<![\w$~])operator(?!\w)/);

/**
 * Removes balanced <…>, (…), […] with their content and the qualifiers around them; names of
 * operators stay.
 */
function withoutArguments(name: string): string {
  const isScoped = name.includes("::");
  let depth = 0;
  let out = "";
  for (let at = 0; at < name.length; at++) {
    const isInName = inName.test(out);
    const operator =
      depth === 0 && name[at] === "o" && !isInName
        ? operatorName.exec(name.slice(at, at + 20))
        : null;
    if (operator) {
      out += operator[0];
      at += operator[0].length - 1;
      continue;
    }
    const char = name[at];
    const isOpening =
      "<([".includes(char) &&
      (depth > 0 ||
        isInName ||
        (isScoped && char !== "[") ||
        (char === "(" && operatorAt(out) >= 0));
    if (isOpening && depth === 0 && char === "(" && !isScoped) break; // "run()V"
    if (isOpening) depth++;
    if (depth === 0) out += char;
    if (depth > 0 && (char === ")" || char === "]" || (char === ">" && name[at - 1] !== "-")))
      depth--;
  }
  if (depth > 0) return name;
  out = out
    .replace(afterName, "")
    .replace(/::(?=::)/g, "")
    .replace(/^::/, "");
  const operator = operatorAt(out);
  const type = out.lastIndexOf(" ", operator < 0 ? undefined : operator);
  const isType = (isScoped || out.length < name.length) && !/^[^{]*\}/.test(out.slice(type));
  return (isType ? out.slice(type + 1) : out).trimEnd() || name;
}

/** The last component. For lambdas and closures, the function around them. */
function lastPart(name: string): string {
  const operator = operatorAt(name);
  const parts = (operator < 0 ? name : name.slice(0, operator)).split("::");
  if (operator >= 0) parts[parts.length - 1] = name.slice(operator);
  const isWithin = (at: number) => /^(?:\{|\$_|')/.test(parts[at] ?? "");
  let at = parts.length - 1;
  // After a lambda, "operator()" adds no information. After a class, it identifies the function.
  if (parts[at] === "operator()" && isWithin(at - 1)) at--;
  while (at > 0 && isWithin(at)) at--;
  return parts.slice(at).join("::");
}

/** "-[NSString length]", "<module>", "<img src=x>": these must not be cut. */
const isWhole = (name: string) =>
  /^[-+]\[/.test(name) || (name.startsWith("<") && !name.includes("::"));

/** The forms from the whole name to its last component, without duplicates. */
export function shorterNames(name: string): string[] {
  const forms = [name];
  if (name.length > maxLength || isWhole(name)) return forms;
  const add = (form: string) => {
    if (form && form.length < forms[forms.length - 1].length && forms.length < maxForms)
      forms.push(form);
  };
  const head = /^[^(<[]*/.exec(name)![0];
  // A slash after a blank is a division: "lambda x: x/2".
  const pathless = head.includes("::") ? name : name.replace(/^[^(<[ ]*\/(?=[^/(<[])/, "");
  add(pathless);
  if (fileName.test(pathless)) return forms;
  const bare = withoutArguments(pathless);
  add(bare);
  if (bare.includes("::")) {
    // "operator()" and "run" are ambiguous alone, so the class and its scope are dropped last.
    const last = lastPart(bare);
    const scopes = bare
      .slice(0, bare.length - last.length)
      .split("::")
      .slice(0, -1);
    for (const kept of [-2, -1]) add([...scopes.slice(kept), last].join("::"));
    add(last);
  } else {
    let rest = bare;
    do
      add(
        (rest = rest.replace(/^[\w$%-]+\.(?=[^.\d])/, "")).replace(/^\(\*?([^) ]*)\)(?=\.)/, "$1"),
      );
    while (/^[a-z]\w*\.(?:.*\.)?[A-Z][\w$]*\./.test(rest)); // "acme.Foo.run" keeps the class
  }
  return forms;
}
