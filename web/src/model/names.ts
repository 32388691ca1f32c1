/* names: ever shorter forms of a function's name, for boxes that are too narrow for the whole. */

const operatorName = /^operator\s*(?:\(\)|<=>|<<=?|>>=?|<=?|>=?|->\*?)/;
const fileName = /\.(?:so(?:\.[\w.-]+)?|dll|exe|dylib|jar|ko|wasm|go|rs|cc?|cpp|cxx|hh?|hpp|java|kt|scala|swift|cs|pyx?|rb|php|pl|lua|[cm]?[jt]sx?|s|S)$/;

/** Removes balanced <…>, (…), what they hold and what is said of the whole behind them; names of operators stay. */
function withoutArguments(name: string): string {
  let depth = 0;
  let out = "";
  for (let at = 0; at < name.length; at++) {
    const operator = depth === 0 && name[at] === "o" ? operatorName.exec(name.slice(at, at + 16)) : null;
    if (operator && !/\w$/.test(out)) {
      out += operator[0];
      at += operator[0].length - 1;
      continue;
    }
    const char = name[at];
    if (char === "<" || char === "(") depth++;
    if (depth === 0) out += char;
    if ((char === ">" || char === ")") && depth > 0) depth--;
  }
  return depth === 0 ? out.replace(/(?: (?:const|volatile|noexcept|&&?))+$/, "") : name;
}

/** From the whole name to its last part; without repetitions. */
export function shorterNames(name: string): string[] {
  const forms = [name];
  const add = (form: string) => {
    if (form && form.length < forms[forms.length - 1].length) forms.push(form);
  };
  const pathless = name.replace(/^[^(<]*\/(?=[^/])/, "");
  add(pathless);
  // Go's "pkg.(*Type).Method" keeps its receiver; C++ and Rust lose arguments first.
  if (name.includes("::")) add(withoutArguments(name).replace(/::$/, "").replace(/::(?=::)/g, ""));
  const last = forms[forms.length - 1];
  if (name.includes("::")) add(last.slice(last.lastIndexOf("::", last.length - 3) + 2));
  else if (!fileName.test(pathless)) {
    let rest = pathless;
    do add((rest = rest.replace(/^[\w$-]+\.(?=[^.])/, "")).replace(/^\(\*?([^)]*)\)/, "$1"));
    while (/^[a-z]\w*\.(?:.*\.)?[A-Z][\w$]*\./.test(rest)); // of "acme.Foo.run" the class stays
  }
  return forms;
}
